/**
 * A log that tells of an outage of the store once. A dozen rounds use the store, and each would tell of its own failure, with a stack
 * that says nothing new; all of them try again. Two lines are left: that the store is waited for, and that it answers again.
 */
import type { Log } from '../core/log.ts'
import { type Database, StoreUnavailable } from './database.ts'

/** A busy store fails some calls and answers others: it is one outage until no call has failed for so long. */
const CALM_MS = 5_000

type Level = 'info' | 'warn' | 'error'

/** `log`, with failures of `db` told once; what is left out is there at the level debug. */
export function outageLog(log: Log, db: Database): Log {
  let since: number | null = null
  let lastAt = 0
  db.onCall(({ ok, writes }) => {
    const now = performance.now()
    // A full disk still answers reads.
    if (since === null || !ok || !writes || now - lastAt < CALM_MS) return
    log.info({ seconds: Math.round((now - since) / 1_000) }, 'the store answers again')
    since = null
  })
  const tell = (level: Level) => (details: object, message: string) => {
    const outage = outageIn(details)
    if (outage === null) return log[level](details, message)
    lastAt = performance.now()
    log.debug(details, message)
    if (since !== null) return
    since = lastAt
    log.warn({ reason: outage.message }, 'the store cannot be used now; waiting for it')
  }
  return {
    debug: (details, message) => log.debug(details, message),
    info: tell('info'),
    warn: tell('warn'),
    error: tell('error'),
  }
}

/** The outage that an entry is about, however deep it lies. */
function outageIn(details: object): StoreUnavailable | null {
  let error: unknown = 'err' in details ? details.err : null
  while (error instanceof Error && !(error instanceof StoreUnavailable)) error = error.cause
  return error instanceof StoreUnavailable ? error : null
}
