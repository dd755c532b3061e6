/** Dispatchers for applications: everything from a URL, a table and a transport. */
import { readStoreUrl, STORE_URL_FORMS, type StoreUrl } from '../config/store-url.ts'
import type { Clock } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { type Log, silentLog } from '../core/log.ts'
import { SystemClock } from '../core/system-clock.ts'
import type { Database } from '../db/database.ts'
import { openDatabase } from '../db/open.ts'
import { type CommitWatch, watchCommits } from './commit-watch.ts'
import { Dispatcher } from './dispatcher.ts'
import { readLayout } from './layout.ts'
import { OutboxMeter } from './meter.ts'
import { type DispatcherSettings, OUTBOX_NAME, OUTBOX_NAME_FORM, readSettings } from './options.ts'
import type { Purged } from './sql/purge.ts'
import { type MessageTable, messageTable } from './sql/table.ts'
import { nameTable, type TableOptions, tableOptionsOf } from './table-names.ts'
import { onDatabase } from './table-of.ts'
import { functionTransport, type LocalTransport, type Transport } from './transport.ts'
import { Upkeep } from './upkeep.ts'

export interface DispatcherOptions extends TableOptions, Partial<Omit<DispatcherSettings, 'retention'>> {
  /** Where the table lies: `postgres://…` or `sqlite:PATH`. */
  readonly url: string
  /** What it is called in logs and metrics, and in the names of its letters. Default `outbox`. */
  readonly name?: string
  readonly transport: Transport | LocalTransport | Transport['deliver']
  readonly retention?: Partial<DispatcherSettings['retention']>
  readonly log?: Log
  readonly clock?: Clock
  /** Shared with the writer of the same outbox, it counts for both. */
  readonly meter?: OutboxMeter
}

/** A dispatcher with its own connections. */
export interface RunningDispatcher {
  readonly meter: OutboxMeter
  /** Begins to deliver. Resolves once the table was looked at; rejects when it is no outbox. */
  start(): Promise<void>
  /** Gives back what was not begun, waits for what was, and closes the connections. Safe to call more than once. */
  stop(): Promise<void>
  /** Delivers everything that is due now, then resolves. */
  drain(): Promise<void>
  /** A message was committed: looks at once. Nobody needs to call it where the database tells. */
  wake(): void
  /** Removes what is past its retention now; this happens by itself once a minute. */
  purge(): Promise<Purged>
}

/** Connections of a dispatcher: one claims while another settles, a third renews claims and purges. */
const POOL_SIZE = 3

/** A dispatcher for the outbox in a database; refuses wrong options by name. */
export function createDispatcher(options: DispatcherOptions): RunningDispatcher {
  const {
    url,
    name = 'outbox',
    transport,
    log = silentLog,
    clock = new SystemClock(),
    meter,
    table,
    naming,
    columns,
    ...rest
  } = options
  const settings = readSettings(rest)
  const tableOptions = tableOptionsOf({ table, naming, columns })
  const names = nameTable(tableOptions)
  const store = storeOf(url)
  const checked = { name: nameOf(name), transport: transportOf(transport) }
  const measured = meter ?? new OutboxMeter(clock)
  // Opened last: of wrong options nothing stays behind.
  const db = openDatabase(url, { poolSize: POOL_SIZE })
  const read = once(() => readTable(db, tableOptions), isWhole)
  const dispatcher: Dispatcher = new Dispatcher({
    ...checked,
    db,
    table: read,
    settings,
    clock,
    log,
    meter: measured,
  })
  const upkeep = new Upkeep({
    name,
    db,
    table: read,
    settings,
    clock,
    log,
    onReleased: () => dispatcher.wake(),
  })
  let watch: CommitWatch | undefined
  let stopped: Promise<void> | undefined
  const stop = async () => {
    watch?.stop()
    await Promise.all([dispatcher.stop(), upkeep.stop()])
    await db.close()
  }
  return {
    meter: measured,
    async start() {
      await dispatcher.start()
      watch = await announceCommits(db, store, names.channel, () => dispatcher.wake())
      upkeep.start()
    },
    stop() {
      stopped ??= stop()
      return stopped
    },
    drain: () => dispatcher.drain(),
    wake: () => dispatcher.wake(),
    purge: () => upkeep.purge(),
  }
}

/** Calls `wake` when something may have been added to the table. */
export async function announceCommits(
  db: Database,
  store: StoreUrl,
  channel: string,
  wake: () => void,
): Promise<CommitWatch | undefined> {
  const watch = store.kind === 'sqlite' ? watchCommits(store.path, wake) : undefined
  await db.listen(channel, wake)
  // What was committed before anybody listened was not announced.
  wake()
  return watch
}

/** The table of an outbox, looked at. */
export const readTable = async (db: Database, options: TableOptions): Promise<MessageTable> =>
  messageTable(await readLayout(db.dialect, options, onDatabase(db)))

/** Whether the small tables beside it are there too; while a table is being adopted they may come after its columns. */
export const isWhole = ({ layout }: MessageTable): boolean =>
  layout.hasKeys && (layout.hasWake || layout.dialect === 'sqlite')

/** How long an answer is used that is not the last word. */
const PROVISIONAL_MS = 10_000

/** Asks once. A failure is not remembered, and an answer that is not `final` only for some seconds. */
export function once<T>(ask: () => Promise<T>, final: (answer: T) => boolean = () => true): () => Promise<T> {
  let asked: Promise<T> | undefined
  let usedUntilMs = Number.POSITIVE_INFINITY
  return () => {
    if (asked !== undefined && performance.now() < usedUntilMs) return asked
    usedUntilMs = Number.POSITIVE_INFINITY
    asked = ask().then(
      (answer) => {
        if (!final(answer)) usedUntilMs = performance.now() + PROVISIONAL_MS
        return answer
      },
      (error: unknown) => {
        asked = undefined
        throw error
      },
    )
    return asked
  }
}

function storeOf(url: unknown): StoreUrl {
  const store = typeof url === 'string' ? readStoreUrl(url) : null
  if (store === null)
    throw failure('outbox_option_invalid', { option: 'url', reason: `it must be ${STORE_URL_FORMS}` })
  return store
}

function nameOf(name: unknown): string {
  if (typeof name !== 'string' || !OUTBOX_NAME.test(name))
    throw failure('outbox_option_invalid', { option: 'name', reason: `it must be ${OUTBOX_NAME_FORM}` })
  return name
}

/** A transport from what was given for one. */
export function transportOf(given: DispatcherOptions['transport'] | undefined): Transport | LocalTransport {
  if (typeof given === 'function') return functionTransport(given)
  if (typeof given === 'object' && given !== null && ('deliver' in given || 'transfer' in given)) return given
  throw failure('outbox_option_invalid', {
    option: 'transport',
    reason: 'it must be a function or a transport, such as httpTransport({ url })',
  })
}
