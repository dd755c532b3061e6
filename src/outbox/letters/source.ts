/**
 * The way back of letters that came from an outbox: their row is still there and starts over. In the office's own store
 * that is part of the transaction that claims the letter. In another database it is done there first: when the office's
 * transaction fails after that, the clerk (clerk.ts) makes row and letter agree again.
 *
 * While a letter is pending its row is dead. When it is discarded or expires the row is given up, so that it no longer
 * holds what waits behind it; when it is restored the row is dead again.
 */
import { isUtf8 } from 'node:buffer'
import { BartlebyError, failure, refuse } from '../../core/errors.ts'
import { isJson } from '../../core/json/tokens.ts'
import { type Session, StoreUnavailable } from '../../db/database.ts'
import { contentPortions, readContents, readDigests } from '../../letters/contents.ts'
import type { Edit, LetterId, Placed } from '../../letters/letter.ts'
import type {
  Departing,
  Edits,
  LetterSource,
  Reading,
  Refused,
  Rendered,
  Restoring,
  Sent,
  TakenBack,
} from '../../letters/source.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { Layout } from '../layout.ts'
import { knownLayout, learnLayout, type OutboxHandle, type OutboxHandles } from '../outbox-handle.ts'
import { type LetterRows, letterRowsOf, type StandingRow, type StartedRow } from '../sql/letters.ts'
import { OUTBOX, type OutboxAndRow, rowsOf } from './rows-of-letters.ts'

/** Who wants to hear of what is done to rows, once it is durable. */
export interface SourceListeners {
  /** Messages of this outbox are due now. */
  dispatch(outbox: string): void
  /** The clerk has something to compare. */
  reconcile(outbox: string): void
}

/** The source of letters that come from these outboxes. */
export const outboxLetterSource = (handles: OutboxHandles, listeners: SourceListeners): LetterSource => ({
  name: OUTBOX,
  render: (read, letters, edits) => render(handles, read, letters, edits),
  send: (work, rendered) => send(handles, work, rendered, listeners),
  takeBack: (work, letters) => takeBack(handles, work, letters, listeners),
  async moved(work, letters, act) {
    if (act === 'discard' || act === 'expire')
      await moveAll(handles, work, letters, listeners, (at, rows, these) => rows.giveUp(at, these, work.now))
    if (act === 'reopen')
      await moveAll(handles, work, letters, listeners, (at, rows, these) => rows.layBack(at, these))
  },
})

/** Runs `act` where the rows are: where the office is at it, or in a transaction of their own database. */
async function atRows<T>(
  handle: OutboxHandle,
  at: Session,
  verb: string,
  act: (at: Session, rows: LetterRows, layout: Layout) => Promise<T>,
): Promise<T> {
  if (handle.inStore) {
    const layout = knownLayout(handle)
    return act(at, letterRowsOf(layout), layout)
  }
  try {
    const layout = await learnLayout(handle)
    return await handle.db.transaction(verb, (there) => act(there, letterRowsOf(layout), layout))
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    throw failure('letter_outbox_away', { outbox: handle.name }, { cause: error })
  }
}

function handleOf(handles: OutboxHandles, outbox: string): OutboxHandle {
  const handle = handles().find(({ name }) => name === outbox)
  if (handle === undefined) throw failure('letter_outbox_unknown', { outbox })
  return handle
}

const render = (handles: OutboxHandles, read: Reading, letters: readonly Departing[], edits: Edits) =>
  read('outbox.render', async (session) => {
    const rendered: (Rendered | Refused)[] = []
    for (const each of await byOutbox(session, letters)) {
      try {
        const handle = handleOf(handles, each.outbox)
        const answers = await atRows(handle, session, 'outbox.render', async (at, rows, layout) => {
          const standing = await rows.standing(at, each.rowIds)
          return each.members.map(({ letter, row }): Rendered | Refused => {
            const { payload = null } = edits.get(letter.id) ?? {}
            const refusal = isThere(row, standing) ? formProblem(layout, payload) : rowGone(row)
            const edit: Edit | null = payload === null ? null : { payload }
            return refusal === null ? { letter, queue: each.outbox, edit } : { letter, refusal }
          })
        })
        rendered.push(...answers)
      } catch (error) {
        if (!(error instanceof BartlebyError)) throw error
        rendered.push(...each.members.map(({ letter }) => ({ letter, refusal: error })))
      }
    }
    return rendered
  })

