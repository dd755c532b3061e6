/**
 * One batch of a lane: the next letters are sent, discarded or left out, with their history, their counts and how far the lane is, in
 * one transaction. After a crash all of it has happened or nothing.
 *
 * The lane is locked first and the state of the redrive read behind that lock: whoever pauses or cancels it holds all lanes, so
 * nothing is sent after that.
 */
import { failure } from '../core/errors.ts'
import type { Candidate } from '../letters/candidates.ts'
import { keepEdits } from '../letters/contents.ts'
import { discardLetters } from '../letters/discard-many.ts'
import { isRemote, type LetterId, type LetterSource, type LocalLetterSource } from '../letters/letter.ts'
import { retryLetters } from '../letters/retry-many.ts'
import type { OfficeWork } from '../letters/work.ts'
import { advanceLane, type HeldLane, holdLane, type Lane } from './lanes.ts'
import { type LaneLetter, nextLetters, noteExceptions } from './members.ts'
import { isSending, isWorking, type Redrive, refOf, type Terms } from './redrive.ts'
import type { Repairer } from './repair/repairer.ts'
import { readRedriveByNumber, type StoredRedrive } from './rows.ts'
import { firstOutOfTurn, keepOrder, repairLetters, siftLetters } from './sifting.ts'

/** What a batch needs to know beside the work of its transaction. */
export interface BatchTerms {
  readonly owner: string
  /** Letters that are looked at, at most. */
  readonly size: number
  readonly source: LetterSource
  readonly repairer: Repairer
}

export interface BatchDone {
  readonly outcome: 'done'
  readonly sent: number
  readonly skipped: number
  readonly failed: number
  /** As they are now: an operator may have changed the rate. */
  readonly terms: Terms
}

/** 'halted': it is paused or over, or another server's by now. */
export type BatchResult = BatchDone | { readonly outcome: 'halted' }

/** A redrive and one of its lanes, which nobody changes before the transaction ends. */
export interface Both {
  readonly held: HeldLane
  readonly redrive: StoredRedrive
}

/** The redrive and the lane, when this server may go on with them; null when it may not. */
export async function holdBoth({ tx }: OfficeWork, lane: Lane, owner: string): Promise<Both | null> {
  const held = await holdLane(tx, lane)
  const redrive = await readRedriveByNumber(tx, lane.redrive)
  const isOurs = redrive?.owner === owner && isWorking(redrive.state)
  return held === null || !isOurs ? null : { held, redrive }
}

/** The notes of what a redrive does. */
export const notesOf = ({ id, reason }: Redrive): string =>
  reason === null ? `Redrive ${id}` : `${reason} (redrive ${id})`

/** Who does it. */
export const actorOf = ({ startedBy, plannedBy }: Redrive): string => startedBy ?? plannedBy

/** Whether letters of this source are acted on many at a time. */
export const isBulk = ({ action }: Redrive, source: LetterSource): boolean =>
  isSending(action) ? canSendMany(source) : action === 'discard' && !isRemote(source)

const canSendMany = (
  source: LetterSource,
): source is LocalLetterSource & Required<Pick<LocalLetterSource, 'sendMany'>> =>
  !isRemote(source) && source.sendMany !== undefined

/** Does the next letters of a lane, many at a time. Refuses, and does nothing, when the destination is gone. */
export async function runBatch(work: OfficeWork, lane: Lane, terms: BatchTerms): Promise<BatchResult> {
  const { tx } = work
  const both = await holdBoth(work, lane, terms.owner)
  if (both === null) return { outcome: 'halted' }
  const { held, redrive } = both
  const next = await nextLetters(tx, held, held.behind, terms.size)
  const letters = before(next, await firstOutOfTurn(tx, redrive, held, next))
  const sifted = await siftLetters(tx, redrive, letters)
  const repaired = await repairLetters(tx, redrive, held, terms.repairer, sifted.fit)
  const ordered = await keepOrder(tx, redrive, held, letters, repaired.fit)
  const decided = before(before(letters, repaired.next), ordered.next)
  const last = decided.at(-1)
  if (last === undefined) return doneWith(both, NOTHING)
  const isDecided = inside(decided)
  const fit = ordered.fit.filter(({ id }) => isDecided(id))
  const exceptions = [...sifted.exceptions, ...repaired.exceptions, ...ordered.exceptions].filter(
    ({ letter }) => isDecided(letter),
  )
  await keepEdits(
    tx,
    fit.flatMap(({ id }) => repaired.edits.get(id) ?? []),
  )
  await act(work, redrive, held, terms.source, fit)
  await noteExceptions(tx, redrive.number, exceptions)
  const step = { sent: fit.length, skipped: exceptions.length, failed: 0 }
  // With the commit that this travels with, the letters are sent and counted.
  advanceLane(tx, held, { ...step, to: last })
  return doneWith(both, step)
}

const NOTHING = { sent: 0, skipped: 0, failed: 0 } as const

/** The letters of a batch that come before this one; all when there is none. */
function before(letters: readonly LaneLetter[], end: LetterId | null): readonly LaneLetter[] {
  const place = letters.findIndex(({ letter }) => letter === end)
  return place === -1 ? letters : letters.slice(0, place)
}

function inside(letters: readonly LaneLetter[]): (letter: LetterId) => boolean {
  const ids = new Set(letters.map(({ letter }) => letter))
  return (letter) => ids.has(letter)
}

/** What a batch did. */
export const doneWith = (
  { redrive }: Both,
  step: { readonly sent: number; readonly skipped: number; readonly failed: number },
): BatchDone => ({
  outcome: 'done',
  ...step,
  terms: redrive.terms,
})

async function act(
  work: OfficeWork,
  redrive: Redrive,
  { engine, destination }: Lane,
  source: LetterSource,
  letters: readonly Candidate[],
): Promise<void> {
  if (letters.length === 0) return
  const how = { engine, notes: notesOf(redrive), actor: actorOf(redrive), redrive: refOf(redrive) }
  if (redrive.action === 'discard') return discardLetters(work, { ...how, source, letters })
  if (!canSendMany(source)) throw new Error(`letters of '${source.name}' are not sent many at a time`)
  const receipts = await source.sendMany(work, destination, engine, letters)
  if (receipts === null) throw failure('letter_queue_gone', { queue: destination })
  const sent = letters.flatMap(({ id }, i) => {
    const receipt = receipts[i]
    return receipt === undefined ? [] : [{ id, messageId: receipt.messageId }]
  })
  await retryLetters(work, { ...how, queue: destination, sent })
}
