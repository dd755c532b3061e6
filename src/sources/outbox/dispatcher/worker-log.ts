/** The log lines of an outbox: one per event, the prefix first, the fields in the text and beside it. */
import { type Log, silentLog } from '../../../core/log.ts'

type WorkerEvent = 'FETCH' | 'DISPATCH_SUCCESS' | 'DISPATCH_FAIL' | 'DUPLICATE' | 'SKIP_PROCESSED'

/** Writes lines such as `OUTBOX_WORKER_FETCH count=3`. */
export type WorkerLog = (
  event: WorkerEvent,
  fields: Readonly<Record<string, string | number>>,
  /** Beside the text only. */
  details?: Readonly<Record<string, unknown>>,
) => void

/** The log of the outbox called `outbox`. */
export function workerLog(log: Log, outbox: string): WorkerLog {
  // There is a line for every message: those that nobody sees need no text.
  if (log === silentLog) return () => {}
  return (event, fields, details) => {
    const prefix = `OUTBOX_WORKER_${event}`
    const text = Object.entries(fields).map(([name, value]) => `${name}=${shown(value)}`)
    log[event === 'DISPATCH_FAIL' ? 'warn' : 'info'](
      { event: prefix, outbox, ...fields, ...details },
      [prefix, ...text].join(' '),
    )
  }
}

/** A value that ends where it seems to: what has white space or quotes is quoted. */
const shown = (value: string | number): string =>
  typeof value === 'number' || /^[^\s"=]+$/.test(value) ? String(value) : JSON.stringify(value)
