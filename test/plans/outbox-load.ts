/**
 * Tables of messages as they are after a busy week: what is done, what waits, what waits behind others. Ids and keys can
 * be told from the number of a row; those that are no numbers lie in another order than the rows were made in.
 */
import { type Instant, instant } from '../../src/core/clock.ts'
import type { Layout } from '../../src/sources/outbox/table/layout.ts'
import type { ColumnName } from '../../src/sources/outbox/table/table-names.ts'

/** The present of the tests. */
export const NOW = instant(1_800_000_000_000_000n)

export const TENANT = '00000000-0000-4000-8000-000000000001'

/** A line that one dead message holds. */
export const HELD_LINE = 'held'

/** Whether the database counts up the ids of a table. */
export const hasNumbers = ({ types }: Layout): boolean => /int/.test(types.id)

const scattered = (n: number): string =>
  ((BigInt(n) * 2_654_435_761n) % 4_294_967_296n).toString(16).padStart(8, '0')

const uuidOf = (n: number, version: number): string =>
  `${scattered(n)}-0000-${version}000-8000-${n.toString(16).padStart(12, '0')}`

/** The key of the nth row. */
export const keyOf = (n: number): string => uuidOf(n, 4)

/** The id of the nth row. */
export const idOf = (layout: Layout, n: number): string => (hasNumbers(layout) ? String(n) : uuidOf(n, 7))

function uuidIn({ dialect }: Layout, version: number): string {
  return dialect === 'postgres'
    ? `lpad(to_hex((n::bigint * 2654435761) % 4294967296), 8, '0') || '-0000-${version}000-8000-' || lpad(to_hex(n), 12, '0')`
    : `printf('%08x-0000-${version}000-8000-%012x', (n * 2654435761) % 4294967296, n)`
}

/** When the nth row was made: all are, in an hour that ends before the present. */
export const createdAt = (n: number): Instant => instant(NOW - 3_600_000_000n + BigInt(n))

/** What rows can be. A dead one is `holding` the line of those that are `held`, and of those that come `behind`. */
export type State =
  | 'processed'
  | 'fresh'
  | 'in lines'
  | 'failed'
  | 'claimed'
  | 'suspect'
  | 'dead'
  | 'holding'
  | 'held'
  | 'behind'

/** SQL that adds the rows from the `first` to the `last`. */
function rowsOf(layout: Layout, state: State, first: number, last: number): string {
  const at = `(${createdAt(0)} + n)`
  const values: Partial<Record<ColumnName, string>> = {
    id: hasNumbers(layout) ? 'n' : layout.typed('id', `(${uuidIn(layout, 7)})`),
    tenantId: layout.typed('tenantId', `'${TENANT}'`),
    eventType: `'type-' || n % 7`,
    payload: layout.dialect === 'postgres' ? layout.payloadFrom(`'{"a":1}'`) : `'{"a":1}'`,
    createdAt: layout.time('createdAt', at),
    idempotencyKey: layout.typed('idempotencyKey', `(${uuidIn(layout, 4)})`),
    ...columnsOf(layout, state, at),
  }
  const c = layout.c
  // The keys of the object above.
  const columns = (Object.keys(values) as ColumnName[]).map((name) => c[name])
  const numbers =
    layout.dialect === 'postgres'
      ? `generate_series(${first}, ${last}) AS n`
      : `(WITH RECURSIVE numbers (n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${last}) SELECT n FROM numbers)`
  const ourIds = layout.dialect === 'postgres' && hasNumbers(layout) ? 'OVERRIDING SYSTEM VALUE' : ''
  return `INSERT INTO ${layout.sqlTable} (${columns.join(', ')}) ${ourIds} SELECT ${Object.values(values).join(', ')} FROM ${numbers};`
}

