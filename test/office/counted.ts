/** The letters of a store, counted by the store itself: what `/api/counts` has to be equal to. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { StoreKind } from '../world/stores.ts'

/** Counts by everything that letters are counted by, as text; zeros are left out. */
export type Counts = Readonly<Record<string, number>>

const STATUSES = ['Pending', 'Resolved', 'Expired']

const countLetters = (schema: string, condition = 'true') => `
  SELECT d.source, d.engine, d.queue, s.fingerprint, l.status, count(*) AS count
  FROM ${schema}letters l JOIN ${schema}drawers d ON d.id = l.drawer JOIN ${schema}signatures s ON s.id = d.signature
  WHERE ${condition}
  GROUP BY d.source, d.engine, d.queue, s.fingerprint, l.status`

const UNCONFIRMED = `l.resolution = 'retry' AND l.confirmed_at IS NULL`

/** What the books say, folded or not, at the same moment. */
const readBooks = (schema: string, tables: string, condition = 't.status < 3') => `
  SELECT d.source, d.engine, d.queue, s.fingerprint, t.status, sum(t.letters) AS count
  FROM (${tables}) t JOIN ${schema}drawers d ON d.id = t.drawer JOIN ${schema}signatures s ON s.id = d.signature
  WHERE ${condition}
  GROUP BY d.source, d.engine, d.queue, s.fingerprint, t.status`

/** Of all statuses in the books the one of letters that were sent back and of which nothing was heard. */
const IN_BOOKS_UNCONFIRMED = 't.status = 5'

/** Transitions by what activity calls them, as history has them. */
const countHistory = (schema: string) => `
  SELECT CASE operation WHEN 'capture' THEN 0 WHEN 'retry' THEN 1 WHEN 'confirm' THEN 2 WHEN 'reopen' THEN 3
    WHEN 'discard' THEN 4 WHEN 'expire' THEN 5 END AS act, count(*) AS count
  FROM ${schema}history h JOIN ${schema}history_series s ON s.id = h.series
  WHERE h.letter_version IS NOT NULL AND operation IN ('capture', 'retry', 'confirm', 'reopen', 'discard', 'expire')
  GROUP BY act ORDER BY act`

/** What activity says ever happened, folded or not. */
const readActivity = (tables: string) =>
  `SELECT act, sum(letters) AS count FROM (${tables}) t GROUP BY act ORDER BY act`

/** Of the counts of places, by what activity calls them. */
const acts = (from: string) =>
  `SELECT CASE status WHEN 4 THEN 0 ELSE status - 5 END AS act, letters FROM ${from} WHERE status IN (4, 6, 7, 8, 9, 10)`
const POSTGRES_ACTIVITY = `${acts('bartleby.place_totals')} UNION ALL ${acts('bartleby.letter_changes')}`
const SQLITE_ACTIVITY = acts('place_totals')

const POSTGRES_BOOKS = `SELECT drawer, status, letters FROM bartleby.letter_totals
  UNION ALL SELECT drawer, status, letters FROM bartleby.letter_changes`
const SQLITE_BOOKS = 'SELECT drawer, status, letters FROM letter_totals'

interface Row {
  readonly source: unknown
  readonly engine: unknown
  readonly queue: unknown
  readonly fingerprint: unknown
  readonly status: unknown
  readonly count: unknown
}

export const keyOf = (
  source: unknown,
  engine: unknown,
  queue: unknown,
  signature: unknown,
  status: unknown,
): string => [source, engine, queue === '' ? null : queue, signature, status].join(' | ')

interface ActRow {
  readonly act: unknown
  readonly count: unknown
}

const toActs = (rows: readonly ActRow[]): Counts =>
  Object.fromEntries(rows.map(({ act, count }) => [String(act), Number(count)]))

function toCounts(rows: readonly Row[]): Counts {
  const entries = rows.map((row): [string, number] => [
    keyOf(row.source, row.engine, row.queue, row.fingerprint, STATUSES[Number(row.status)]),
    Number(row.count),
  ])
  return Object.fromEntries(entries.filter(([, count]) => count !== 0).sort(([a], [b]) => (a < b ? -1 : 1)))
}

export interface Census {
  /** Letters, counted one by one. */
  readonly letters: Counts
  /** What the books say at the same moment. */
  readonly books: Counts
  /** Those that were sent back and of which nothing was heard: counted, and by the books. */
  readonly unconfirmed: { readonly letters: readonly number[]; readonly books: readonly number[] }
  /** Transitions in history, and by activity. */
  readonly acts: { readonly history: Counts; readonly activity: Counts }
}

/** The numbers alone: what the books have no name for has none here. */
const numbersOf = (rows: readonly Row[]): number[] =>
  rows
    .map((row): [string, number] => [
      keyOf(row.source, row.engine, row.queue, row.fingerprint, ''),
      Number(row.count),
    ])
    .filter(([, count]) => count !== 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, count]) => count)

export interface Counter {
  /** Letters and books, both at one moment of the store. */
  census(): Promise<Census>
  close(): Promise<void>
}

/** A second pair of eyes on a store that is in use. */
export async function openCounter(kind: StoreKind['name'], url: string): Promise<Counter> {
  return kind === 'sqlite' ? sqliteCounter(url) : postgresCounter(url)
}

async function postgresCounter(url: string): Promise<Counter> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return {
    census: async () => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      try {
        const letters = await client.query<Row>(countLetters('bartleby.'))
        const books = await client.query<Row>(readBooks('bartleby.', POSTGRES_BOOKS))
        const unheard = await client.query<Row>(countLetters('bartleby.', UNCONFIRMED))
        const unheardInBooks = await client.query<Row>(
          readBooks('bartleby.', POSTGRES_BOOKS, IN_BOOKS_UNCONFIRMED),
        )
        const history = await client.query<ActRow>(countHistory('bartleby.'))
        const activity = await client.query<ActRow>(readActivity(POSTGRES_ACTIVITY))
        return {
          letters: toCounts(letters.rows),
          books: toCounts(books.rows),
          unconfirmed: { letters: numbersOf(unheard.rows), books: numbersOf(unheardInBooks.rows) },
          acts: { history: toActs(history.rows), activity: toActs(activity.rows) },
        }
      } finally {
        await client.query('COMMIT')
      }
    },
    close: () => client.end(),
  }
}

function sqliteCounter(url: string): Counter {
  const file = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true })
  file.exec('PRAGMA busy_timeout = 5000')
  // The columns are those of the statements above.
  const rows = (statement: string) => file.prepare(statement).all() as unknown as Row[]
  const acts = (statement: string) => file.prepare(statement).all() as unknown as ActRow[]
  return {
    census: async () => {
      file.exec('BEGIN')
      try {
        return {
          letters: toCounts(rows(countLetters(''))),
          books: toCounts(rows(readBooks('', SQLITE_BOOKS))),
          unconfirmed: {
            letters: numbersOf(rows(countLetters('', UNCONFIRMED))),
            books: numbersOf(rows(readBooks('', SQLITE_BOOKS, IN_BOOKS_UNCONFIRMED))),
          },
          acts: {
            history: toActs(acts(countHistory(''))),
            activity: toActs(acts(readActivity(SQLITE_ACTIVITY))),
          },
        }
      } finally {
        file.exec('COMMIT')
      }
    },
    close: async () => file.close(),
  }
}
