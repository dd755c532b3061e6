/** Knex, on PostgreSQL or SQLite. */
import type { Dialect } from '../../db/database.ts'
import {
  type Adapter,
  checkDialect,
  cutAtParameters,
  insistOn,
  refuseTransaction,
  rowsOf,
} from './adapter.ts'

/** What `knex.transaction` passes to its function. */
export interface KnexTransactionLike {
  readonly isTransaction?: boolean
  // The library's own type of a binding is a union that this one is not part of.
  raw(sql: string, bindings: never[]): PromiseLike<unknown>
}

/** Runs in transactions of Knex: `knex.transaction((tx) => outbox.add(tx, …))`. */
export function knexAdapter(dialect: Dialect = 'postgres'): Adapter<KnexTransactionLike> {
  checkDialect(dialect)
  return {
    dialect,
    async run(tx, sql, parameters) {
      insistOn(tx, 'raw', 'a transaction of Knex')
      if (tx.isTransaction !== true)
        refuseTransaction('it is no transaction; pass what knex.transaction() passes to its function')
      const { texts, places } = cutAtParameters(sql)
      // A question mark elsewhere, in a name, must not be taken for a parameter.
      const text = texts.map((part) => part.replaceAll('?', '\\?')).join('?')
      const bindings = places.map((place) => parameters[place])
      // Texts, bytes and null are among what the library takes.
      return rowsOf(await tx.raw(text, bindings as never[]))
    },
  }
}
