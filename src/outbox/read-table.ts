/** Looking at the table of an outbox through a database of ours. */
import type { Database, Value } from '../db/database.ts'
import { type RunSql, readLayout } from './layout.ts'
import { type MessageTable, messageTable } from './sql/table.ts'
import { shortHash, type TableOptions } from './table-names.ts'

/** Runs single statements on a database. */
export const onDatabase =
  (db: Database): RunSql =>
  (text, parameters) =>
    db.session('outbox.inspect', (session) =>
      session.rows<Record<string, unknown>>(
        { name: `outbox.inspect.${shortHash(text)}`, postgres: text, sqlite: text, bigints: false },
        // Names of tables.
        ...(parameters as readonly Value[]),
      ),
    )

/** The table of an outbox, looked at. */
export const readTable = async (db: Database, options: TableOptions): Promise<MessageTable> =>
  messageTable(await readLayout(db.dialect, options, onDatabase(db)))

/** Whether the small tables beside it are there too; while a table is being adopted they may come after its columns. */
export const isWhole = ({ layout }: MessageTable): boolean =>
  layout.hasKeys && (layout.hasWake || layout.dialect === 'sqlite')

/** How long an answer is used that is not the last word. */
const PROVISIONAL_MS = 10_000

/** Asks once. A failure is not remembered, and an answer that is not `final` only for some seconds. */
export function once<T>(ask: () => Promise<T>, final: (answer: T) => boolean): () => Promise<T> {
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