function columnsOf(layout: Layout, state: State, at: string): Partial<Record<ColumnName, string>> {
  const dead = { deadAt: layout.time('deadAt', at), letterDue: 'true', error: `'no'` }
  const claimedUntil = (offset: string) => layout.time('claimedUntil', `(${NOW} ${offset})`)
  switch (state) {
    case 'processed':
      return { processedAt: layout.time('processedAt', at) }
    case 'fresh':
      return {}
    case 'in lines':
      return { orderingKey: `'line-' || n % 50` }
    case 'failed': {
      const nextAttemptAt = layout.time('nextAttemptAt', `(${NOW} - 1000000 + n % 1000)`)
      return { retryCount: '1', error: `'no'`, nextAttemptAt }
    }
    case 'claimed':
      return { claimedUntil: claimedUntil('+ 60000000'), claimedBy: `'other'`, claimCount: '1' }
    case 'suspect':
      return { claimedUntil: claimedUntil('- 1000'), claimedBy: `'gone'`, claimCount: '2' }
    case 'dead':
      return dead
    case 'holding':
      return { ...dead, orderingKey: `'${HELD_LINE}'` }
    case 'held':
      return { nextAttemptAt: layout.dueBounds.never, orderingKey: `'${HELD_LINE}'` }
    case 'behind':
      return { orderingKey: `'${HELD_LINE}'` }
  }
}

/** A table at some time of its life: the rows that came since the time before, and whether the database looked at them. */
export interface Stage {
  readonly name: string
  readonly rows: readonly (readonly [State, count: number])[]
  readonly analysed: boolean
}

/** The life of a table; it has `size` rows when it is large. */
export const lifeOf = (size: number): readonly Stage[] => [
  { name: 'nothing yet', rows: [], analysed: false },
  {
    name: 'much that is processed, and little that waits',
    rows: [
      ['processed', size],
      ['fresh', 100],
      ['in lines', 50],
      ['failed', 50],
      ['claimed', 50],
      ['suspect', 1],
      ['dead', 300],
    ],
    analysed: false,
  },
  { name: 'the same, analysed', rows: [], analysed: true },
  {
    name: 'a large backlog, and old statistics',
    rows: [
      ['fresh', size * 0.4],
      ['in lines', size * 0.1],
    ],
    analysed: false,
  },
  {
    name: 'a long line behind a dead message, and many that are tried again',
    rows: [
      ['holding', 1],
      ['held', size * 0.25],
      ['failed', size * 0.05],
    ],
    analysed: false,
  },
  { name: 'the same, analysed', rows: [], analysed: true },
]

/** Rows with lower numbers come late, and are the first to be claimed. */
const FIRST_ROW = 1_001
const LATECOMERS = 30

/** The rows that are there when the table is purged, and old enough to go. */
export const OLD_ROWS = 1_500
export const OLDEST_KEPT = FIRST_ROW + OLD_ROWS

/** SQL for the rows of one stage after the other. */
export function scriptsOf(layout: Layout, life: readonly Stage[]): readonly string[] {
  let next = FIRST_ROW
  return life.map(({ rows }) => {
    const scripts = rows.map(([state, count]) => {
      const first = next
      next += count
      return rowsOf(layout, state, first, next - 1)
    })
    if (rows.some(([state]) => state === 'held')) scripts.push(rowsOf(layout, 'behind', 1, LATECOMERS))
    return scripts.join('\n')
  })
}

const NOT_SOON = instant(9_000_000_000_000_000n)

/** SQL for keys that were recorded, and that an inbox has. A few are old enough to be forgotten. */
export function keysOf(layout: Layout, count: number): string {
  const isPostgres = layout.dialect === 'postgres'
  const numbers = isPostgres
    ? `generate_series(1, ${count}) AS n`
    : `(WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count}) SELECT n FROM numbers)`
  const key = isPostgres ? `(${uuidIn(layout, 4)})::uuid` : uuidIn(layout, 4)
  const at = `CASE WHEN n <= ${OLD_ROWS} THEN n ELSE ${NOT_SOON} END`
  return `INSERT INTO ${layout.keys.sqlTable} (tenant_id, idempotency_key, message_id, payload_sha256, recorded_at)
      SELECT 'tenant-' || n % 10, ${key}, n, 'hash', ${at} FROM ${numbers};
    INSERT INTO inbox_keys (consumer, key, received_at)
      SELECT 'consumer-' || n % 10, 'key-' || n, ${at} FROM ${numbers};`
}
