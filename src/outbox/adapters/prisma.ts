/** Prisma, on PostgreSQL or SQLite. */
import type { Dialect } from '../../db/database.ts'
import { type Adapter, type AdapterRow, checkDialect, insistOn, refuseTransaction } from './adapter.ts'

/** What `$transaction` passes to its function. */
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
