/**
 * The newest runs of every series: when they were and how long they took. Each series is read from its end by the index that
 * lists use, up to a limit, so the cost grows with the number of series and never with history.
 */
import type { Instant } from '../core/clock.ts'
import { type Database, type Integer, sql } from '../store/database.ts'
import { rowsGiven } from '../store/idioms.ts'
import { readSeriesLabels, type SeriesLabel } from './entry.ts'

/** What is read at most, over all series. */
const MAX_ROWS = 50_000

export interface RecentRun {
  readonly at: bigint
  readonly durationMs: number
}

/** A series with its newest runs, the newest first. */
interface RecentSeries extends SeriesLabel {
  readonly runs: readonly RecentRun[]
}

interface RecentRuns {
  readonly series: readonly RecentSeries[]
  /** How many runs of a series were read at most: those that are older are not among them. */
  readonly limit: number
}

/** The newest runs since `$2`, up to `$3` of each series, which is read from its end as a range of its index. */
const readNewest = sql(
  'history.newestOfSeries',
  `SELECT run.* FROM unnest($1::int[]) AS given (series) CROSS JOIN LATERAL (
     SELECT series, created_at, duration_ms FROM bartleby.history INDEXED BY history_in_series
     WHERE (series, created_at) >= (given.series, $2) AND series <= given.series
     ORDER BY series DESC, created_at DESC, id DESC LIMIT $3) AS run`,
  { bigints: true },
)

/** Series that are asked for at once: SQLite answers without giving others a turn. */
const AT_ONCE = 16

type RunRow = Readonly<Record<'series' | 'created_at' | 'duration_ms', Integer>>

/** The newest runs since an instant, up to `most` of each series; fewer where there are very many series. */
export async function readRecentRuns(db: Database, since: Instant, most: number): Promise<RecentRuns> {
  const labels = await db.session('history.series', readSeriesLabels)
  const limit = Math.max(1, Math.min(most, Math.floor(MAX_ROWS / Math.max(1, labels.size))))
  const runs = new Map<number, RecentRun[]>()
  const asked = [...labels.keys()].map((series) => ({ series }))
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const rows = await db.session('history.recent', (session) =>
      rowsGiven<RunRow>(session, readNewest, asked.slice(from, from + AT_ONCE), since, limit),
    )
    for (const row of rows) {
      const known = runs.get(Number(row.series)) ?? []
      known.push({ at: BigInt(row.created_at), durationMs: Number(row.duration_ms) })
      runs.set(Number(row.series), known)
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { series: [...labels].map(([number, label]) => ({ ...label, runs: runs.get(number) ?? [] })), limit }
}
