/** Log lines of an outbox: one per event, the fields in the text and beside it. */
import { type Log, silentLog } from '../../../core/log.ts'

type WorkerEvent = 'FETCH' | 'DISPATCH_SUCCESS' | 'DISPATCH_FAIL' | 'DUPLICATE' | 'SKIP_PROCESSED'

/** Lines such as `OUTBOX_WORKER_FETCH count=3`. */
export type WorkerLog = (
  event: WorkerEvent,
  fields: Readonly<Record<string, string | number>>,
  details?: Readonly<Record<string, unknown>>,
) => void

export function workerLog(log: Log, outbox: string): WorkerLog {
  // One line per message: text that nobody sees is not made.
  if (log === silentLog) return () => {}
  return (event, fields, details) => {
    const prefix = `OUTBOX_WORKER_${event}`
    const text = Object.entries(fields).map(([name, value]) => `${name}=${quoted(value)}`)
    log[event === 'DISPATCH_FAIL' ? 'warn' : 'info'](
      { event: prefix, outbox, ...fields, ...details },
      [prefix, ...text].join(' '),
    )
  }
}

/** Quoted where white space or quotes would hide its end. */
const quoted = (value: string | number): string =>
  typeof value === 'number' || /^[^\s"=]+$/.test(value) ? String(value) : JSON.stringify(value)
