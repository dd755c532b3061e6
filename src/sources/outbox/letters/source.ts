/**
 * The way back of letters from an outbox: their row starts over. In the office's own store that is part of the
 * transaction that claims the letter. In another database it is done there first, and the clerk repairs what the
 * office's transaction then fails to write.
 *
 * While a letter is pending its row is dead. Discarded or expired, the row is given up and holds nobody back; restored,
 * it is dead again.
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { BartlebyError, failure, refuse } from '../../../core/errors.ts'
import { isJson } from '../../../core/json/tokens.ts'
import { contentPortions, readContents } from '../../../letters/contents.ts'
import type { InDeadQueue, LetterId } from '../../../letters/letter.ts'
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
} from '../../../letters/source.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { type Session, StoreUnavailable } from '../../../store/database.ts'
import { knownLayout, learnLayout, type OutboxHandle, type OutboxHandles } from '../served/outbox-handle.ts'
import { type DigestedRow, type LetterRows, letterRowsOf } from '../sql/letters.ts'
import type { Layout } from '../table/layout.ts'
import { type LetterRow, OUTBOX, rowsOf } from './rows-of-letters.ts'

/** Called once a change of rows is durable. */
export interface SourceListeners {
  dispatch(outbox: string): void
  reconcile(outbox: string): void
}

export const outboxLetterSource = (handles: OutboxHandles, listeners: SourceListeners): LetterSource => ({
  name: OUTBOX,
  render: (read, letters, edits) => render(handles, read, letters, edits),
  // Made by `render`.
  send: (work, rendered: readonly RenderedRow[]) => send(handles, work, rendered, listeners),
  takeBack: (work, letters) => takeBack(handles, work, letters, listeners),
  async moved(work, letters, act) {
    if (act === 'discard' || act === 'expire')
      await moveAll(handles, work, letters, listeners, (at, rows, these) => rows.giveUp(at, these, work.now))
    if (act === 'reopen')
      await moveAll(handles, work, letters, listeners, (at, rows, these) => rows.reinstate(at, these))
  },
})

/** Runs `act` on the rows: in the office's session, or in a transaction of their own database. */
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
    const rendered: (RenderedRow | Refused)[] = []
    for (const [outbox, members] of byOutbox(letters, await rowsOf(session, letters, { digests: true }))) {
      try {
        const handle = handleOf(handles, outbox)
        const answers = await atRows(handle, session, 'outbox.render', async (at, rows, layout) => {
          const gone = await rows.gone(at, rowsIn(members))
          return members.map(({ letter, row }): RenderedRow | Refused => {
            const { payload = null } = edits.get(letter.id) ?? {}
            const refusal = gone.has(row.id) ? rowGone(row) : formProblem(layout, payload)
            if (refusal !== null) return { letter, refusal }
            if (payload === null) return { letter, queue: outbox, edit: null, row }
            return { letter, queue: outbox, edit: { payload }, row: { ...row, digest: sha256(payload) } }
          })
        })
        rendered.push(...answers)
      } catch (error) {
        if (!(error instanceof BartlebyError)) throw error
        rendered.push(...members.map(({ letter }) => ({ letter, refusal: error })))
      }
    }
    return rendered
  })

interface RenderedRow extends Rendered {
  readonly row: LetterRow
}

const sha256 = (payload: Uint8Array): string => createHash('sha256').update(payload).digest('hex')

interface Member<Of = unknown> {
  readonly letter: Of
  readonly row: LetterRow
}

const rowsIn = (members: readonly Member[]): LetterRow[] => members.map(({ row }) => row)
const idsIn = (members: readonly Member[]): string[] => members.map(({ row }) => row.id)

const inOutboxes = <Each extends Member>(all: readonly Each[]): ReadonlyMap<string, readonly Each[]> =>
  Map.groupBy(all, ({ row }) => row.outbox)

function byOutbox<Of extends { readonly id: LetterId }>(letters: readonly Of[], rows: readonly LetterRow[]) {
  const known = new Map(rows.map((row) => [row.letterId, row]))
  return inOutboxes(
    letters.map((letter): Member<Of> => {
      const row = known.get(letter.id)
      if (row === undefined) throw new Error(`letter ${letter.id} is gone`)
      return { letter, row }
    }),
  )
}

