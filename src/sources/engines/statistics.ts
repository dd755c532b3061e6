/**
 * Statistics of engines: success and durations of the newest runs of each operation. Read from history at most every
 * few seconds, however many ask.
 */
import type { Within } from '../../api/shapes.ts'
import { type Clock, type Instant, instant, later } from '../../core/clock.ts'
import { type RecentRun, readRecentRuns } from '../../history/recent-runs.ts'
import type { Database } from '../../store/database.ts'
import type { EngineOperation } from './shapes.ts'

export type OperationStatistics = Within<EngineOperation>

export interface EngineRuns {
  readonly engines: ReadonlyMap<string, ReadonlyMap<string, OperationStatistics>>
  /** Says what the numbers are made from. */
  readonly basis: string
}

/** Runs per operation, and their age. */
const MAX_RUNS = 1_000
const WITHIN_US = 86_400_000_000n
const REUSE_US = 5_000_000n

export class EngineStatistics {
  readonly #db: Database
  readonly #clock: Clock
  #latest: { readonly at: Instant; readonly answer: Promise<EngineRuns> } | null = null

  constructor(db: Database, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  read(): Promise<EngineRuns> {
    const now = this.#clock.now()
    const latest = this.#latest
    // All who ask meanwhile share it.
    if (latest !== null && now >= latest.at && now < latest.at + REUSE_US) return latest.answer
    const asked = { at: now, answer: this.#look(now) }
    this.#latest = asked
    asked.answer.catch(() => {
      // Failures are not reused.
      if (this.#latest === asked) this.#latest = null
    })
    return asked.answer
  }

  async #look(now: Instant): Promise<EngineRuns> {
    const { kinds, limit } = await readRecentRuns(this.#db, later(now, -WITHIN_US), MAX_RUNS)
    const engines = new Map<string, Map<string, OperationStatistics>>()
    const operations = Map.groupBy(kinds, ({ engine, operation }) => JSON.stringify([engine, operation]))
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

export const withoutRuns = (operation: string): OperationStatistics => statisticsOf(operation, [], MAX_RUNS)

/**
 * Of the newest `limit` runs, failed or not. Each outcome was read up to that limit by itself: rare failures reach
 * further back than successes, and must not be counted against fewer of these.
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

/** Null without values. */
const percentile = (ascending: readonly number[], percent: number): number | null =>
  ascending[Math.ceil((percent * ascending.length) / 100) - 1] ?? null

const basisOf = (limit: number): string =>
  `at most the newest ${limit.toLocaleString('en-GB')} runs of each operation, of the last 24 hours`
