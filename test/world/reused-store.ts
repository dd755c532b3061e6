/**
 * One database of PostgreSQL for all tests of a `describe`, emptied before each: making and dropping one takes longer than most tests.
 * What is new in it or changed in its shape, and not only in its rows, makes it give way to another.
 */
import pg from 'pg'
import { afterAll } from 'vitest'
import type { FreshStore, StoreKind } from './stores.ts'

/** The same kind of store; its fresh ones are one and the same database, as long as one is asked for at a time. */
export function reused(kind: StoreKind): StoreKind {
  // A file is made in no time.
  if (kind.name === 'sqlite') return kind
  let kept: Kept | null = null
  let inUse = false
  afterAll(() => kept?.place.dispose())
  return {
    name: kind.name,
    async fresh() {
      if (inUse) return kind.fresh()
      inUse = true
      if (kept !== null && !(await isEmptied(kept))) {
        await kept.place.dispose()
        kept = null
      }
      kept ??= await keep(await kind.fresh())
      const dispose = async () => {
        inUse = false
      }
      return { ...kept.place, dispose }
    },
  }
}

interface Kept {
  readonly place: FreshStore
  /** What tells its tables, columns, indexes, functions and triggers from others. */
  readonly shape: string
}

async function keep(place: FreshStore): Promise<Kept> {
  return onConnection(place, async (client) => {
    await client.query(REMEMBER)
    return { place, shape: await shapeOf(client) }
  })
}

/** Empties it; false when that does not make it what it was. */
function isEmptied({ place, shape }: Kept): Promise<boolean> {
  return onConnection(place, async (client) => {
    // As a database that is dropped does with whoever is still connected.
    await client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    await client.query(CLEAR)
    if ((await shapeOf(client)) !== shape) return false
    await client.query(EMPTY)
    return true
  })
}

async function onConnection<T>({ url }: FreshStore, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const OURS = `('bartleby', 'kept')`

async function shapeOf(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ shape: string }>(`
    WITH classes AS (
      SELECT oid FROM pg_class WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ${OURS}))
    SELECT md5(string_agg(part, ' ' ORDER BY part)) AS shape FROM (
      SELECT 'class ' || oid FROM classes
      UNION ALL SELECT 'column ' || attrelid || ' ' || attnum || attisdropped || attnotnull || atttypid FROM pg_attribute
        WHERE attnum > 0 AND attrelid IN (SELECT oid FROM classes)
      UNION ALL SELECT 'trigger ' || oid FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM classes)
      UNION ALL SELECT 'constraint ' || oid FROM pg_constraint WHERE conrelid IN (SELECT oid FROM classes)
      UNION ALL SELECT 'function ' || oid FROM pg_proc
        WHERE pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ${OURS})
      UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_'
    ) AS parts (part)`)
  return rows[0]?.shape ?? ''
}

/** What is there before any test: tables and functions, rows, numbers. */
const REMEMBER = `
  CREATE SCHEMA kept;
  CREATE TABLE kept.objects AS SELECT oid FROM pg_class UNION ALL SELECT oid FROM pg_proc;
  CREATE TABLE kept.numbers AS
    SELECT schemaname, sequencename, last_value FROM pg_sequences WHERE schemaname = 'bartleby';
  DO $$ DECLARE t record; filled boolean; BEGIN
    FOR t IN SELECT relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'bartleby' AND c.relkind = 'r'
    LOOP
      EXECUTE format('SELECT EXISTS (SELECT FROM bartleby.%I)', t.name) INTO filled;
      IF filled THEN EXECUTE format('CREATE TABLE kept.%I AS TABLE bartleby.%I', 'of_' || t.name, t.name); END IF;
    END LOOP;
  END $$`

/** Tables and functions that tests made, those of outboxes among them. */
const CLEAR = `
  DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname IN ('public', 'bartleby') AND c.relkind IN ('r', 'p') AND c.oid NOT IN (SELECT oid FROM kept.objects)
    LOOP
      EXECUTE format('DROP TABLE %s CASCADE', t.name);
    END LOOP;
    FOR t IN SELECT p.oid::regprocedure AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      WHERE n.nspname IN ('public', 'bartleby') AND p.oid NOT IN (SELECT oid FROM kept.objects)
    LOOP
      EXECUTE format('DROP FUNCTION %s CASCADE', t.name);
    END LOOP;
  END $$`

/** New files take longer than to delete a few rows; many would leave pages behind that others read. */
const EMPTY = `
  DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT relname AS name, pg_relation_size(c.oid) AS bytes
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'bartleby' AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0
    LOOP
      EXECUTE format(CASE WHEN t.bytes > 32768 THEN 'TRUNCATE bartleby.%I' ELSE 'DELETE FROM bartleby.%I' END, t.name);
    END LOOP;
    FOR t IN SELECT substr(relname, 4) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'kept' AND c.relname LIKE 'of\\_%'
    LOOP
      EXECUTE format('INSERT INTO bartleby.%I OVERRIDING SYSTEM VALUE SELECT * FROM kept.%I', t.name, 'of_' || t.name);
    END LOOP;
    FOR t IN SELECT now.schemaname, now.sequencename AS name, numbers.last_value
      FROM pg_sequences AS now JOIN kept.numbers USING (schemaname, sequencename)
      WHERE now.last_value IS DISTINCT FROM numbers.last_value
    LOOP
      IF t.last_value IS NULL THEN EXECUTE format('ALTER SEQUENCE %I.%I RESTART', t.schemaname, t.name);
      ELSE PERFORM setval(format('%I.%I', t.schemaname, t.name)::regclass, t.last_value);
      END IF;
    END LOOP;
  END $$`
