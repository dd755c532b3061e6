/** A log that reports an outage of the store once, instead of once per round: one line when it is waited for, one when it answers again. */
import type { Log } from '../core/log.ts'
import { type Database, StoreUnavailable } from './database.ts'

/** A busy store fails some calls: an outage lasts until none has failed for so long. */
const CALM_MS = 5_000

/** Suppressed failures are logged at debug. */
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
  const tell = (level: 'info' | 'warn' | 'error') => (details: object, message: string) => {
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

/** A longer upgrade is logged: somebody watches a server that does not listen yet. */
const UPGRADE_TOLD_MS = 2_000

/** Logs a long upgrade when it becomes one and when it is over. */
export async function tellOfUpgrade<T>(log: Log, upgrade: Promise<T>): Promise<T> {
  let isTold = false
  const timer = setTimeout(() => {
    isTold = true
    log.warn({}, 'the schema of the store is not ready: there is much to do, or others lock it; waiting')
  }, UPGRADE_TOLD_MS)
  try {
    const done = await upgrade
    if (isTold) log.info({}, 'the schema of the store is ready')
    return done
  } finally {
    clearTimeout(timer)
  }
}

/** However deep among the causes. */
function outageIn(details: object): StoreUnavailable | null {
  let error: unknown = 'err' in details ? details.err : null
  while (error instanceof Error && !(error instanceof StoreUnavailable)) error = error.cause
  return error instanceof StoreUnavailable ? error : null
}
