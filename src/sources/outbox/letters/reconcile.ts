/**
 * Compares rows with their letters and makes them agree. The mark comes off the row in the same transaction or, with
 * two databases, after it: a crash in between compares them twice, which changes nothing.
 *
 * Lock order: letters before rows, as in every act on a letter. What a row is counts only while its letter is locked.
 */
import type { Clock } from '../../../core/clock.ts'
import { change } from '../../../letters/change.ts'
import { closeCasesOf } from '../../../letters/confirm.ts'
import { type LetterId, STATUS } from '../../../letters/letter.ts'
import { type CaseRow, lockLettersOf } from '../../../letters/locked.ts'
import type { Registers } from '../../../letters/registers.ts'
import { inOffice, type OfficeWork } from '../../../letters/work.ts'
import { type Database, sql } from '../../../store/database.ts'
import type { OutboxHandle } from '../served/outbox-handle.ts'
import { letterRowsOf, type OutboxRow, type ReconciledRow, type RowOfLetter } from '../sql/letters.ts'
import { type Line, lineOf } from '../sql/line.ts'
import type { Layout } from '../table/layout.ts'
import { buryRows } from './bury.ts'
import { lettersOf, type RowAndLetter } from './rows-of-letters.ts'

export interface ReconciledOffice {
  readonly db: Database
  readonly clock: Clock
  readonly registers: Registers
}

export interface Reconciled {
  readonly reconciled: readonly ReconciledRow[]
  /** Lines of rows that were given up: those behind them can go. */
  readonly letGo: readonly Line[]
}

/**
 * On PostgreSQL one transaction of all servers at a time: they are woken together for the same rows, and the others
 * would do it all in vain.
 */
const takeTurn = sql('outbox.takeTurn', {
  postgres: `SELECT pg_advisory_xact_lock(hashtextextended('bartleby.outbox_letters', 0))`,
  sqlite: '',
})

export async function reconcile(
  office: ReconciledOffice,
  handle: OutboxHandle,
  layout: Layout,
  ids: readonly string[],
): Promise<Reconciled> {
  const rows = letterRowsOf(layout)
  const { db, clock, registers } = office
  const elsewhere: Table = {
    read: (ids) => handle.db.session('outbox.readDue', (session) => rows.read(session, ids)),
    reinstate: (given) => handle.db.transaction('outbox.reinstate', (tx) => rows.reinstate(tx, given)),
  }
  // Read before the office's transaction, so that nobody waits in it for the other database.
  const first = handle.inStore ? null : await elsewhere.read(ids)
  const done = await inOffice(db, clock, 'outbox.tell', async (work) => {
    const { tx } = work
    if (tx.dialect === 'postgres') await tx.rows(takeTurn)
    if (first !== null) return agree(work, registers, handle.name, first, elsewhere)
    const here: Table = {
      read: (ids) => rows.lock(tx, ids),
      reinstate: (given) => rows.reinstate(tx, given),
    }
    const agreed = await agree(work, registers, handle.name, await rows.read(tx, ids), here)
    await rows.unmark(tx, agreed.reconciled)
    return agreed
  })
  if (first !== null) await handle.db.transaction('outbox.told', (tx) => rows.unmark(tx, done.reconciled))
  return done
}

interface Table {
  read(ids: readonly string[]): Promise<readonly OutboxRow[]>
  reinstate(rows: readonly RowOfLetter[]): Promise<void>
}

async function agree(
  work: OfficeWork,
  registers: Registers,
  outbox: string,
  rows: readonly OutboxRow[],
  table: Table,
): Promise<Reconciled> {
  const found = await lettersOf(work.tx, outbox, rows)
  const known = found.filter(({ letterId }) => letterId !== null)
  const letters = await lockLettersOf(
    work.tx,
    known.flatMap(({ letterId }) => letterId ?? []),
  )
  const now = known.length === 0 ? [] : await table.read(known.map(({ row }) => row.id))
  const compared = compare(found, letters, new Map(now.map((row) => [row.id, row])))
  const groups = Map.groupBy(compared, ({ difference }) => difference)
  const those = (difference: Compared['difference']) => groups.get(difference) ?? []
  const withLetter = (difference: Compared['difference']) =>
    those(difference).flatMap(({ row, letter }) => (letter === null ? [] : [{ row, letter }]))

  const buried = await buryRows(work, registers, outbox, [...those('capture'), ...those('reopen')], letters)
  const confirmed = withLetter('confirm').map(({ letter }) => letter.id)
  await closeCasesOf(work, confirmed, new Map())
  // No retry is on record: the office ended between sending and writing that down.
  const arrived = withLetter('complete').map(({ row, letter: { id, engine } }) => {
    return { id, engine, sentAs: row.id, sentTo: outbox }
  })
  await change(work, 'complete', arrived, { actor: outbox, notes: ARRIVED })
  const reinstated = withLetter('reinstate').map(({ row, letter }) => ({ ...row, letterId: letter.id }))
  if (reinstated.length > 0) await table.reinstate(reinstated)
  return {
    // Rows that are dead again have a new mark.
    reconciled: compared
      .filter(({ difference }) => difference !== 'reinstate')
      .map(({ row, letter }) => ({ row, letterId: letter?.id ?? buried.get(row.id) ?? null })),
    letGo: those('let go').flatMap(({ row }) => lineOf(row) ?? []),
  }
}

const ARRIVED = 'Delivered'

/**
 * What makes a row and its letter agree.
 *
 *   row \ letter   none       Pending       Resolved or Expired
 *   dead           capture    –             reopen
 *   processed      –          complete      confirm, when it was retried
 *   given up       let go     reinstate     let go
 *   pending        –          –             –
 *
 * Given up: dead, and its letter was discarded or has expired. Let go: those that wait behind it in its line. A second
 * comparison, also after a crash, comes to a dash.
 */
type Difference = 'none' | 'capture' | 'reopen' | 'complete' | 'confirm' | 'reinstate' | 'let go'

export interface Compared extends Omit<RowAndLetter, 'letterId'> {
  readonly letter: CaseRow | null
  readonly difference: Difference
}

/** `letters` and `rows` are as they are while the letters are locked. */
function compare(
  found: readonly RowAndLetter[],
  letters: ReadonlyMap<LetterId, CaseRow>,
  rows: ReadonlyMap<string, OutboxRow>,
): readonly Compared[] {
  return found.flatMap(({ row: seen, letterId, sourceId }) => {
    const row = letterId === null ? seen : rows.get(seen.id)
    const letter = letterId === null ? null : (letters.get(letterId) ?? null)
    // Otherwise somebody acted on it meanwhile.
    if (row?.letterDue !== true || row.key !== seen.key) return []
    return [{ row, letter, sourceId, difference: differenceOf(row, letter) }]
  })
}

function differenceOf({ deadAt, isProcessed }: OutboxRow, letter: CaseRow | null): Difference {
  const isPending = letter?.status === STATUS.Pending
  if (deadAt !== null && isProcessed) return isPending ? 'reinstate' : 'let go'
  if (deadAt !== null && letter === null) return 'capture'
  if (deadAt !== null) return isPending ? 'none' : 'reopen'
  if (!isProcessed || letter === null) return 'none'
  return isPending ? 'complete' : 'confirm'
}
