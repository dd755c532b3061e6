/**
 * One batch of a lane: the next letters are sent, discarded or left out, with their history, their counts and how far the lane is, in
 * one transaction. After a crash all of it has happened or nothing.
 *
 * The lane is locked first and the state of the redrive read behind that lock: whoever pauses or cancels it holds all lanes, so
 * nothing is sent after that.
 */
import type { BartlebyError } from '../core/errors.ts'
import { failure } from '../core/errors.ts'
import type { Session } from '../db/database.ts'
import { type Candidate, firstOthers, isBefore, lockCandidates } from '../letters/candidates.ts'
import { keepEdits, readContents } from '../letters/contents.ts'
import { discardLetters } from '../letters/discard-many.ts'
import {
  isRemote,
  type LetterId,
  type LetterSource,
  type LocalLetterSource,
  type RedriveRef,
} from '../letters/letter.ts'
import { retryLetters } from '../letters/retry-many.ts'
import type { OfficeWork } from '../letters/work.ts'
import { isOfQueues } from './destinations.ts'
import { advanceLane, type HeldLane, holdLane, type Lane, remainingOf } from './lanes.ts'
import { type LaneLetter, lettersAhead, nextLetters, noteExceptions } from './members.ts'
import { type Exception, type ExceptionReason, isSending, type Redrive, type Terms } from './redrive.ts'
import type { Repairer } from './repair/repairer.ts'
import { openRedrives, readRedriveByNumber, type StoredRedrive } from './rows.ts'

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
  /** Of the lane. */
  readonly remaining: number
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
  const isOurs = redrive?.owner === owner && (redrive.state === 'canary' || redrive.state === 'running')
  return held === null || !isOurs ? null : { held, redrive }
}

/** How letters and history name the redrive. */
export const refOf = ({ number, id, recipe }: Redrive): RedriveRef => ({
  number,
  id,
  recipe: recipe?.version ?? null,
})

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
  const letters = await nextLetters(tx, held, held.behind, terms.size)
  const last = letters.at(-1)
  if (last === undefined) return doneWith(both, { sent: 0, skipped: 0, failed: 0 })
  const sifted = await siftLetters(tx, redrive, letters)
  const repaired = await repairLetters(work, redrive, held, terms.repairer, sifted.fit)
  const ordered = await keepOrder(tx, redrive, held, repaired.fit)
  await keepEdits(
    tx,
    ordered.fit.flatMap(({ id }) => repaired.edits.get(id) ?? []),
  )
  await act(work, redrive, held, terms.source, ordered.fit)
  const exceptions = [...sifted.exceptions, ...repaired.exceptions, ...ordered.exceptions]
  await noteExceptions(tx, redrive.number, exceptions)
  const step = { sent: ordered.fit.length, skipped: exceptions.length, failed: 0 }
  // With the commit that this travels with, the letters are sent and counted.
  advanceLane(tx, held, { ...step, to: { capturedAt: last.capturedAt, letter: last.letter } })
  return doneWith(both, step)
}

/** What a batch did, and what is left of its lane. */
export const doneWith = (
  { held, redrive }: Both,
  step: { readonly sent: number; readonly skipped: number; readonly failed: number },
): BatchDone => ({
  outcome: 'done',
  ...step,
  remaining: remainingOf(held) - step.sent - step.skipped - step.failed,
  terms: redrive.terms,
})

/** Letters that go on to the next question, and those that do not. */
interface Sifted {
  /** In the order of the lane. */
  readonly fit: readonly Candidate[]
  readonly exceptions: readonly Exception[]
}

export const skipped = (
  letter: LetterId,
  reason: ExceptionReason,
  detail: string | null = null,
): Exception => ({
  letter,
  outcome: 'skipped',
  reason,
  detail,
})

