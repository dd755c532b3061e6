/** Opens the store that a URL names. */

import type { Database } from './database.ts'
import { PostgresDatabase, type PostgresOptions } from './postgres.ts'
import { SqliteDatabase } from './sqlite.ts'
import { parseStoreUrl } from './store-url.ts'

/** Opens `sqlite:PATH`, `sqlite::memory:` or `postgres://…`. Connections to PostgreSQL are made on first use. */
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
