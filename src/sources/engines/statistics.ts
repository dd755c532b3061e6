/**
 * How engines did lately: of the newest runs of each operation, how many succeeded and how long they took. Read from history at
 * most every few seconds, however many ask.
 */
import type { Within } from '../../api/shapes.ts'
import { type Clock, type Instant, instant, later } from '../../core/clock.ts'
import { type RecentRun, readRecentRuns } from '../../history/recent-runs.ts'
import type { Database } from '../../store/database.ts'
import type { EngineOperation } from './shapes.ts'

/** What the newest runs of one operation came to; durations are null without runs. */
export type OperationStatistics = Within<EngineOperation>

export interface EngineRuns {
  /** Operations that have run lately, by engine. */
  readonly engines: ReadonlyMap<string, ReadonlyMap<string, OperationStatistics>>
  /** What the numbers are made from, for people. */
  readonly basis: string
}

/** Runs of an operation that are looked at, and how old they may be. */
const MAX_RUNS = 1_000
const WITHIN_US = 86_400_000_000n
/** How long an answer is given again. */
const REUSE_US = 5_000_000n

export class EngineStatistics {
  readonly #db: Database
  readonly #clock: Clock
  #latest: { readonly at: Instant; readonly answer: Promise<EngineRuns> } | null = null

  constructor(db: Database, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  /** The statistics of now, or of a few seconds ago. */
  read(): Promise<EngineRuns> {
    const now = this.#clock.now()
    const latest = this.#latest
    // Before it is answered too: all who ask meanwhile share it.
    if (latest !== null && now >= latest.at && now < latest.at + REUSE_US) return latest.answer
    const asked = { at: now, answer: this.#look(now) }
    this.#latest = asked
    asked.answer.catch(() => {
      // What failed is not given again.
      if (this.#latest === asked) this.#latest = null
    })
    return asked.answer
  }

  async #look(now: Instant): Promise<EngineRuns> {
    const { series, limit } = await readRecentRuns(this.#db, later(now, -WITHIN_US), MAX_RUNS)
    const engines = new Map<string, Map<string, OperationStatistics>>()
    const operations = Map.groupBy(series, ({ engine, operation }) => JSON.stringify([engine, operation]))
    for (const outcomes of operations.values()) {
      const [first] = outcomes
      if (first === undefined) continue
      const runs = outcomes.flatMap(({ status, runs }) =>
        runs.map((run) => ({ ...run, succeeded: status === 'Succeeded' })),
      )
      if (runs.length === 0) continue
      const ofEngine = engines.get(first.engine) ?? new Map<string, OperationStatistics>()
      ofEngine.set(first.operation, statisticsOf(first.operation, runs, limit))
      engines.set(first.engine, ofEngine)
    }
    return { engines, basis: basisOf(limit) }
  }
}

/** What an operation without runs has. */
export const withoutRuns = (operation: string): OperationStatistics => statisticsOf(operation, [], MAX_RUNS)

/**
 * Of the newest `limit` runs, whatever came of them. Each outcome was read up to that limit by itself: rare failures reach further
 * back than the successes, and must not be counted against fewer of these.
 */
export function statisticsOf(
  operation: string,
  outcomes: readonly (RecentRun & { readonly succeeded: boolean })[],
  limit: number,
): OperationStatistics {
  const newest = outcomes.toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)).slice(0, limit)
  const durations = newest.map(({ durationMs }) => durationMs).sort((a, b) => a - b)
  const succeeded = newest.filter((run) => run.succeeded).length
  const last = newest[0]
  return {
    operation,
    runs: newest.length,
    succeeded,
    failed: newest.length - succeeded,
    successRate: newest.length === 0 ? null : succeeded / newest.length,
    p50Ms: percentile(durations, 50),
    p95Ms: percentile(durations, 95),
    p99Ms: percentile(durations, 99),
    lastAt: last === undefined ? null : instant(last.at),
  }
}

/** The smallest value that so many in a hundred do not exceed; null of nothing. */
const percentile = (ascending: readonly number[], percent: number): number | null =>
  ascending[Math.ceil((percent * ascending.length) / 100) - 1] ?? null

const basisOf = (limit: number): string =>
  `at most the newest ${limit.toLocaleString('en-GB')} runs of each operation, of the last 24 hours`
