/**
 * The stores that every promise must hold on. `fresh()` gives a store of its own without rows; `refuseWrites` makes
 * every write to it fail, as a full disk would, until `acceptWrites`.
 */
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { inject } from 'vitest'
import { createDatabase, query } from './postgres.ts'
import { quickFolder } from './quick-folder.ts'

export interface FreshStore {
  /** What `--store` takes. */
  readonly url: string
  /** To all tables, or to this one only. */
  refuseWrites(table?: string): Promise<void>
  acceptWrites(): Promise<void>
  dispose(): Promise<void>
}

export interface StoreKind {
  readonly name: 'sqlite' | 'postgres'
  fresh(): Promise<FreshStore>
}

/** A new database on the test run's PostgreSQL, with our tables: making them takes longer than most tests. */
export const freshPostgres = (): Promise<FreshStore> => postgresFrom(inject('postgresTemplate'))

/** One with nothing in it. */
export const barePostgres = (): Promise<FreshStore> => postgresFrom('template1')

async function postgresFrom(template: string): Promise<FreshStore> {
  const database = await createDatabase(inject('postgresUrl'), template)
  return {
    url: database.url,
    refuseWrites: (table) => queryThroughDeadlocks(database.url, postgresRefuse(table)),
    acceptWrites: () => queryThroughDeadlocks(database.url, POSTGRES_ACCEPT),
    dispose: () => database.drop(),
  }
}

/** Changing triggers locks whole tables, in the way of the server under test; the loser of a deadlock tries again. */
async function queryThroughDeadlocks(url: string, statements: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await query(url, statements)
    } catch (error) {
      const deadlocked = error instanceof pg.DatabaseError && error.code === '40P01'
      if (!deadlocked || tries === 5) throw error
    }
  }
}

const SQLITE_BYTES = 512_000_000

/** A new SQLite file in a temporary folder. */
export async function freshSqlite(): Promise<FreshStore> {
  const folder = await mkdtemp(join(await quickFolder(SQLITE_BYTES), 'bartleby-sqlite-'))
  return sqliteIn(folder)
}

/** One with our tables. */
async function filledSqlite(): Promise<FreshStore> {
  const folder = await mkdtemp(join(await quickFolder(SQLITE_BYTES), 'bartleby-sqlite-'))
  await copyFile(inject('sqliteTemplate'), fileIn(folder))
  return sqliteIn(folder)
}

const fileIn = (folder: string): string => join(folder, 'store.db')

function sqliteIn(folder: string): FreshStore {
  const file = fileIn(folder)
  return {
    url: `sqlite:${file}`,
    refuseWrites: (only) =>
      onSqliteTables(file, (table) => (only === undefined || only === table ? sqliteRefuse(table) : [])),
    acceptWrites: () => onSqliteTables(file, sqliteAccept),
    dispose: () => rm(folder, { recursive: true, force: true }),
  }
}

export const stores: readonly StoreKind[] = [
  { name: 'sqlite', fresh: filledSqlite },
  { name: 'postgres', fresh: freshPostgres },
]

/** The same without tables. */
export const bareStores: readonly StoreKind[] = [
  { name: 'sqlite', fresh: freshSqlite },
  { name: 'postgres', fresh: barePostgres },
]

// Triggers on every table, whatever the tables are: the tests know nothing of the schema.
const postgresRefuse = (only?: string) => `
  CREATE OR REPLACE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
  DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg_toast%'
        ${only === undefined ? '' : `AND c.relname = '${only}'`}
    LOOP
      EXECUTE format('CREATE TRIGGER refuse_write BEFORE INSERT OR UPDATE OR DELETE ON %s
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_write()', t.name);
    END LOOP; END $$`

const POSTGRES_ACCEPT = 'DROP FUNCTION IF EXISTS refuse_write() CASCADE'

const sqliteRefuse = (table: string) =>
  ['INSERT', 'UPDATE', 'DELETE'].map(
    (verb) => `CREATE TRIGGER "refuse_${verb}_${table}" BEFORE ${verb} ON "${table}"
      BEGIN SELECT RAISE(ABORT, 'no space left on device'); END`,
  )

const sqliteAccept = (table: string) =>
  ['INSERT', 'UPDATE', 'DELETE'].map((verb) => `DROP TRIGGER IF EXISTS "refuse_${verb}_${table}"`)

async function onSqliteTables(file: string, statements: (table: string) => string[]): Promise<void> {
  const store = new DatabaseSync(file)
  try {
    await beginImmediate(store)
    const tables = store
      // Not the virtual ones of the text index, nor what they keep their content in: those take no triggers.
      .prepare(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
      )
      .all()
    for (const { name } of tables) for (const sql of statements(String(name))) store.exec(sql)
    store.exec('COMMIT')
  } finally {
    store.close()
  }
}

/** Waits for the lock without blocking: whoever holds it may live on the same event loop. */
async function beginImmediate(store: DatabaseSync): Promise<void> {
  store.exec('PRAGMA busy_timeout = 0')
  for (let attempt = 1; ; attempt++) {
    try {
      return store.exec('BEGIN IMMEDIATE')
    } catch (error) {
      if (attempt === 2000) throw error
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
}
