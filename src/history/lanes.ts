/**
 * Lanes of history: rows that one index holds together in the order of lists, newest first. Every list reads the heads
 * of lanes, so its cost grows with the page and not with the table.
 */
import { type Session, type Statement, sql, type Value } from '../db/database.ts'
import { SUMMARY_COLUMNS, type SummaryRow } from './rows.ts'

export type Lane =
  | { readonly kind: 'newest' }
  | { readonly kind: 'series'; readonly series: readonly number[] }
  | { readonly kind: 'correlation'; readonly id: string }
  | { readonly kind: 'instance'; readonly id: string }

/** Where a lane is read: before (older than) a row, down to a time. */
export interface Stretch {
  readonly beforeAt: bigint
  readonly beforeId: bigint
  readonly fromAt: bigint
}

/** Before the first row that may be shown: all of a lane that is older than `to`, down to `from`. */
export const stretchOf = (from: bigint | null, to: bigint | null): Stretch => ({
  beforeAt: to ?? 2n ** 63n - 1n,
  beforeId: 0n,
  fromAt: from ?? -(2n ** 63n),
})

const NEWEST_FIRST = 'ORDER BY created_at DESC, id DESC LIMIT $4'

/**
 * A lane as a range of its index, in whose order it is read. Under an equality PostgreSQL would take any order by time
 * as good, and may walk the primary key past the rows of all other lanes.
 */
const postgresLane = (column: string, { value = '$5', columns = SUMMARY_COLUMNS, condition = '' } = {}) => `
  SELECT ${columns} FROM bartleby.history
  WHERE (${column}, created_at, id) < (${value}, $1, $2) AND (${column}, created_at) >= (${value}, $3)
    AND ${column} IS NOT NULL ${condition} ORDER BY ${column} DESC, created_at DESC, id DESC LIMIT $4`

/**
 * SQLite compares only the first of two columns in the index, and would walk over all rows of the same microsecond:
 * those are read by themselves, by their id. Up to $4 rows of each part.
 */
const sqliteLane = (index: string, key: string) => {
  const part = (time: string) => `
    SELECT * FROM (SELECT ${SUMMARY_COLUMNS} FROM history INDEXED BY ${index}
      WHERE ${key} AND ${time} AND created_at >= $3 ${NEWEST_FIRST})`
  return `${part('created_at = $1 AND id < $2')} UNION ALL ${part('created_at < $1')}`
}

/** All rows, on the primary key; on SQLite on the index of their time. */
const newest = sql(
  'history.newest',
  {
    postgres: `SELECT ${SUMMARY_COLUMNS} FROM bartleby.history
      WHERE (created_at, id) < ($1, $2) AND created_at >= $3 ${NEWEST_FIRST}`,
    sqlite: sqliteLane('history_newest', 'true'),
  },
  { bigints: true },
)
/** The rows of a correlation id, on their index. */
const byCorrelation = sql(
  'history.byCorrelation',
  {
    postgres: postgresLane('correlation_id'),
    sqlite: sqliteLane('history_by_correlation', 'correlation_id = $5'),
  },
  { bigints: true },
)
/** The rows that name an instance, on their partial index. */
const byInstance = sql(
  'history.byInstance',
  { postgres: postgresLane('instance_id'), sqlite: sqliteLane('history_by_instance', 'instance_id = $5') },
  { bigints: true },
)
/** The rows without an instance: their correlation id stands for it. */
const byDefaultInstance = sql(
  'history.byDefaultInstance',
  {
    postgres: postgresLane('correlation_id', { condition: 'AND instance_id IS NULL' }),
    sqlite: sqliteLane('history_by_correlation', 'correlation_id = $5 AND instance_id IS NULL'),
  },
  { bigints: true },
)
/**
 * The rows of several series. PostgreSQL reads up to $4 keys of each from the index history_in_series, sorts these
 * keys, and only then reads the rows of the page by their primary key; SQLite is asked once per series.
 */
const bySeries = sql(
  'history.bySeries',
  {
    postgres: `
      SELECT entry.* FROM (
        SELECT lane.created_at, lane.id FROM unnest($5::int[]) AS asked (series)
        CROSS JOIN LATERAL (${postgresLane('history.series', { value: 'asked.series', columns: 'created_at, id' })}) AS lane
        ${NEWEST_FIRST}
      ) AS page
      CROSS JOIN LATERAL (SELECT ${SUMMARY_COLUMNS} FROM bartleby.history
        WHERE (history.created_at, history.id) >= (page.created_at, page.id)
          AND (history.created_at, history.id) <= (page.created_at, page.id)
        ORDER BY history.created_at, history.id LIMIT 1) AS entry`,
    sqlite: sqliteLane('history_in_series', 'series = $5'),
  },
  { bigints: true },
)

/** At most `limit` rows of a lane, the newest first. */
export async function readLane(
  session: Session,
  lane: Lane,
  stretch: Stretch,
  limit: number,
): Promise<SummaryRow[]> {
  const { beforeAt, beforeId, fromAt } = stretch
  const read = (statement: Statement, ...key: readonly Value[]) =>
    session.rows<SummaryRow>(statement, beforeAt, beforeId, fromAt, limit, ...key)
  const parts: SummaryRow[][] = []
  switch (lane.kind) {
    case 'newest':
      parts.push(await read(newest))
      break
    case 'correlation':
      parts.push(await read(byCorrelation, lane.id))
      break
    case 'instance':
      parts.push(await read(byInstance, lane.id), await read(byDefaultInstance, lane.id))
      break
    case 'series':
      if (session.dialect === 'postgres') parts.push(await read(bySeries, `{${lane.series.join(',')}}`))
      else for (const series of lane.series) parts.push(await read(bySeries, series))
      break
  }
  return parts.flat().sort(newestFirst).slice(0, limit)
}

/** The order of lists. */
function newestFirst(a: SummaryRow, b: SummaryRow): number {
  return descending(BigInt(a.created_at), BigInt(b.created_at)) || descending(BigInt(a.id), BigInt(b.id))
}

const descending = (a: bigint, b: bigint): number => (a < b ? 1 : a > b ? -1 : 0)
