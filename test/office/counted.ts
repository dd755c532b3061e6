/** The letters of a store, counted by the store itself: what `/api/counts` has to be equal to. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import type { StoreKind } from '../harness/stores.ts'

/** Counts by everything that letters are counted by, as text; zeros are left out. */
export type Counts = Readonly<Record<string, number>>

const STATUSES = ['Pending', 'Resolved', 'Expired']

const countLetters = (schema: string) => `
  SELECT d.source, d.engine, d.queue, s.fingerprint, l.status, count(*) AS count
  FROM ${schema}letters l JOIN ${schema}drawers d ON d.id = l.drawer JOIN ${schema}signatures s ON s.id = d.signature
  GROUP BY d.source, d.engine, d.queue, s.fingerprint, l.status`

/** What the books say, folded or not, at the same moment. */
const readBooks = (schema: string, tables: string) => `
  SELECT d.source, d.engine, d.queue, s.fingerprint, t.status, sum(t.letters) AS count
  FROM (${tables}) t JOIN ${schema}drawers d ON d.id = t.drawer JOIN ${schema}signatures s ON s.id = d.signature
  WHERE t.status < 3
  GROUP BY d.source, d.engine, d.queue, s.fingerprint, t.status`

const POSTGRES_BOOKS = `SELECT drawer, status, letters FROM bartleby.letter_totals
  UNION ALL SELECT drawer, status, letters FROM bartleby.letter_deltas`
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
}

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
        return { letters: toCounts(letters.rows), books: toCounts(books.rows) }
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
  return {
    census: async () => {
      file.exec('BEGIN')
      try {
        return {
          letters: toCounts(rows(countLetters(''))),
          books: toCounts(rows(readBooks('', SQLITE_BOOKS))),
        }
      } finally {
        file.exec('COMMIT')
      }
    },
    close: async () => file.close(),
  }
}
