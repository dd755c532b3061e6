/**
 * Telling the office what became of rows: each is compared with its letter (compare.ts), and the two are made to agree.
 * The mark comes off the row in the same transaction or, when the outbox lies in another database, after it: a crash in
 * between tells it twice, which changes nothing.
 *
 * Whoever acts on a letter locks it before its row; so does this. Only while the letters are locked is it known what
 * their rows are.
 */
import type { Clock } from '../../core/clock.ts'
import { type Database, type Session, sql, type Transaction } from '../../db/database.ts'
import { change } from '../../letters/change.ts'
import { closeCasesOf } from '../../letters/confirm.ts'
import type { Registers } from '../../letters/death-note.ts'
import { lockLettersOf } from '../../letters/reopen.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import type { Layout } from '../layout.ts'
import type { OutboxPost } from '../post.ts'
import { letterRowsOf, type OutboxRow, type RowOfLetter, type ToldRow } from '../sql/letters.ts'
import type { Line } from '../sql/line.ts'
import { buryRows } from './bury.ts'
import { compare, type RowAndCase } from './compare.ts'
import { lettersOf } from './rows-of-letters.ts'

/** The office that is told. */
export interface ToldOffice {
  readonly db: Database
  readonly clock: Clock
  readonly registers: Registers
}

/** What came of it. */
export interface Telling {
  readonly told: readonly ToldRow[]
  /** Lines of rows that were given up: what waits behind them can go. */
  readonly letGo: readonly Line[]
}

/**
 * On PostgreSQL one transaction of all servers tells at a time: they are woken together for the same rows, and all but one
 * would do all of it in vain. Ends with the transaction.
 */
const takeTurn = sql('outbox.takeTurn', {
  postgres: `SELECT pg_advisory_xact_lock(hashtextextended('bartleby.outbox_letters', 0))`,
  sqlite: '',
})

/** Tells the office about these rows of an outbox. */
export async function tellOffice(
  office: ToldOffice,
  post: OutboxPost,
  layout: Layout,
  ids: readonly string[],
): Promise<Telling> {
  const rows = letterRowsOf(layout)
  const { db, clock, registers } = office
  if (post.inStore) {
    return inOffice(db, clock, 'outbox.tell', async (work) => {
      await waitForTurn(work.tx)
      const telling = await tell(work, registers, post.name, await rows.read(work.tx, ids), {
        read: (ids) => rows.lock(work.tx, ids),
        layBack: (laid) => rows.layBack(work.tx, laid),
      })
      await rows.told(work.tx, telling.told)
      return telling
    })
  }
  const read = (ids: readonly string[]) =>
    post.db.session('outbox.readDue', (session: Session) => rows.read(session, ids))
  // Before the office's transaction: in it everybody else may have to wait for the other database.
  const first = await read(ids)
  const telling = await inOffice(db, clock, 'outbox.tell', async (work) => {
    await waitForTurn(work.tx)
    return tell(work, registers, post.name, first, {
      read,
      layBack: (laid) => post.db.transaction('outbox.layBack', (tx) => rows.layBack(tx, laid)),
    })
  })
  await post.db.transaction('outbox.told', (tx) => rows.told(tx, telling.told))
  return telling
}

async function waitForTurn(tx: Transaction): Promise<void> {
  if (tx.dialect === 'postgres') await tx.rows(takeTurn)
}

/** The rows, wherever they are. */
interface Table {
  /** The rows as they are while their letters are locked. */
  read(ids: readonly string[]): Promise<readonly OutboxRow[]>
  layBack(rows: readonly RowOfLetter[]): Promise<void>
}

async function tell(
  work: OfficeWork,
  registers: Registers,
  outbox: string,
  rows: readonly OutboxRow[],
  table: Table,
): Promise<Telling> {
  const found = await lettersOf(work.tx, outbox, rows)
  const known = found.filter(({ letterId }) => letterId !== null)
  const letters = await lockLettersOf(
    work.tx,
    known.flatMap(({ letterId }) => letterId ?? []),
  )
  const now = known.length === 0 ? [] : await table.read(known.map(({ row }) => row.id))
  const differences = compare(found, letters, new Map(now.map((row) => [row.id, row])))

  const buried = await buryRows(work, registers, outbox, differences, letters)
  await closeCasesOf(work, differences.confirm, new Map())
  await complete(work, outbox, differences.complete)
  if (differences.layBack.length > 0) await table.layBack(differences.layBack)
  const fresh = differences.capture.map(({ row }) => ({ row, letterId: buried.get(row.id) ?? null }))
  return { told: [...differences.told, ...fresh], letGo: differences.letGo }
}

const ARRIVED = 'Delivered'

/** The messages arrived, and no retry is on record: the office ended between sending one and writing that down. */
async function complete(work: OfficeWork, outbox: string, arrived: readonly RowAndCase[]): Promise<void> {
  const letters = arrived.map(({ row, letter: { id, engine } }) => ({
    id,
    engine,
    sentAs: row.id,
    sentTo: outbox,
  }))
  await change(work, 'complete', letters, { actor: outbox, notes: ARRIVED })
}
