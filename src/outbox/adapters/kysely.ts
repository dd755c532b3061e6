/** Kysely, on PostgreSQL or SQLite. Its plugins see the rows, so results have names that no plugin changes. */
import type { Dialect } from '../../db/database.ts'
import { type Adapter, type AdapterRow, insistOn, refuseTransaction } from './adapter.ts'
import { checkDialect } from './dialect.ts'

/** A compiled query of raw SQL, as Kysely makes it. */
export interface KyselyQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: object
  readonly queryId: object
}

/** A transaction, from `transaction()` or `startTransaction()`. */
export interface KyselyTransactionLike {
  readonly isTransaction: boolean
  executeQuery(query: KyselyQuery): Promise<{ readonly rows: readonly unknown[] }>
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
      const { rows } = await tx.executeQuery({
        sql,
        parameters,
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
        queryId: { queryId: 'bartleby-outbox' },
      })
      // What was selected.
      return rows as readonly AdapterRow[]
    },
  }
}
