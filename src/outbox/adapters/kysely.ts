/** Kysely, on PostgreSQL or SQLite. Its plugins see the rows, so results have names that no plugin changes. */
import type { Dialect } from '../../db/database.ts'
import { type Adapter, type AdapterRow, checkDialect, insistOn, refuseTransaction } from './adapter.ts'

/** A transaction, from `transaction()` or `startTransaction()`. */
export interface KyselyTransactionLike {
  readonly isTransaction: boolean
  // The library's own type of a compiled query is not known here.
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>
}

/** Runs in transactions of Kysely: `db.transaction().execute((tx) => outbox.add(tx, …))`. */
export function kyselyAdapter(dialect: Dialect = 'postgres'): Adapter<KyselyTransactionLike> {
  checkDialect(dialect)
  return {
    dialect,
    async run(tx, sql, parameters) {
      insistOn(tx, 'executeQuery', 'a transaction of Kysely')
      if (!tx.isTransaction)
        refuseTransaction('it is no transaction; pass what db.transaction().execute() passes to its function')
      const query = {
        sql,
        parameters,
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
        queryId: { queryId: 'bartleby-outbox' },
      }
      // As `CompiledQuery.raw` makes it.
      const { rows } = await tx.executeQuery(query as never)
      // What was selected.
      return rows as readonly AdapterRow[]
    },
  }
}
