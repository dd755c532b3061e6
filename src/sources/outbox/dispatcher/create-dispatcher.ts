/** Dispatchers for applications, from a URL, a table and a transport. */

import type { Clock } from '../../../core/clock.ts'
import { type Log, silentLog } from '../../../core/log.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import { openDatabase } from '../../../store/open.ts'
import { readStoreUrl, STORE_URL_FORMS } from '../../../store/store-url.ts'
import { refuse } from '../refusal.ts'
import { OutboxMeter } from '../served/meter.ts'
import { isWhole, once, readTable } from '../sql/table.ts'
import { nameTable, type TableOptions, tableOptionsOf } from '../table/table-names.ts'
import type { LocalTransport, Transport } from '../transports/transport.ts'
import { Dispatcher } from './dispatcher.ts'
import { dispatcherSettings, type GivenSettings, OUTBOX_NAME, OUTBOX_NAME_FORM } from './options.ts'

export interface DispatcherOptions extends TableOptions, GivenSettings {
  /** Where the table lies: `postgres://…` or `sqlite:PATH`. */
  readonly url: string
  /** Its name in logs, metrics and letters. Default `outbox`. */
  readonly name?: string
  readonly transport: Transport | LocalTransport | Transport['deliver']
  readonly log?: Log
  readonly clock?: Clock
  /** Shared with the writer of the same outbox, it counts for both. */
  readonly meter?: OutboxMeter
}

/** Its functions need no `this`: applications pass them on. */
export interface RunningDispatcher extends Pick<Dispatcher, 'start' | 'stop' | 'drain' | 'wake' | 'purge'> {
  readonly meter: OutboxMeter
}

/** One connection claims while another settles; a third renews and purges. */
const POOL_SIZE = 3

/** Refuses wrong options by name. */
export function createDispatcher(options: DispatcherOptions): RunningDispatcher {
  const { url, name = 'outbox', log = silentLog, clock = new SystemClock(), ...given } = options
  const { transport, meter = new OutboxMeter(clock), table, naming, columns, ...rest } = given
  const settings = dispatcherSettings(rest)
  const tableOptions = tableOptionsOf({ table, naming, columns })
  nameTable(tableOptions)
  const store = typeof url === 'string' ? readStoreUrl(url) : null
  if (store === null) refuse('url', `it must be ${STORE_URL_FORMS}`)
  if (typeof name !== 'string' || !OUTBOX_NAME.test(name)) refuse('name', `it must be ${OUTBOX_NAME_FORM}`)
  const parts = { name, store, transport: transportOf(transport), settings, clock, log, meter }
  // Last, so that wrong options leave nothing open.
  const db = openDatabase(url, { poolSize: POOL_SIZE, log })
  const read = once(() => readTable(db, tableOptions), isWhole)
  const dispatcher = new Dispatcher({ ...parts, db, table: read, onStopped: () => db.close() })
  return {
    meter,
    start: () => dispatcher.start(),
    stop: () => dispatcher.stop(),
    drain: () => dispatcher.drain(),
    wake: () => dispatcher.wake(),
    purge: () => dispatcher.purge(),
  }
}

export function transportOf(given: DispatcherOptions['transport'] | undefined): Transport | LocalTransport {
  if (typeof given === 'function') return { name: 'function', deliver: given }
  if (typeof given === 'object' && given !== null && ('deliver' in given || 'transfer' in given)) return given
  return refuse('transport', 'it must be a function or a transport, such as httpTransport({ url })')
}
