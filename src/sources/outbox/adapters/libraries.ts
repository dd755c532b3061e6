/** Adapters for libraries, known by their shape only; that of `pg` is in pg.ts. */
import type { Dialect } from '../../../store/database.ts'
import { refuse } from '../refusal.ts'
import {
  type Adapter,
  type AdapterRow,
  checkDialect,
  cutAtParameters,
  insistOn,
  refuseTransaction,
  rowsOf,
} from './adapter.ts'

export interface DrizzleSqlLike<Query> {
  raw(text: string): Query
  param(value: unknown): unknown
  // The library's own type of a chunk is not known here.
  join(chunks: never[]): Query
}

/** PostgreSQL's have `execute`, SQLite's have `all`. */
export interface DrizzleTransactionLike {
  rollback(): never
  // Either takes what `sql` makes.
  execute?(query: never): PromiseLike<unknown>
  all?(query: never): unknown
}

/** Runs in transactions of Drizzle, with any of its asynchronous drivers: `db.transaction((tx) => outbox.add(tx, …))`. Give it the `sql` of `drizzle-orm`. */
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
        // `param` makes any value one parameter.
        return place === undefined ? [sql.raw(part)] : [sql.raw(part), sql.param(parameters[place])]
      })
      // Made by `sql` for its own library.
      const query = sql.join(chunks as never[]) as never
      return rowsOf(await (dialect === 'postgres' ? tx.execute?.(query) : tx.all?.(query)))
    },
  }
}

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
      // A question mark in a name is no parameter.
      const text = texts.map((part) => part.replaceAll('?', '\\?')).join('?')
      const bindings = places.map((place) => parameters[place])
      // The library takes texts, bytes and null.
      return rowsOf(await tx.raw(text, bindings as never[]))
    },
  }
}

export interface KyselyTransactionLike {
  readonly isTransaction: boolean
  // The library's own type of a compiled query is not known here.
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>
}

/**
 * Runs in transactions of Kysely: `db.transaction().execute((tx) => outbox.add(tx, …))`. Result names are ones that no
 * plugin changes.
 */
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
      return rows as readonly AdapterRow[]
    },
  }
}

export interface PostgresSqlLike {
  unsafe(
    query: string,
    // The library's own type is a union of everything that can be serialised.
    parameters: never[],
    options: { prepare: boolean },
  ): PromiseLike<readonly AdapterRow[]>
}

/** Runs in transactions of postgres.js: `sql.begin((tx) => outbox.add(tx, …))`. */
export function postgresAdapter(): Adapter<PostgresSqlLike> {
  return {
    dialect: 'postgres',
    async run(tx, sql, parameters) {
      insistOn(tx, 'unsafe', 'a transaction of postgres.js')
      if ('begin' in tx)
        refuseTransaction('it is a pool of connections; pass what sql.begin() passes to its function')
      // The library takes texts, bytes and null. It prepares only where its own `prepare` allows; unprepared statements
      // take two round trips.
      return await tx.unsafe(sql, [...parameters] as never[], { prepare: true })
    },
  }
}

export interface PrismaTransactionLike {
  $queryRawUnsafe<Rows = unknown>(query: string, ...values: unknown[]): PromiseLike<Rows>
}

/** Runs in transactions of Prisma: `prisma.$transaction((tx) => outbox.add(tx, …))`. */
export function prismaAdapter(dialect: Dialect = 'postgres'): Adapter<PrismaTransactionLike> {
  checkDialect(dialect)
  return {
    dialect,
    async run(tx, sql, parameters) {
      insistOn(tx, '$queryRawUnsafe', 'a transaction of Prisma')
      // A client can connect, a transaction cannot.
      if (typeof Reflect.get(tx, '$connect') === 'function')
        refuseTransaction('it is the client; pass what $transaction() passes to its function')
      return await tx.$queryRawUnsafe<readonly AdapterRow[]>(sql, ...parameters)
    },
  }
}

interface StatementLike {
  // The library's own type of a value is a union that `unknown` is not part of.
  all(...values: never[]): unknown[]
}

export interface SqliteDatabaseLike {
  readonly isTransaction: boolean
  prepare(sql: string): StatementLike
}

/** Beyond so many, statements are prepared anew. */
const MOST_STATEMENTS = 100

/** Runs on connections of `node:sqlite`, whose transactions belong to the connection: `BEGIN`, `add(connection, …)`, `COMMIT`. */
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
      // The library takes texts, bytes and null; rows have the selected columns.
      return statementOf(connection, sql).all(...(parameters as never[])) as AdapterRow[]
    },
  }
}
