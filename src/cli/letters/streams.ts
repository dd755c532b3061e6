/** Streams of letters that are exported and imported: lines of bytes, and work with some of it under way at once. */
import type { Readable } from 'node:stream'

const LINE_FEED = 10

/** Each line without its end; a last one without an end counts too. */
export async function* byteLines(stream: Readable): AsyncGenerator<Buffer, void, undefined> {
  let begun: Buffer[] = []
  for await (const given of stream) {
    const chunk: Buffer = typeof given === 'string' ? Buffer.from(given) : given
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      yield Buffer.concat([...begun, chunk.subarray(start, end)])
      begun = []
      start = end + 1
    }
    if (start < chunk.length) begun.push(chunk.subarray(start))
  }
  if (begun.length > 0) yield Buffer.concat(begun)
}

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
