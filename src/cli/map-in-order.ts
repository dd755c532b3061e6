/** Work on a stream with some of it under way at once; results come in the order of the stream. */

/** How many calls of a server are under way at once. */
export const AT_ONCE = 4

/**
 * Applies `work` to what `source` gives, at most `width` at a time. A failure ends it once what is under way has ended, and
 * the source is closed; so it is when the reader leaves early.
 */
export async function* mapInOrder<Given, Made>(
  source: AsyncIterable<Given>,
  width: number,
  work: (given: Given) => Promise<Made>,
): AsyncGenerator<Made, void, undefined> {
  const underWay: Promise<Made>[] = []
  try {
    for await (const given of source) {
      const made = work(given)
      // Looked at when its turn comes; until then it must not count as a failure that nobody looks at.
      made.catch(() => {})
      underWay.push(made)
      if (underWay.length < width) continue
      const first = underWay.shift()
      if (first !== undefined) yield await first
    }
    while (underWay.length > 0) {
      const first = underWay.shift()
      if (first !== undefined) yield await first
    }
  } finally {
    await Promise.allSettled(underWay)
  }
}