/** Letters of one outbox, each with its row. */
interface OfOutbox<Of = Departing> {
  readonly outbox: string
  readonly members: readonly { readonly letter: Of; readonly row: OutboxAndRow }[]
  readonly rowIds: readonly string[]
}

async function byOutbox<Of extends { readonly id: LetterId }>(
  session: Session,
  letters: readonly Of[],
): Promise<OfOutbox<Of>[]> {
  if (letters.length === 0) return []
  const rows = new Map((await rowsOf(session, letters)).map((row) => [row.letterId, row]))
  const all = letters.map((letter) => {
    const row = rows.get(letter.id)
    if (row === undefined) throw new Error(`letter ${letter.id} is gone`)
    return { letter, row }
  })
  return [...Map.groupBy(all, ({ row }) => row.outbox)].map(([outbox, members]) => ({
    ...{ outbox, members },
    rowIds: members.map(({ row }) => row.id),
  }))
}

/** Whether the message of a letter is there; another one may have its id by now. */
const isThere = ({ id, key }: OutboxAndRow, standing: ReadonlyMap<string, StandingRow>): boolean =>
  standing.get(id)?.key === key

const rowGone = ({ outbox, id }: OutboxAndRow): BartlebyError => failure('letter_row_gone', { outbox, id })

/** The refusal of an edit that the table cannot keep. */
function formProblem(layout: Layout, payload: Uint8Array | null): BartlebyError | null {
  const reason = payload === null || layout.keepsBytes ? null : textProblem(payload, layout.keepsJson)
  return reason === null ? null : refuse('payload', reason)
}

function textProblem(payload: Uint8Array, mustBeJson: boolean): string | null {
  if (!isUtf8(payload)) return 'its outbox keeps text, and this is no UTF-8'
  const text = Buffer.from(payload).toString('utf8')
  if (text.includes('\0')) return 'its outbox keeps text without the null character'
  return mustBeJson && !isJson(text) ? 'its outbox keeps JSON, and this is none' : null
}

async function send(
  handles: OutboxHandles,
  work: OfficeWork,
  rendered: readonly Rendered[],
  { dispatch }: SourceListeners,
): Promise<readonly (Sent | Refused)[]> {
  const letters = new Map(rendered.map(({ letter }) => [letter.id, letter]))
  const answers: (Sent | Refused)[] = []
  // Payloads are in memory, where they have to be compared or written.
  for (const portion of await contentPortions(work.tx, [...letters.keys()])) {
    const digests = await readDigests(work.tx, portion)
    const those = portion.flatMap((id) => letters.get(id) ?? [])
    for (const each of await byOutbox(work.tx, those)) {
      const handle = handleOf(handles, each.outbox)
      answers.push(
        ...(await atRows(handle, work.tx, 'outbox.send', (at, rows) =>
          sendRows(work, at, rows, each, digests),
        )),
      )
      work.afterCommit(() => dispatch(each.outbox))
    }
  }
  return answers
}