/** Locks the letters, and leaves out those that are not what they were when they were planned, and those of older redrives. */
export async function siftLetters(
  tx: OfficeWork['tx'],
  redrive: StoredRedrive,
  letters: readonly LaneLetter[],
): Promise<Sifted> {
  const ids = letters.map(({ letter }) => letter)
  const candidates = await lockCandidates(tx, ids)
  const taken = await lettersAhead(tx, ids, await startedBefore(tx, redrive))
  const fit: Candidate[] = []
  const exceptions: Exception[] = []
  for (const { letter, version } of letters) {
    const candidate = candidates.get(letter)
    if (candidate === undefined) exceptions.push(skipped(letter, 'gone'))
    else if (candidate.version !== version) exceptions.push(skipped(letter, 'changed'))
    else if (candidate.isLeased) exceptions.push(skipped(letter, 'leased'))
    else if (taken.has(letter)) exceptions.push(skipped(letter, 'in_other_redrive'))
    else fit.push(candidate)
  }
  return { fit, exceptions }
}

/** A letter that is in two redrives is left to the one that was started first. */
async function startedBefore(session: Session, { number, startedAt }: StoredRedrive) {
  const open = await openRedrives(session)
  return open
    .filter((other) => {
      if (other.number === number || other.startedAt === null || startedAt === null) return false
      if (other.startedAt !== startedAt) return other.startedAt < startedAt
      return other.number < number
    })
    .map((other) => other.number)
}

interface RepairedLetters extends Sifted {
  readonly edits: ReadonlyMap<LetterId, Parameters<typeof keepEdits>[1][number]>
}

/** Makes of each letter what the recipe says, and leaves out those that it cannot be applied to. */
async function repairLetters(
  { tx }: OfficeWork,
  { recipe }: Redrive,
  { source }: Lane,
  repairer: Repairer,
  letters: readonly Candidate[],
): Promise<RepairedLetters> {
  if (recipe === null || letters.length === 0) return { fit: letters, exceptions: [], edits: new Map() }
  const contents = await readContents(
    tx,
    letters.map(({ id }) => id),
  )
  const there = letters.flatMap((letter) => {
    const content = contents.get(letter.id)
    return content === undefined ? [] : [{ letter, content: { ...content, source } }]
  })
  const results = await repairer.repair(
    recipe,
    there.map(({ content }) => content),
  )
  const fit: Candidate[] = []
  const exceptions: Exception[] = []
  const edits = new Map<LetterId, Parameters<typeof keepEdits>[1][number]>()
  for (const [i, { letter }] of there.entries()) {
    const result = results[i]
    if (result?.ok !== true) {
      exceptions.push(skipped(letter.id, 'repair_refused', result?.reason ?? null))
      continue
    }
    fit.push(letter)
    const { payload, headers } = result.repaired
    if (payload !== null || Object.keys(headers).length > 0)
      edits.set(letter.id, { id: letter.id, payload, headers })
  }
  return { fit, exceptions, edits }
}

/** Leaves out letters of a key that has an earlier one pending: they would go out before it. */
async function keepOrder(
  session: Session,
  { action, terms }: Redrive,
  { source, engine }: Lane,
  letters: readonly Candidate[],
): Promise<Sifted> {
  if (!isSending(action) || terms.order !== 'key' || !isOfQueues(source))
    return { fit: letters, exceptions: [] }
  const keyed = letters.flatMap(({ id, key }) => (key === null ? [] : [{ id, key }]))
  const firsts = await firstOthers(session, engine, keyed)
  const isHeldBack = (letter: Candidate): boolean => {
    const first = letter.key === null ? undefined : firsts.get(letter.key)
    return first !== undefined && isBefore(first, letter)
  }
  return {
    fit: letters.filter((letter) => !isHeldBack(letter)),
    exceptions: letters.filter(isHeldBack).map(({ id }) => skipped(id, 'order_blocked')),
  }
}

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
  const receipts = await source.sendMany(work, destination, letters)
  if (receipts === null) throw goneQueue(destination)
  const sent = letters.flatMap(({ id }, i) => {
    const receipt = receipts[i]
    return receipt === undefined ? [] : [{ id, messageId: receipt.messageId }]
  })
  await retryLetters(work, { ...how, queue: destination, sent })
}

const goneQueue = (queue: string): BartlebyError => failure('letter_queue_gone', { queue })
