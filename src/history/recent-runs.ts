/** The newest runs of every operation kind, read from the end of its index up to a limit: the cost never grows with history. */
import type { Instant } from '../core/clock.ts'
import { type Database, type Integer, sql } from '../store/database.ts'
import { rowsGiven } from '../store/idioms.ts'
import { type OperationKind, readOperationKinds } from './entry.ts'

const MAX_ROWS = 50_000

export interface RecentRun {
  readonly at: bigint
  readonly durationMs: number
}

interface RecentKind extends OperationKind {
  readonly runs: readonly RecentRun[]
}

interface RecentRuns {
  readonly kinds: readonly RecentKind[]
  /** Runs read per kind; older ones are not among them. */
  readonly limit: number
}

/** Since `$2`, up to `$3` per kind, from the end of its range. */
const readNewest = sql(
  'history.newestOfSeries',
  `SELECT run.* FROM unnest($1::int[]) AS given (series) CROSS JOIN LATERAL (
     SELECT series, created_at, duration_ms FROM bartleby.history INDEXED BY history_in_series
     WHERE (series, created_at) >= (given.series, $2) AND series <= given.series
     ORDER BY series DESC, created_at DESC, id DESC LIMIT $3) AS run`,
  { bigints: true },
)

/** Kinds per statement: SQLite answers without giving others a turn. */
const AT_ONCE = 16

type RunRow = Readonly<Record<'series' | 'created_at' | 'duration_ms', Integer>>

/** Up to `most` per kind; fewer with very many kinds. */
export async function readRecentRuns(db: Database, since: Instant, most: number): Promise<RecentRuns> {
  const kinds = await db.session('history.series', readOperationKinds)
  const limit = Math.max(1, Math.min(most, Math.floor(MAX_ROWS / Math.max(1, kinds.size))))
  const runs = new Map<number, RecentRun[]>()
  const asked = [...kinds.keys()].map((series) => ({ series }))
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
  return { kinds: [...kinds].map(([number, kind]) => ({ ...kind, runs: runs.get(number) ?? [] })), limit }
}