async function sendRows(
  work: OfficeWork,
  at: Session,
  rows: LetterRows,
  { outbox, members, rowIds }: OfOutbox,
  digests: ReadonlyMap<LetterId, string>,
): Promise<readonly (Sent | Refused)[]> {
  const standing = await rows.lockStanding(at, rowIds)
  const isSame = ({ letterId, id }: OutboxAndRow): boolean =>
    standing.get(id)?.digest === digests.get(letterId)
  const changed = members.filter(({ row }) => !isSame(row)).map(({ letter }) => letter.id)
  const contents = changed.length === 0 ? new Map() : await readContents(work.tx, changed)
  const started: StartedRow[] = []
  const answers = members.map(({ letter, row }): Sent | Refused => {
    const found = standing.get(row.id)
    if (found === undefined || !isThere(row, standing)) return { letter, refusal: rowGone(row) }
    const sent = { letter, messageId: row.id, queue: outbox }
    if (isUnderWay(found) && isSame(row)) return sent
    if (isUnderWay(found) && isClaimed(found, work))
      return { letter, refusal: failure('letter_in_flight', { queue: outbox }) }
    started.push({ id: row.id, letterId: letter.id, payload: contents.get(letter.id)?.payload ?? null })
    return sent
  })
  await rows.startOver(at, started)
  return answers
}

/**
 * Whether it was sent back already, by an earlier try whose record was lost: it waits to be delivered, or was, and the
 * office does not know yet. To start it over would deliver it twice.
 */
const isUnderWay = ({ deadAt, isProcessed, letterDue }: StandingRow): boolean =>
  deadAt === null && (!isProcessed || letterDue)

/** Whether a dispatcher has it in its hands. */
const isClaimed = ({ claimedUntil }: StandingRow, { now }: OfficeWork): boolean =>
  claimedUntil !== null && claimedUntil > now

/** Rows that were sent back are dead, unless a dispatcher has them; those that were given up are dead again. */
async function takeBack<Of extends Restoring>(
  handles: OutboxHandles,
  work: OfficeWork,
  letters: readonly Of[],
  listeners: SourceListeners,
): Promise<readonly (TakenBack<Of> | Refused)[]> {
  const closed = letters.filter(({ isUnconfirmed }) => !isUnconfirmed)
  await moveAll(handles, work, closed, listeners, (at, rows, these) => rows.layBack(at, these))
  const answers: (TakenBack<Of> | Refused)[] = closed.map((letter) => ({ letter, deliveries: 0 }))
  const sent = letters.filter(({ isUnconfirmed }) => isUnconfirmed)
  for (const { outbox, members, rowIds } of await byOutbox(work.tx, sent)) {
    await atRows(handleOf(handles, outbox), work.tx, 'outbox.recall', async (at, rows) => {
      const standing = await rows.lockStanding(at, rowIds)
      const waiting: OutboxAndRow[] = []
      for (const { letter, row } of members) {
        const found = isThere(row, standing) ? standing.get(row.id) : undefined
        if (found === undefined || found.isProcessed) answers.push({ letter, deliveries: 0 })
        else if (isClaimed(found, work))
          answers.push({ letter, refusal: failure('letter_in_flight', { queue: letter.sentTo ?? '' }) })
        else {
          if (found.deadAt === null) waiting.push(row)
          answers.push({ letter, deliveries: found.retryCount })
        }
      }
      await rows.takeBack(at, waiting, work.now)
    })
    work.afterCommit(() => listeners.reconcile(outbox))
  }
  return answers
}

/**
 * Moves the rows of letters. Letters of an outbox that is no longer configured have none within reach; they must not be
 * kept from being closed for ever.
 */
async function moveAll(
  handles: OutboxHandles,
  work: OfficeWork,
  letters: readonly Placed[],
  { reconcile }: SourceListeners,
  move: (tx: Session, rows: LetterRows, these: readonly OutboxAndRow[]) => Promise<void>,
): Promise<void> {
  for (const { outbox, members } of await byOutbox(work.tx, letters)) {
    const handle = handles().find(({ name }) => name === outbox)
    if (handle === undefined) continue
    const these = members.map(({ row }) => row)
    await atRows(handle, work.tx, 'outbox.move', (tx, rows) => move(tx, rows, these))
    work.afterCommit(() => reconcile(outbox))
  }
}
