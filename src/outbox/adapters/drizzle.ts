/** Drizzle, with any of its drivers whose transactions are asynchronous. */
import type { Dialect } from '../../db/database.ts'
import { refuse } from '../refusal.ts'
import {
  type Adapter,
  checkDialect,
  cutAtParameters,
  insistOn,
  refuseTransaction,
  rowsOf,
} from './adapter.ts'

/** Drizzle's `sql`; `Query` is what it makes. */
export interface DrizzleSqlLike<Query> {
  raw(text: string): Query
  param(value: unknown): unknown
  // The library's own type of a chunk is not known here.
  join(chunks: never[]): Query
}

/** A transaction: PostgreSQL's have `execute`, SQLite's have `all`. */
export interface DrizzleTransactionLike {
  rollback(): never
  // Either takes what `sql` makes.
  execute?(query: never): PromiseLike<unknown>
  all?(query: never): unknown
}

/** Runs in transactions of Drizzle: `db.transaction((tx) => outbox.add(tx, …))`. Give it the `sql` of `drizzle-orm`. */
export function drizzleAdapter<Query>(
  sql: DrizzleSqlLike<Query>,
  dialect: Dialect = 'postgres',
): Adapter<DrizzleTransactionLike> {
  if (typeof sql?.raw !== 'function' || typeof sql.param !== 'function' || typeof sql.join !== 'function')
    refuse('sql', 'it is not the sql of drizzle-orm')
  checkDialect(dialect)
  return {
    dialect,
    async run(tx, text, parameters) {
      insistOn(tx, dialect === 'postgres' ? 'execute' : 'all', `a transaction of Drizzle on ${dialect}`)
      if (typeof tx.rollback !== 'function')
        refuseTransaction('it is no transaction; pass what db.transaction() passes to its function')
      const { texts, places } = cutAtParameters(text)
      const chunks = texts.flatMap((part, at) => {
        const place = places[at]
        // As `param`, so that a value is one parameter whatever it is.
        return place === undefined ? [sql.raw(part)] : [sql.raw(part), sql.param(parameters[place])]
      })
      // Both are made by `sql` for the library that it belongs to.
      const query = sql.join(chunks as never[]) as never
      return rowsOf(await (dialect === 'postgres' ? tx.execute?.(query) : tx.all?.(query)))
    },
  }
}
