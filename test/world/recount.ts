/** A store counted the slow way, row by row, beside its books: both at one moment of it, whoever writes meanwhile. */
import { type PartitionCounts, readCounts } from '../../src/queues/counts.ts'
import { type Database, type Integer, type Session, type Statement, sql } from '../../src/store/database.ts'

export interface Compared<T> {
  readonly books: T
  readonly found: T
}

const PARTS = sql('test.parts', 'SELECT part FROM bartleby.partitions ORDER BY part')

const COUNT_ITEMS = sql(
  'test.countItems',
  `SELECT part,
     count(CASE WHEN shelf = 0 AND leased = 0 THEN 1 END) AS ready, count(CASE WHEN shelf = 0 AND leased = 1 THEN 1 END) AS leased,
     count(CASE WHEN shelf = 1 THEN 1 END) AS scheduled, count(CASE WHEN shelf = 2 THEN 1 END) AS held, sum(dead) AS dead,
     sum(CASE WHEN shelf <> 1 THEN created_at END) AS created, sum(CASE WHEN leased = 1 THEN lease_deadline END) AS deadline
   FROM (
     SELECT part, shelf, leased, 0 AS dead, created_at, lease_deadline FROM bartleby.items
     UNION ALL
     SELECT part, shelf, leased, 1, laid_at, lease_deadline FROM bartleby.letters WHERE part IS NOT NULL
   ) AS lying GROUP BY part`,
  { bigints: true },
)

type ItemRow = Readonly<Record<string, Integer | null>>

/** The counts of all partitions, with the sums behind the average ages, in the order of their numbers. */
export function countPartitions(db: Database): Promise<Compared<readonly PartitionCounts[]>> {
  return db.snapshot('test.recount', async (session) => {
    const rows = await session.rows<{ part: Integer }>(PARTS)
    const parts = rows.map(({ part }) => Number(part))
    const counted = await session.rows<ItemRow>(COUNT_ITEMS)
    const byPart = new Map(counted.map((row) => [Number(row.part), row]))
    return {
      books: await readCounts(session, parts),
      found: parts.map((part) => countsOf(byPart.get(part) ?? {})),
    }
  })
}

const countsOf = (row: ItemRow): PartitionCounts => ({
  ready: Number(row.ready ?? 0),
  leased: Number(row.leased ?? 0),
  scheduled: Number(row.scheduled ?? 0),
  held: Number(row.held ?? 0),
  dead: Number(row.dead ?? 0),
  createdSumUs: BigInt(row.created ?? 0),
  deadlineSumUs: BigInt(row.deadline ?? 0),
})

/** Numbers by what they are of; zeros are left out. */
export type Counts = Readonly<Record<string, number>>

const DRAWN =
  'JOIN bartleby.drawers ON drawers.id = drawer JOIN bartleby.signatures ON signatures.id = signature'
const DRAWER = 'source, drawers.engine, queue, fingerprint'

const COUNT_LETTERS = sql(
  'test.countLettersOfDrawers',
  `SELECT ${DRAWER}, status, count(*) AS count FROM (
     SELECT drawer, status FROM bartleby.letters
     UNION ALL
     SELECT drawer, 5 FROM bartleby.letters WHERE resolution = 'retry' AND confirmed_at IS NULL
   ) AS counted ${DRAWN} GROUP BY ${DRAWER}, status`,
)

/** What was not folded yet stands beside the totals, but on SQLite, where nothing waits for that. */
const totalled = (
  name: string,
  table: string,
  column: string,
  text: (totals: string) => string,
): Statement => {
  const totals = `SELECT ${column}, status, letters FROM bartleby.${table}`
  const changes = `${totals} UNION ALL SELECT ${column}, status, letters FROM bartleby.letter_changes`
  return sql(name, { postgres: text(`(${changes}) AS totals`), sqlite: text(`(${totals}) AS totals`) })
}

const READ_LETTERS = totalled(
  'test.readLetterBooks',
  'letter_totals',
  'drawer',
  (totals) =>
    `SELECT ${DRAWER}, status, sum(letters) AS count FROM ${totals} ${DRAWN}
     WHERE status IN (0, 1, 2, 5) GROUP BY ${DRAWER}, status`,
)

const COUNT_ACTS = sql(
  'test.countActs',
  `SELECT operation, count(*) AS count FROM bartleby.history JOIN bartleby.history_series ON history_series.id = series
   WHERE letter_version IS NOT NULL AND operation IN ('capture', 'retry', 'confirm', 'reopen', 'discard', 'expire')
   GROUP BY operation`,
)

const READ_ACTS = totalled(
  'test.readActs',
  'place_totals',
  'place',
  (totals) =>
    `SELECT CASE status WHEN 4 THEN 'capture' WHEN 6 THEN 'retry' WHEN 7 THEN 'confirm' WHEN 8 THEN 'reopen' WHEN 9 THEN 'discard'
       WHEN 10 THEN 'expire' END AS operation, sum(letters) AS count
     FROM ${totals} WHERE status IN (4, 6, 7, 8, 9, 10) GROUP BY status`,
)

/** As lists call them; the last is of those that were sent back and of which nothing was heard. */
const STATUSES: Readonly<Record<number, string>> = {
  0: 'Pending',
  1: 'Resolved',
  2: 'Expired',
  5: 'unconfirmed',
}

type CountRow = Readonly<Record<'source' | 'engine' | 'queue' | 'fingerprint' | 'operation', unknown>> & {
  readonly status: Integer
  readonly count: Integer
}

export const drawerKey = (...of: readonly unknown[]): string =>
  of.map((part) => (part === '' ? null : part)).join(' | ')

export const countsFrom = (entries: readonly (readonly [key: string, count: number])[]): Counts =>
  Object.fromEntries(entries.filter(([, count]) => count !== 0).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Letters by drawer and status, and what was ever done to them, as history and as activity has it. */
export function countLetters(
  db: Database,
): Promise<{ readonly letters: Compared<Counts>; readonly acts: Compared<Counts> }> {
  return db.snapshot('test.recount', async (session) => ({
    letters: {
      found: await counts(session, COUNT_LETTERS, keyOfLetters),
      books: await counts(session, READ_LETTERS, keyOfLetters),
    },
    acts: {
      found: await counts(session, COUNT_ACTS, ({ operation }) => String(operation)),
      books: await counts(session, READ_ACTS, ({ operation }) => String(operation)),
    },
  }))
}

const keyOfLetters = ({ source, engine, queue, fingerprint, status }: CountRow): string =>
  drawerKey(source, engine, queue, fingerprint, STATUSES[Number(status)])

async function counts(
  session: Session,
  statement: Statement,
  keyOf: (row: CountRow) => string,
): Promise<Counts> {
  const rows = await session.rows<CountRow>(statement)
  return countsFrom(rows.map((row) => [keyOf(row), Number(row.count)]))
}
