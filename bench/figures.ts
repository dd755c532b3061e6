/** Samples of how long something takes, and the figures that are reported of them. */

/** One line of the report at one size. `name` is the line, so it is the same at every size. */
export interface Figure {
  readonly name: string
  readonly unit: 'ms' | '/s' | '%' | 's' | 'MB' | 'letters'
  readonly value: number
  /** Of several runs; `value` is their median then. */
  readonly spread?: number
}

/** The median of some runs, and half of their range as a share of it. */
export interface Middle {
  readonly median: number
  readonly spread: number
}

/** Null when there was no run. */
export function middleOf<T>(runs: readonly T[] | undefined, value: (figure: T) => number): Middle | null {
  const values = rising((runs ?? []).map(value))
  const [least] = values
  const most = values.at(-1)
  if (least === undefined || most === undefined) return null
  const middle = median(values)
  return { median: middle, spread: middle === 0 ? 0 : (most - least) / 2 / middle }
}

/** One figure for each name: the middle of those that were taken more than once. */
export function middles(figures: readonly Figure[]): Figure[] {
  return [...Map.groupBy(figures, ({ name }) => name).values()].flatMap((runs) => {
    const middle = middleOf(runs, ({ value }) => value)
    const [first] = runs
    if (first === undefined || middle === null) return []
    return runs.length === 1 ? first : { ...first, value: middle.median, spread: middle.spread }
  })
}

/** What takes more than so many times as long as with the fewest letters is not flat. */
export const MOST_GROWTH = 2

/** Calls before the first that is measured: statements prepared, pages cached, code compiled. */
const warmUpCalls = 30

/** How long each of `calls` calls takes, one after the other, in rising order. */
export async function timed(calls: number, act: (at: number) => Promise<unknown>): Promise<number[]> {
  for (let at = 0; at < Math.min(warmUpCalls, calls); at++) await act(at)
  const tookMs: number[] = []
  for (let at = 0; at < calls; at++) {
    const startMs = performance.now()
    await act(at)
    tookMs.push(performance.now() - startMs)
  }
  return rising(tookMs)
}

export const rising = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b)

/** The value that this share of the samples does not exceed. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (numbers: readonly number[]): number => quantile(rising(numbers), 0.5)

/** The usual two lines of something that was timed. */
export const spread = (name: string, sortedMs: readonly number[], high: 0.95 | 0.99): Figure[] => [
  { name: `${name}, p50`, unit: 'ms', value: quantile(sortedMs, 0.5) },
  { name: `${name}, p${high * 100}`, unit: 'ms', value: quantile(sortedMs, high) },
]

/** How long something took, over all samples. */
export interface Times {
  readonly samples: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly worstMs: number
}

export function timesOf(tookMs: readonly number[]): Times {
  const sorted = rising(tookMs)
  return {
    samples: sorted.length,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    worstMs: sorted.at(-1) ?? Number.NaN,
  }
}
