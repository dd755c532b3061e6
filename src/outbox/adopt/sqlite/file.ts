/**
 * An SQLite file that another program writes. There is one writer at a time, so transactions are short, and who finds
 * the file busy steps back and tries again. Waiting never blocks this process: the other writer may live in it.
 */
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { StoreUnavailable } from '../../../db/database.ts'
import type { RunSql } from '../../layout.ts'
import { type AdoptSettings, patiently } from '../report.ts'

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
/** How long SQLite itself waits before it says that the file is busy. */
const BUSY_MS = 20
const STEP_BACK = { baseMs: 5, factor: 2, maxMs: 200, jitter: 0.5 }

type Parameter = string | number | bigint | Uint8Array | null

export class AdoptFile {
  readonly #connection: DatabaseSync
  readonly #settings: AdoptSettings

  private constructor(connection: DatabaseSync, settings: AdoptSettings) {
    this.#connection = connection
    this.#settings = settings
  }

  /** Opens a file that exists; its journal stays as its owner has it. A dry run cannot write. */
  static open(path: string, settings: AdoptSettings): AdoptFile {
    if (!existsSync(path)) throw new StoreUnavailable(`there is no database at '${path}'`)
    try {
      const connection = new DatabaseSync(path, { readOnly: settings.dryRun, timeout: BUSY_MS })
      return new AdoptFile(connection, settings)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new StoreUnavailable(`cannot open '${path}': ${reason}`, { cause: error })
    }
  }

  close(): void {
    this.#connection.close()
  }

  readonly run: RunSql = (text, parameters) =>
    this.#patiently(() => {
      const statement = this.#connection.prepare(text)
      statement.setReadBigInts(true)
      // The callers pass on what SQLite gave them, or texts.
      return statement.all(...(parameters as readonly Parameter[]))
    })

  /** How many rows a statement changed. */
  change(text: string): Promise<number> {
    return this.#patiently(() => Number(this.#connection.prepare(text).run().changes))
  }

  /** Runs statements as they are printed, with BEGIN and COMMIT among them. */
  script(text: string): Promise<void> {
    return this.#patiently(() => this.#connection.exec(text))
  }

  /** Several statements in one transaction, which no other writer comes between. */
  transaction<T>(work: (connection: DatabaseSync) => T): Promise<T> {
    return this.#patiently(() => {
      this.#connection.exec('BEGIN IMMEDIATE')
      const result = work(this.#connection)
      this.#connection.exec('COMMIT')
      return result
    })
  }

  #patiently<T>(attempt: () => T): Promise<T> {
    return patiently(this.#settings, STEP_BACK, attempt, async (error, tries) => {
      if (this.#connection.isTransaction) this.#connection.exec('ROLLBACK')
      if (!isBusy(error)) return null
      const reason = 'another program holds the file for writing'
      if (tries === 10) this.#settings.onWait(`${reason}; trying again`)
      return reason
    })
  }
}

/** A transaction as it is sent. */
export const short = (text: string): string => `BEGIN IMMEDIATE;\n${text}\nCOMMIT;`

function isBusy(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false
  // The low byte is the primary code.
  const code = error.errcode & 0xff
  return code === SQLITE_BUSY || code === SQLITE_LOCKED
}
