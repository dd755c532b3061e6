/**
 * For receivers: work done once per message, however often it is delivered. The message's key is recorded in the
 * transaction of the work. Keys are kept for a window that must not be shorter than the time over which a dispatcher
 * tries again.
 */
import type { Clock } from '../../core/clock.ts'
import type { Dialect } from '../../store/database.ts'
import { type Adapter, checkAdapter, checkDialect } from './adapters/adapter.ts'
import { dispatcherSettings, type GivenSettings, retryHorizonSeconds } from './dispatcher/options.ts'
import { checkNumber, refuse, refuseUnknown, whole } from './refusal.ts'
import { nameTable, quote } from './table/table-names.ts'
import { refuseField, refuseUnkept } from './writing/draft.ts'

const DEFAULT_TABLE = 'inbox_keys'
const DAY_SECONDS = 86_400
const DAY_US = 86_400_000_000
const MOST_DAYS = 36_500
const MOST_FORGOTTEN = 10_000

export interface InboxOptions<Tx> {
  readonly adapter: Adapter<Tx>
  /** May name its schema. Default `inbox_keys`. */
  readonly table?: string
  /** How long keys are remembered. Default 30. */
  readonly windowDays?: number
  /** Settings of the dispatcher, as far as they differ from the defaults. */
  readonly dispatcher?: GivenSettings
  /** Default: the database's own time. */
  readonly clock?: Clock
}

export interface InboxKey {
  /** Several consumers can each do their work for one message. */
  readonly consumer: string
  /** The idempotency key that came with the message. */
  readonly key: string
}

/** `ran: false`: the work was done before. */
export type OnceOutcome<Result> = { readonly ran: true; readonly result: Result } | { readonly ran: false }

export interface Inbox<Tx> {
  /**
   * Runs `work` in the receiver's transaction unless it was done before. When it throws nothing is recorded, and the
   * next delivery runs it again. A delivery at the same time waits, and runs only if the first rolls back.
   */
  once<Result, Given extends Tx>(
    tx: Given,
    key: InboxKey,
    /** Gets the transaction that was passed. */
    work: (tx: Given) => Promise<Result> | Result,
  ): Promise<OnceOutcome<Result>>
  /** Forgets keys older than the window, at most `limit` (1,000); gives how many. Call it now and then. */
  forget(tx: Tx, options?: { readonly limit?: number }): Promise<number>
}

/** A script for the receiver's migrations. It can be run again. */
export function inboxSchema(dialect: Dialect, table: string = DEFAULT_TABLE): string {
  checkDialect(dialect)
  const names = nameTable({ table })
  const [text, integer] = dialect === 'postgres' ? ['text', 'bigint'] : ['TEXT', 'INTEGER']
  return `CREATE TABLE IF NOT EXISTS ${names.sqlTable} (
  consumer ${text} NOT NULL,
  key ${text} NOT NULL,
  received_at ${integer} NOT NULL,
  PRIMARY KEY (consumer, key)
);
CREATE INDEX IF NOT EXISTS ${quote(`${names.indexPrefix}_age`)} ON ${names.sqlTable} (received_at);
`
}

/** Refuses wrong options by name. */
export function createInbox<Tx>(options: InboxOptions<Tx>): Inbox<Tx> {
  checkOptions(options)
  const { adapter, table = DEFAULT_TABLE, windowDays = 30, dispatcher = {}, clock } = options
  const { sqlTable } = nameTable({ table })
  checkWindow(windowDays, retryHorizonSeconds(dispatcherSettings(dispatcher)))
  const sql = statementsOf(adapter.dialect, sqlTable)
  const present = () => (clock === undefined ? null : String(clock.now()))

  return {
    async once(tx, { consumer, key }, work) {
      const identity = [checkText('consumer', consumer), checkText('key', key)]
      const recorded = await adapter.run(tx, sql.record, [...identity, present()])
      if (recorded.length === 0) return { ran: false }
      try {
        return { ran: true, result: await work(tx) }
      } catch (error) {
        // For receivers that catch the error and commit. Fails where PostgreSQL has given the transaction up.
        try {
          await adapter.run(tx, sql.unrecord, identity)
        } catch {
          // The first error matters.
        }
        throw error
      }
    },
    async forget(tx, { limit = 1_000 } = {}) {
      checkNumber('limit', limit, whole(1, MOST_FORGOTTEN))
      const windowUs = String(Math.round(windowDays * DAY_US))
      return (await adapter.run(tx, sql.forget, [present(), windowUs, String(limit)])).length
    },
  }
}

/**
 * `record`: by primary key; waits for a transaction that records the same. `forget`: the oldest first, by the index of
 * their age; on PostgreSQL it skips those that others are forgetting.
 */
function statementsOf(dialect: Dialect, table: string) {
  const isPostgres = dialect === 'postgres'
  const [first, second, third] = isPostgres ? ['$1::text', '$2::text', '$3::text'] : ['?', '?', '?']
  // A time that moves during the statement would rule out the index.
  const present = isPostgres ? 'extract(epoch FROM statement_timestamp())' : `unixepoch('subsec')`
  const now = (given: string) => `coalesce(CAST(${given} AS bigint), CAST(${present} * 1000000 AS bigint))`
  const oldest = (row: string) =>
    `SELECT ${row} FROM ${table} WHERE received_at < ${now(first)} - CAST(${second} AS bigint)
       ORDER BY received_at LIMIT CAST(${third} AS bigint)`
  return {
    record: `INSERT INTO ${table} (consumer, key, received_at) VALUES (${first}, ${second}, ${now(third)})
      ON CONFLICT (consumer, key) DO NOTHING RETURNING 1 AS recorded`,
    unrecord: `DELETE FROM ${table} WHERE consumer = ${first} AND key = ${second}`,
    forget: `DELETE FROM ${table} WHERE ${
      isPostgres
        ? `ctid = ANY(ARRAY(${oldest('ctid')} FOR UPDATE SKIP LOCKED))`
        : `rowid IN (${oldest('rowid')})`
    } RETURNING 1 AS forgotten`,
  }
}

const OPTIONS: readonly (keyof InboxOptions<unknown>)[] = [
  'adapter',
  'table',
  'windowDays',
  'dispatcher',
  'clock',
]

function checkOptions(options: InboxOptions<never>): void {
  if (typeof options !== 'object' || options === null) refuse('adapter', 'it is missing')
  const { adapter, clock } = options
  refuseUnknown(options, OPTIONS)
  checkAdapter(adapter)
  if (clock !== undefined && typeof clock.now !== 'function') refuse('clock', 'it has no now()')
}

function checkWindow(windowDays: number, horizonSeconds: number): void {
  if (typeof windowDays !== 'number' || !(windowDays > 0 && windowDays <= MOST_DAYS))
    refuse('windowDays', `${windowDays} is not a number above 0 and up to ${MOST_DAYS}`)
  if (windowDays * DAY_SECONDS < horizonSeconds) {
    const horizonDays = Math.ceil((horizonSeconds / DAY_SECONDS) * 100) / 100
    refuse(
      'windowDays',
      `${windowDays} is shorter than the time over which the dispatcher tries again, ${horizonDays} days`,
    )
  }
}

function checkText(field: string, text: unknown): string {
  if (typeof text !== 'string' || text === '') refuseField(field, 'is empty or no text')
  refuseUnkept(text, field)
  return text
}
