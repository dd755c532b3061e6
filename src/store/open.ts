import type { Database } from './database.ts'
import { PostgresDatabase, type PostgresOptions } from './postgres.ts'
import { SqliteDatabase } from './sqlite.ts'
import { parseStoreUrl } from './store-url.ts'

/** Opens `sqlite:PATH`, `sqlite::memory:` or `postgres://…`. PostgreSQL connects on first use. */
export function openDatabase(storeUrl: string, postgres: PostgresOptions): Database {
  const store = parseStoreUrl(storeUrl)
  switch (store.kind) {
    case 'memory':
      return new SqliteDatabase(':memory:')
    case 'sqlite':
      return new SqliteDatabase(store.path)
    case 'postgres':
      return new PostgresDatabase(store.url, postgres)
  }
}

export async function withDatabase<T>(
  storeUrl: string,
  work: (db: Database) => Promise<T>,
  poolSize = 1,
): Promise<T> {
  const db = openDatabase(storeUrl, { poolSize })
  try {
    return await work(db)
  } finally {
    await db.close()
  }
}