const rowGone = ({ outbox, id }: LetterRow): BartlebyError => failure('letter_row_gone', { outbox, id })

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
  rendered: readonly RenderedRow[],
  { dispatch }: SourceListeners,
): Promise<readonly (Sent | Refused)[]> {
  const answers: (Sent | Refused)[] = []
  for (const [outbox, members] of inOutboxes(rendered)) {
    const sent = await atRows(handleOf(handles, outbox), work.tx, 'outbox.send', (at, rows) =>
      sendRows(work, at, rows, members),
    )
    answers.push(...sent)
    work.afterCommit(() => dispatch(outbox))
  }
  return answers
}

async function sendRows(
  work: OfficeWork,
  at: Session,
  rows: LetterRows,
  members: readonly RenderedRow[],
): Promise<readonly (Sent | Refused)[]> {
  const sentOf = ({ letter, row, queue }: RenderedRow): Sent => ({ letter, messageId: row.id, queue })
  if ((await rows.startDead(at, rowsIn(members))) === members.length) return members.map(sentOf)
  // Some were not dead any more or have another payload; those that started are under way now.
  const states = await rows.lockStates(at, idsIn(members))
  const started = new Map<LetterId, RenderedRow>()
  const answers = members.map((member): Sent | Refused => {
    const { letter, row, queue } = member
    const found = states.get(row.id)
    if (found?.key !== row.key) return { letter, refusal: rowGone(row) }
    if (isUnderWay(found) && found.digest === row.digest) return sentOf(member)
    if (isUnderWay(found) && isClaimed(found, work))
      return { letter, refusal: failure('letter_in_flight', { queue }) }
    started.set(letter.id, member)
    return sentOf(member)
  })
  // Payloads are read only where they have to be written.
  for (const portion of started.size === 0 ? [] : await contentPortions(work.tx, [...started.keys()])) {
    const contents = await readContents(work.tx, portion)
    const these = portion.flatMap((id) => started.get(id)?.row ?? [])
    await rows.startOver(
      at,
      these.map(({ id, letterId }) => ({ id, letterId, payload: contents.get(letterId)?.payload ?? null })),
    )
  }
  return answers
}

/**
 * Sent back already by an attempt whose record was lost: it waits, or was delivered and the office does not know yet.
 * Starting over would deliver it twice.
 */
const isUnderWay = ({ deadAt, isProcessed, letterDue }: DigestedRow): boolean =>
  deadAt === null && (!isProcessed || letterDue)

/** A dispatcher holds it. */
const isClaimed = ({ claimedUntil }: DigestedRow, { now }: OfficeWork): boolean =>
  claimedUntil !== null && claimedUntil > now

/** Rows that were sent back are dead again unless a dispatcher holds them; so are those that were given up. */
async function takeBack<Of extends Restoring>(
  handles: OutboxHandles,
  work: OfficeWork,
  letters: readonly Of[],
  listeners: SourceListeners,
): Promise<readonly (TakenBack<Of> | Refused)[]> {
  const closed = letters.filter(({ isUnconfirmed }) => !isUnconfirmed)
  await moveAll(handles, work, closed, listeners, (at, rows, these) => rows.reinstate(at, these))
  const answers: (TakenBack<Of> | Refused)[] = closed.map((letter) => ({ letter, deliveries: 0 }))
  const sent = letters.filter(({ isUnconfirmed }) => isUnconfirmed)
  for (const [outbox, members] of byOutbox(sent, await rowsOf(work.tx, sent))) {
    await atRows(handleOf(handles, outbox), work.tx, 'outbox.recall', async (at, rows) => {
      const states = await rows.lockStates(at, idsIn(members))
      const waiting: LetterRow[] = []
      for (const { letter, row } of members) {
        const found = states.get(row.id)
        if (found?.key !== row.key || found.isProcessed) answers.push({ letter, deliveries: 0 })
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

/** Letters of an outbox that is no longer configured have no rows within reach, and can be closed all the same. */
async function moveAll(
  handles: OutboxHandles,
  work: OfficeWork,
  letters: readonly InDeadQueue[],
  { reconcile }: SourceListeners,
  move: (tx: Session, rows: LetterRows, these: readonly LetterRow[]) => Promise<void>,
): Promise<void> {
  for (const [outbox, members] of byOutbox(letters, await rowsOf(work.tx, letters))) {
    const handle = handles().find(({ name }) => name === outbox)
    if (handle === undefined) continue
    await atRows(handle, work.tx, 'outbox.move', (tx, rows) => move(tx, rows, rowsIn(members)))
    work.afterCommit(() => reconcile(outbox))
  }
}
