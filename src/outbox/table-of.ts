/** Looking at tables through a database of ours. */
import type { Database, Value } from '../db/database.ts'
import type { RunSql } from './layout.ts'
import { shortHash } from './table-names.ts'

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
