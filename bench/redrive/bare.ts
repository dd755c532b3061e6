/**
 * The floor: letters move to a queue in plain SQL, a thousand to a transaction. Three tables with a primary key each and the same
 * payloads; nothing is asked about a letter, and nothing is counted.
 */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { openLoader } from '../letters/loader.ts'
import { type Dialect, words } from '../letters/sql.ts'
import { Meter } from '../meter.ts'
import type { BareFigure, TaskOf } from './task.ts'

const BATCH = 1_000

const tables = [
  `CREATE TABLE bare_letters (id bigint PRIMARY KEY, version int NOT NULL, status int NOT NULL, resolved_at bigint,
     resolved_by text, error_message text NOT NULL, payload bytea NOT NULL)`,
  'CREATE TABLE bare_items (id bigint PRIMARY KEY, created_at bigint NOT NULL, payload bytea NOT NULL)',
  `CREATE TABLE bare_history (letter bigint, version int, created_at bigint NOT NULL, operation text NOT NULL, actor text NOT NULL,
     PRIMARY KEY (letter, version))`,
]

/** As long as those of the loaded letters. */
const text = (length: number): string => `'${'x'.repeat(length)}'`

const insertLetters = (dialect: Dialect, letters: number): string =>
  `INSERT INTO bare_letters SELECT n, 1, 0, NULL, NULL, ${text(50)}, ${words[dialect].bytes(text(140))}
   FROM ${words[dialect].series(1, letters)}`

/** Of letters $1 to $2. */
const moves: readonly string[] = [
  'INSERT INTO bare_items SELECT id, CAST($3 AS bigint), payload FROM bare_letters WHERE id BETWEEN $1 AND $2 AND status = 0',
  `UPDATE bare_letters SET status = 1, version = version + 1, resolved_at = $3, resolved_by = 'bench'
   WHERE id BETWEEN $1 AND $2 AND status = 0`,
  `INSERT INTO bare_history SELECT id, version, CAST($3 AS bigint), 'retry', 'bench' FROM bare_letters WHERE id BETWEEN $1 AND $2`,
]

export async function measureBare({ store, letters }: TaskOf<'bare'>): Promise<BareFigure> {
  const loader = await openLoader(store)
  const { dialect } = loader
  for (const table of tables) await loader.run(table)
  await loader.run(insertLetters(dialect, letters))
  await loader.calm()
  const move = dialect === 'postgres' ? await postgresMoves(store) : sqliteMoves(store)
  const meter = await Meter.connect(dialect === 'postgres' ? store : null, [])
  await meter.start()
  for (let first = 1; first <= letters; first += BATCH)
    await move.batch(first, first + BATCH - 1, Date.now() * 1000)
  const { perSecond, walBytesPerItem } = await meter.finish(letters)
  await meter.close()
  await move.close()
  const [row] = await loader.rows('SELECT count(*) AS items FROM bare_items')
  await loader.close()
  if (Number(row?.items) !== letters) throw new Error(`${row?.items} of ${letters} letters were moved`)
  return { perSecond, walBytes: walBytesPerItem }
}

interface Moves {
  batch(first: number, last: number, nowUs: number): Promise<void>
  close(): Promise<void>
}

async function postgresMoves(url: string): Promise<Moves> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return {
    async batch(...values) {
      await client.query('BEGIN')
      for (const [at, text] of moves.entries()) await client.query({ name: `move-${at}`, text, values })
      await client.query('COMMIT')
    },
    close: () => client.end(),
  }
}

function sqliteMoves(store: string): Moves {
  const db = new DatabaseSync(store.slice('sqlite:'.length))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  const statements = moves.map((text) => db.prepare(text.replaceAll(/\$(\d)/g, '?$1')))
  return {
    async batch(...values) {
      db.exec('BEGIN IMMEDIATE')
      for (const statement of statements) statement.run(...values)
      db.exec('COMMIT')
    },
    async close() {
      db.close()
    },
  }
}
