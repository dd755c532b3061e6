/** A connection of the benchmark's own to the store, for what the public interface has no call for: loading and checking. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { Dialect } from './sql.ts'

export type Row = Readonly<Record<string, unknown>>

export interface Loader {
  readonly dialect: Dialect
  run(text: string, ...values: readonly (string | number | null)[]): Promise<void>
  rows(text: string, ...values: readonly (string | number | null)[]): Promise<Row[]>
  /** Takes the indexes off the tables, those of keys excepted; what it returns puts them back. */
  dropIndexes(tables: readonly string[]): Promise<() => Promise<void>>
  /** Leaves the store as one that has been at rest for a while: statistics fresh, nothing to clean up. */
  calm(): Promise<void>
  close(): Promise<void>
}

/** `store` is what `Office.open` takes. */
export const openLoader = (store: string): Promise<Loader> =>
  store.startsWith('sqlite:') ? openSqlite(store.slice('sqlite:'.length)) : openPostgres(store)

async function openPostgres(url: string): Promise<Loader> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    `SET synchronous_commit = off; SET maintenance_work_mem = '1GB'; SET max_parallel_maintenance_workers = 1; SET work_mem = '64MB'`,
  )
  const run = async (text: string, ...values: readonly (string | number | null)[]) =>
    void (await client.query(text, [...values]))
  const rows = async (text: string, ...values: readonly (string | number | null)[]) =>
    (await client.query<Row>(text, [...values])).rows
  return {
    dialect: 'postgres',
    run,
    rows,
    async dropIndexes(tables) {
      const found = await rows(
        `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
         WHERE indrelid = ANY($1::regclass[]) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)`,
        `{${tables.map((table) => `bartleby.${table}`).join(',')}}`,
      )
      for (const { name } of found) await run(`DROP INDEX ${name}`)
      return async () => {
        for (const { definition } of found) await run(String(definition))
      }
    },
    async calm() {
      await run('VACUUM ANALYZE')
      await run('CHECKPOINT')
    },
    close: () => client.end(),
  }
}

async function openSqlite(path: string): Promise<Loader> {
  const store = new DatabaseSync(path)
  // Of the load only: the office opens the file with its own settings.
  store.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; PRAGMA temp_store = MEMORY')
  // `$1` would be a name here, not a place.
  const prepared = (text: string) => store.prepare(text.replaceAll(/\$(\d+)/g, '?$1'))
  const run: Loader['run'] = async (text, ...values) => void prepared(text).run(...values)
  const rows: Loader['rows'] = async (text, ...values) => prepared(text).all(...values)
  return {
    dialect: 'sqlite',
    run,
    rows,
    async dropIndexes(tables) {
      const found = await rows(
        `SELECT name, sql FROM sqlite_schema
         WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN (SELECT value FROM json_each($1))`,
        JSON.stringify(tables),
      )
      for (const { name } of found) await run(`DROP INDEX ${name}`)
      return async () => {
        for (const { sql } of found) await run(String(sql))
      }
    },
    async calm() {
      await run('ANALYZE')
      await rows('PRAGMA wal_checkpoint(TRUNCATE)')
    },
    async close() {
      store.close()
    },
  }
}
