/** Counts items the slow way, beside the books, in one snapshot of the store. */
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { declaredStatements } from '../../src/store/database.ts'

/** One partition: counts and the sums behind the average ages, in microseconds. */
export type Sheet = Readonly<
  Record<'ready' | 'leased' | 'scheduled' | 'held' | 'dead' | 'created' | 'deadline', bigint>
>

export interface Audit {
  /** What the books say and what is there, per part; parts where both are zero are left out. */
  readonly books: ReadonlyMap<number, Sheet>
  readonly found: ReadonlyMap<number, Sheet>
}

export interface Auditor {
  audit(): Promise<Audit>
  close(): Promise<void>
}

const FOUND = `
  SELECT part,
    count(CASE WHEN shelf = 0 AND leased = 0 THEN 1 END) AS ready,
    count(CASE WHEN shelf = 0 AND leased = 1 THEN 1 END) AS leased,
    count(CASE WHEN shelf = 1 THEN 1 END) AS scheduled,
    count(CASE WHEN shelf = 2 THEN 1 END) AS held,
    sum(dead) AS dead,
    sum(CASE WHEN shelf <> 1 THEN created_at END) AS created,
    sum(CASE WHEN leased = 1 THEN lease_deadline END) AS deadline
  FROM (
    SELECT part, shelf, leased, 0 AS dead, created_at, lease_deadline FROM bartleby.items
    UNION ALL
    SELECT part, shelf, leased, 1, laid_at, lease_deadline FROM bartleby.letters WHERE part IS NOT NULL
  ) AS lying GROUP BY part`

const PARTS = 'SELECT part FROM bartleby.partitions'

type Row = Readonly<Record<string, number | bigint | string | null>>

/** An auditor with a connection of its own on the store at `url`. */
export async function openAuditor(url: string): Promise<Auditor> {
  const read = declaredStatements().find(({ name }) => name === 'counts.read')
  if (read === undefined) throw new Error('the statement that reads counts has another name now')
  if (url.startsWith('sqlite:')) return sqliteAuditor(url.slice('sqlite:'.length), read.sqlite)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return {
    async audit() {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      const parts = (await client.query<Row>(PARTS)).rows.map(({ part }) => Number(part))
      const books = await client.query<Row>(read.postgres, [parts])
      const found = await client.query<Row>(FOUND)
      await client.query('COMMIT')
      return auditOf(parts, books.rows, found.rows)
    },
    close: () => client.end(),
  }
}

function sqliteAuditor(path: string, read: string): Auditor {
  const store = new DatabaseSync(path)
  const rows = (text: string, ...values: string[]): Row[] => {
    const statement = store.prepare(text.replaceAll('bartleby.', ''))
    statement.setReadBigInts(true)
    // Rows of numbers: these statements select nothing else.
    return statement.all(...values) as Row[]
  }
  return {
    async audit() {
      store.exec('BEGIN')
      const parts = rows(PARTS).map(({ part }) => Number(part))
      const books = rows(read, JSON.stringify(parts))
      const found = rows(FOUND)
      store.exec('COMMIT')
      return auditOf(parts, books, found)
    },
    close: async () => store.close(),
  }
}

function auditOf(parts: readonly number[], books: readonly Row[], found: readonly Row[]): Audit {
  const sheets = (rows: readonly Row[]) =>
    new Map(
      rows
        .filter(({ part }) => parts.includes(Number(part)))
        .map((row) => [Number(row.part), sheetOf(row)] as const)
        .filter(([, sheet]) => Object.values(sheet).some((value) => value !== 0n))
        .sort(([a], [b]) => a - b),
    )
  return { books: sheets(books), found: sheets(found) }
}

function sheetOf(row: Row): Sheet {
  const value = (name: string) => BigInt(row[name] ?? 0)
  const sum = (name: string) =>
    name in row ? value(name) : value(`${name}_s`) * 1_000_000n + value(`${name}_us`)
  return {
    ready: value('ready'),
    leased: value('leased'),
    scheduled: value('scheduled'),
    held: value('held'),
    dead: value('dead'),
    created: sum('created'),
    deadline: sum('deadline'),
  }
}
