/** The table of messages that is measured on: made as applications make it, filled by the million, counted at the end. */
import { DatabaseSync } from 'node:sqlite'
import { outboxSchema } from '../../src/sources/outbox/table/schema.ts'
import { type Loader, openLoader } from '../letters/loader.ts'

export const TABLE = 'outbox_messages'

/** What lies in a table, by state. */
export interface Books {
  readonly all: number
  readonly processed: number
  readonly dead: number
  readonly pending: number
}

const LOAD_CHUNK = 250_000

/** Makes an empty outbox, and the table of the business it belongs to. */
export async function makeTables(store: string): Promise<void> {
  const loader = await open(store)
  try {
    const [id, text] =
      loader.dialect === 'postgres'
        ? ['bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY', 'text']
        : ['INTEGER PRIMARY KEY', 'TEXT']
    const orders = `CREATE TABLE orders (id ${id}, customer ${text} NOT NULL, total integer NOT NULL)`
    const script = `${outboxSchema(loader.dialect)}; ${orders}`
    if (loader.dialect === 'postgres') await loader.run(script)
    else runScript(store.slice('sqlite:'.length), script)
  } finally {
    await loader.close()
  }
}

/** Adds `count` messages that wait, or that were processed long ago. Many are put in without the indexes, which are put back. */
export async function loadMessages(store: string, count: number, state: 'pending' | 'processed') {
  const loader = await open(store)
  try {
    const putIndexesBack = count > LOAD_CHUNK ? await dropIndexes(loader) : null
    for (let first = 1; first <= count; first += LOAD_CHUNK) {
      await loader.run(insertSeries(loader.dialect, first, Math.min(first + LOAD_CHUNK - 1, count), state))
      if (count > LOAD_CHUNK)
        console.error(`  loaded ${Math.min(first + LOAD_CHUNK - 1, count).toLocaleString('en')} ${state}`)
    }
    await putIndexesBack?.()
    await loader.calm()
  } finally {
    await loader.close()
  }
}

function insertSeries(dialect: Loader['dialect'], first: number, last: number, state: string): string {
  const columns = `tenant_id, event_type, payload, created_at, correlation_id${state === 'processed' ? ', processed_at' : ''}`
  const json = `'{"n":' || n || ',"text":"a dead letter office for the messages that nobody could process, counted exactly and never lost; a dead"}'`
  if (dialect === 'postgres') {
    const at = `now() - interval '1 hour' + n * interval '1 microsecond'`
    const processed = state === 'processed' ? `, ${at} + interval '1 second'` : ''
    return `INSERT INTO ${TABLE} (${columns}) SELECT 'tenant-' || n % 20, 'order.created', convert_to(${json}, 'UTF8'), ${at}, 'c-' || n${processed}
      FROM generate_series(${first}::bigint, ${last}::bigint) AS series (n) ORDER BY n`
  }
  const at = `CAST(unixepoch('subsec') * 1000000 AS INTEGER) - 3600000000 + n`
  const processed = state === 'processed' ? `, ${at} + 1000000` : ''
  return `INSERT INTO ${TABLE} (${columns})
    WITH RECURSIVE series (n) AS (VALUES (${first}) UNION ALL SELECT n + 1 FROM series WHERE n < ${last})
    SELECT 'tenant-' || n % 20, 'order.created', CAST(${json} AS BLOB), ${at}, 'c-' || n${processed} FROM series`
}

/** What the table holds. */
export async function readBooks(store: string): Promise<Books> {
  const loader = await open(store)
  try {
    const [row] = await loader.rows(
      `SELECT count(*) AS all_rows, count(processed_at) AS processed,
         count(CASE WHEN dead_at IS NOT NULL AND processed_at IS NULL THEN 1 END) AS dead,
         count(CASE WHEN dead_at IS NULL AND processed_at IS NULL THEN 1 END) AS pending FROM ${TABLE}`,
    )
    return {
      all: Number(row?.all_rows),
      processed: Number(row?.processed),
      dead: Number(row?.dead),
      pending: Number(row?.pending),
    }
  } finally {
    await loader.close()
  }
}

/** Throws unless everything that was added is there, in exactly one state; and so many are processed, when that is known. */
export async function reconcile(store: string, added: number, processed?: number): Promise<void> {
  const books = await readBooks(store)
  const sum = books.processed + books.dead + books.pending
  if (books.all !== added || sum !== added || books.processed !== (processed ?? books.processed))
    throw new Error(`${added} were added, ${processed ?? 'some'} are processed: ${JSON.stringify(books)}`)
}

/** Tells whether no message waits any more: a look at the first entry of the index of what is due, in its order. */
export async function watchEmptiness(store: string) {
  const loader = await open(store)
  const isPostgres = loader.dialect === 'postgres'
  const from = isPostgres ? TABLE : `${TABLE} INDEXED BY ${TABLE}_due`
  const order = isPostgres
    ? `ORDER BY coalesce(claimed_until, next_attempt_at, '-infinity'::timestamptz), created_at, id`
    : ''
  const look = `SELECT 1 FROM ${from} WHERE processed_at IS NULL AND dead_at IS NULL ${order} LIMIT 1`
  return {
    isEmpty: async () => (await loader.rows(look)).length === 0,
    close: () => loader.close(),
  }
}

async function open(store: string): Promise<Loader> {
  const loader = await openLoader(store)
  if (loader.dialect === 'sqlite') await loader.rows('PRAGMA busy_timeout = 10000')
  return loader
}

/** The indexes of the table, those of its constraints excepted. */
async function dropIndexes(loader: Loader): Promise<() => Promise<void>> {
  const found = await loader.rows(
    loader.dialect === 'postgres'
      ? `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
         WHERE indrelid = '${TABLE}'::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)`
      : `SELECT name, sql AS definition FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = '${TABLE}'`,
  )
  for (const { name } of found) await loader.run(`DROP INDEX ${name}`)
  return async () => {
    for (const { definition } of found) await loader.run(String(definition))
  }
}

/** The loader prepares what it runs, and a prepared statement of SQLite is a single one. */
function runScript(path: string, script: string): void {
  const file = new DatabaseSync(path)
  file.exec(`PRAGMA journal_mode = WAL; ${script}`)
  file.close()
}
