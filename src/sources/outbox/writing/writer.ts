/**
 * The writer: messages become rows in the transaction of the change they tell of, and commit or roll back with it.
 *
 * A message whose key the tenant has already is a success: the first stays, and the answer says so. Of two transactions
 * that add the same key at once the second waits. Under READ COMMITTED both succeed; under REPEATABLE READ and
 * SERIALIZABLE PostgreSQL fails the second (40001), and the application runs it again.
 */
import type { Clock, Instant } from '../../../core/clock.ts'
import { type Log, silentLog } from '../../../core/log.ts'
import { type Adapter, checkAdapter } from '../adapters/adapter.ts'
import { OUTBOX_NAME, OUTBOX_NAME_FORM } from '../dispatcher/options.ts'
import { type WorkerLog, workerLog } from '../dispatcher/worker-log.ts'
import { refuse, refuseUnknown } from '../refusal.ts'
import type { OutboxMeter } from '../served/meter.ts'
import { type Existing, existingOf, type FindExisting } from '../sql/existing.ts'
import { type RunSql, readLayout } from '../table/layout.ts'
import type { Added, NewMessage } from '../table/message.ts'
import { nameTable, type TableOptions, tableOptionsOf } from '../table/table-names.ts'
import { readMessage, refuseField } from './draft.ts'
import { type Fitter, fitterFor, type NewRow } from './fit.ts'
import { type Insertion, insertionOnPostgres, insertionOnSqlite } from './insertion.ts'

export interface OutboxOptions<Tx> extends TableOptions {
  readonly adapter: Adapter<Tx>
  /** Its name in logs. Default `outbox`. */
  readonly name?: string
  readonly log?: Log
  /** For times of creation. Default: the database's own time. */
  readonly clock?: Clock
  /** Counts duplicates. */
  readonly meter?: Pick<OutboxMeter, 'duplicate' | 'conflict'>
}

export interface Outbox<Tx> {
  add(tx: Tx, message: NewMessage): Promise<Added>
  /** In few statements; answers in the order of the messages. */
  addMany(tx: Tx, messages: readonly NewMessage[]): Promise<Added[]>
}

/** Refuses wrong options by name. */
export function createOutbox<Tx>(options: OutboxOptions<Tx>): Outbox<Tx> {
  checkOptions(options)
  return new Writer(options)
}

/** Depends on the table as it is. */
interface Table {
  readonly fit: Fitter
  readonly insertion: Insertion
  readonly find: FindExisting
}

/** A key that is neither inserted nor found was purged in between; the next time it is free. */
const MOST_LOOKS = 3

class Writer<Tx> implements Outbox<Tx> {
  readonly #options: OutboxOptions<Tx> & { readonly name: string; readonly log: Log }
  readonly #logEvent: WorkerLog
  #table: Table | undefined

  constructor(options: OutboxOptions<Tx>) {
    const { name = 'outbox', log = silentLog } = options
    this.#options = { ...options, name, log }
    this.#logEvent = workerLog(log, name)
  }

  async add(tx: Tx, message: NewMessage): Promise<Added> {
    const draft = readMessage(message)
    const run = this.#runner(tx)
    const table = this.#table ?? (await this.#lookAt(run))
    const row = table.fit(draft, -1)
    const id = await table.insertion.one(run, row, this.#now())
    const [added] = await this.#answers(run, table, [row], [id])
    return added ?? unanswered(row)
  }

  async addMany(tx: Tx, messages: readonly NewMessage[]): Promise<Added[]> {
    if (!Array.isArray(messages)) refuseField('messages', 'is no list')
    const drafts = messages.map(readMessage)
    if (drafts.length === 0) return []
    const run = this.#runner(tx)
    const table = this.#table ?? (await this.#lookAt(run))
    const rows = drafts.map(table.fit)
    const ids = await table.insertion.many(run, rows, this.#now())
    return this.#answers(run, table, rows, ids)
  }

  #runner(tx: Tx): RunSql {
    return (sql, parameters) => this.#options.adapter.run(tx, sql, parameters)
  }

  /** Null: now, by the database. */
  #now(): Instant | null {
    return this.#options.clock?.now() ?? null
  }

