/**
 * A database that need not be there when its server starts. PostgreSQL is connected to on first use anyway; a file of
 * SQLite may be locked by another program, lie on a disk that is not mounted yet, or be no database: it is opened when it is
 * first used, and whoever uses it meets the outage until it can be.
 */
import { parseStoreUrl } from '../config/store-url.ts'
import { type Database, type StoreCall, StoreUnavailable } from '../db/database.ts'
import { openDatabase } from '../db/open.ts'
import type { PostgresOptions } from '../db/postgres.ts'

/** Opens the database that a URL names, at the latest when it is used. */
export const openLate = (url: string, postgres: PostgresOptions): Database =>
  parseStoreUrl(url).kind === 'sqlite' ? lateFile(url, postgres) : openDatabase(url, postgres)

function lateFile(url: string, options: PostgresOptions): Database {
  const listeners: ((call: StoreCall) => void)[] = []
  let file: Database | undefined
  let isClosed = false
  const opened = (): Database => {
    if (file === undefined) {
      if (isClosed) throw new StoreUnavailable('the database was closed')
      file = openDatabase(url, options)
      for (const listener of listeners) file.onCall(listener)
    }
    return file
  }
  return {
    dialect: 'sqlite',
    transaction: async (verb, work) => opened().transaction(verb, work),
    statement: async (verb, work) => opened().statement(verb, work),
    session: async (verb, work) => opened().session(verb, work),
    snapshot: async (verb, work, terms) => opened().snapshot(verb, work, terms),
    script: async (tx, text) => opened().script(tx, text),
    async notify() {},
    async listen() {},
    onCall(listener) {
      listeners.push(listener)
      file?.onCall(listener)
    },
    async close() {
      isClosed = true
      await file?.close()
    },
  }
}
