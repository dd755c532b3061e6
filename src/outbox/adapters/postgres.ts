/** `postgres` (postgres.js). */
import { type Adapter, type AdapterRow, insistOn, refuseTransaction } from './adapter.ts'

/** What `sql.begin` passes to its function, or a reserved connection with a transaction begun on it. */
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
      // Texts, bytes and null are among what the library takes. It prepares only where its own `prepare` allows it; a
      // statement that is not prepared takes two round trips.
      return await tx.unsafe(sql, [...parameters] as never[], { prepare: true })
    },
  }
}
