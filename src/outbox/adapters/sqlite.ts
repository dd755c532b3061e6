/** Node's own `node:sqlite`. Its transactions belong to the connection: `BEGIN`, `add(connection, …)`, `COMMIT`. */
import { type Adapter, type AdapterRow, insistOn, refuseTransaction } from './adapter.ts'

interface StatementLike {
  // The library's own type of a value is a union that `unknown` is not part of.
  all(...values: never[]): unknown[]
}

/** A `DatabaseSync` with a transaction begun on it. */
export interface SqliteDatabaseLike {
  readonly isTransaction: boolean
  prepare(sql: string): StatementLike
}

/** Enough for every statement of some outboxes; beyond it they are prepared anew. */
const MOST_STATEMENTS = 100

/** Runs on connections of `node:sqlite`. */
export function sqliteAdapter(): Adapter<SqliteDatabaseLike> {
  const prepared = new WeakMap<SqliteDatabaseLike, Map<string, StatementLike>>()

  function statementOf(connection: SqliteDatabaseLike, sql: string): StatementLike {
    const known = prepared.get(connection) ?? new Map<string, StatementLike>()
    const statement = known.get(sql) ?? connection.prepare(sql)
    if (known.size === MOST_STATEMENTS) known.clear()
    known.set(sql, statement)
    prepared.set(connection, known)
    return statement
  }

  return {
    dialect: 'sqlite',
    async run(connection, sql, parameters) {
      insistOn(connection, 'prepare', 'a DatabaseSync')
      if (!connection.isTransaction)
        refuseTransaction('no transaction is begun on this connection; run BEGIN IMMEDIATE first')
      // Texts, bytes and null are among what the library takes; rows have the columns that were selected.
      return statementOf(connection, sql).all(...(parameters as never[])) as AdapterRow[]
    },
  }
}
