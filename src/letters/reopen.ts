/** Letters that are locked, and what they are while they are. The order of locks is that of `bury.ts`. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, integerList, sql, type Transaction } from '../db/database.ts'
import { type Act, type LetterId, letterId, type SourceName, STATUS } from './letter.ts'

/** Letters by primary key, locked in the order of their numbers. */
const lockCases = sql('letters.lockCases', {
  postgres: 'SELECT id FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE',
  sqlite: 'SELECT id FROM letters WHERE id IN (SELECT value FROM json_each($1))',
})

/** What they say; as in `lockLetter`, not by the statement that waits for their locks. */
const readCases = sql(
  'letters.readCases',
  {
    postgres: `SELECT id, drawer, status, resolved_at, resolution, confirmed_at, redrive, engine, dead_queue, sent_as,
                 (SELECT source FROM bartleby.drawers WHERE drawers.id = drawer) AS source,
                 (SELECT queue FROM bartleby.drawers WHERE drawers.id = drawer) AS queue
               FROM bartleby.letters WHERE id = ANY($1::bigint[]) ORDER BY id`,
    sqlite: `SELECT letters.id, drawer, status, resolved_at, resolution, confirmed_at, redrive, source, letters.engine, queue,
               dead_queue, sent_as
             FROM letters JOIN drawers ON drawers.id = letters.drawer
             WHERE letters.id IN (SELECT value FROM json_each($1)) ORDER BY letters.id`,
  },
  { bigints: true },
)

export interface CaseRow {
  readonly id: LetterId
  readonly drawer: number
  readonly status: number
  readonly resolvedAt: Instant | null
  readonly resolution: Act | null
  readonly confirmedAt: Instant | null
  /** The redrive that sent it back last. */
  readonly redrive: number | null
  readonly source: SourceName
  readonly engine: string
  readonly queue: string
  /** The dead queue that it belongs to. */
  readonly deadQueue: string | null
  /** What its latest retry made. */
  readonly sentAs: string | null
}

interface StoredCase {
  readonly id: Integer
  readonly drawer: Integer
  readonly status: Integer
  readonly resolved_at: Integer | null
  readonly resolution: Act | null
  readonly confirmed_at: Integer | null
  readonly redrive: Integer | null
  readonly source: SourceName
  readonly engine: string
  readonly queue: string
  readonly dead_queue: string | null
  readonly sent_as: string | null
}

/** A letter as it is once its item has been sent back. */
export const sentBack = (letter: CaseRow): CaseRow => ({
  ...letter,
  status: STATUS.Resolved,
  resolution: 'retry',
  confirmedAt: null,
})

/** A letter as it is once it was reopened into a drawer. */
export const reopenedIn = (letter: CaseRow, drawer: number): CaseRow => ({
  ...letter,
  drawer,
  status: STATUS.Pending,
  resolution: null,
  confirmedAt: null,
})

/** Locks the letters of these cases until the transaction ends, as far as there are any. */
export async function lockLetters(tx: Transaction, ids: readonly LetterId[]): Promise<void> {
  // SQLite has one writer.
  if (ids.length > 0 && tx.dialect === 'postgres') {
    await tx.rows(lockCases, integerList(tx.dialect, ids.map(Number)))
  }
}

/** The letters of these cases, as far as there are any, locked until the transaction ends. */
export async function lockLettersOf(
  tx: Transaction,
  caseIds: readonly LetterId[],
): Promise<Map<LetterId, CaseRow>> {
  if (caseIds.length === 0) return new Map()
  const ids = integerList(tx.dialect, caseIds.map(Number))
  const [, rows] = await Promise.all([tx.rows(lockCases, ids), tx.rows<StoredCase>(readCases, ids)])
  return new Map(
    rows.map(({ resolved_at, confirmed_at, dead_queue, sent_as, ...row }) => [
      letterId(row.id),
      {
        ...row,
        id: letterId(row.id),
        drawer: Number(row.drawer),
        status: Number(row.status),
        resolvedAt: resolved_at === null ? null : instant(BigInt(resolved_at)),
        confirmedAt: confirmed_at === null ? null : instant(BigInt(confirmed_at)),
        redrive: row.redrive === null ? null : Number(row.redrive),
        deadQueue: dead_queue,
        sentAs: sent_as,
      },
    ]),
  )
}