  /**
   * Reads the table, once. Each transaction reads it itself until one has: waiting for another's could be waiting for a
   * lock that this one holds.
   */
  async #lookAt(run: RunSql): Promise<Table> {
    const { adapter, clock } = this.#options
    const { dialect } = adapter
    const inOrder: RunSql = (sql, parameters) =>
      run(dialect === 'sqlite' ? sql.replaceAll('?1', '?') : sql, parameters)
    const layout = await readLayout(dialect, tableOptionsOf(this.#options), inOrder)
    this.#table ??= {
      fit: fitterFor(layout, clock),
      insertion: dialect === 'postgres' ? insertionOnPostgres(layout) : insertionOnSqlite(layout),
      find: existingOf(layout),
    }
    return this.#table
  }

  /** Rows without an id were there already. */
  async #answers(
    run: RunSql,
    table: Table,
    rows: readonly NewRow[],
    ids: readonly (string | undefined)[],
  ): Promise<Added[]> {
    const answers = rows.map((row, at): Added | undefined => newAnswer(row, ids[at]))
    for (let look = 1; look <= MOST_LOOKS; look++) {
      const open = [...answers.keys()].filter((at) => answers[at] === undefined)
      if (open.length === 0) break
      const openRows = open.flatMap((at) => rows[at] ?? [])
      const found = await table.find(run, openRows)
      for (const [place, at] of open.entries()) {
        const row = openRows[place]
        if (row === undefined) continue
        const existing = found[place]
        answers[at] =
          existing === undefined
            ? newAnswer(row, await table.insertion.one(run, row, this.#now()))
            : this.#duplicate(row, existing)
      }
    }
    return answers.map((answer, at) => answer ?? unanswered(rows[at]))
  }

  #duplicate({ tenantId, key }: NewRow, { id, samePayload }: Existing): Added {
    const { meter, log, name } = this.#options
    this.#logEvent('DUPLICATE', { tenant: tenantId, key })
    meter?.duplicate()
    if (samePayload) return { id, idempotencyKey: key, alreadyExisted: true }
    const about = { outbox: name, id, tenant: tenantId, key }
    log.warn(about, 'a message was added again with another payload; the first one stands')
    meter?.conflict()
    return { id, idempotencyKey: key, alreadyExisted: true, conflict: true }
  }
}

const newAnswer = ({ key }: NewRow, id: string | undefined): Added | undefined =>
  id === undefined ? undefined : { id, idempotencyKey: key, alreadyExisted: false }

function unanswered(row: NewRow | undefined): never {
  throw new Error(
    `key ${row?.key} can neither be added nor found; is the table hidden by row level security?`,
  )
}

type Option = keyof OutboxOptions<unknown>
const OPTIONS: Option[] = ['adapter', 'name', 'table', 'naming', 'columns', 'log', 'clock', 'meter']

function checkOptions(options: OutboxOptions<never>): void {
  if (typeof options !== 'object' || options === null) refuse('options', 'they are missing')
  refuseUnknown(options, OPTIONS)
  const { adapter, name, columns, log, clock, meter } = options
  checkAdapter(adapter)
  if (name !== undefined && (typeof name !== 'string' || !OUTBOX_NAME.test(name)))
    refuse('name', `it is not ${OUTBOX_NAME_FORM}`)
  if (columns !== undefined && (typeof columns !== 'object' || columns === null))
    refuse('columns', 'it is no object of names')
  nameTable(options)
  const methods = [
    ['log', log, ['debug', 'info', 'warn', 'error']],
    ['clock', clock, ['now']],
    ['meter', meter, ['duplicate', 'conflict']],
  ] as const
  for (const [option, given, names] of methods) {
    for (const method of given === undefined ? [] : names) {
      if (typeof Reflect.get(Object(given), method) !== 'function') refuse(option, `it has no ${method}()`)
    }
  }
}
