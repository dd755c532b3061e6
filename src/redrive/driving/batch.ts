/**
 * One batch of a lane: the next letters are sent, discarded, restored or left out, with their history, counts and the lane's progress, in
 * one transaction. Letters that leave over a network are beyond it: their source records the redrive before a letter leaves, and a server
 * that finds the next letter sent counts it instead of sending it again.
 *
 * The lane is locked first and the state of the redrive read behind that lock. Whoever pauses or cancels locks all lanes, so nothing is
 * sent after that.
 */
import type { Clock } from '../../core/clock.ts'
import { change } from '../../letters/change.ts'
import { type LetterId, sentBy } from '../../letters/letter.ts'
import { type BulkLetter, readBulkLetters } from '../../letters/lists/bulk-letters.ts'
import {
  type Departing,
  type Edits,
  forgoRedrive,
  isOutside,
  isRefused,
  type LetterSource,
  type OutsideSource,
  type Refused,
  restoreLetters,
  sendBack,
  wasSentFor,
} from '../../letters/source.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import type { Database } from '../../store/database.ts'
import { type Exception, isSending, isWorking, type Redrive, refOf, type Terms } from '../redrive.ts'
import type { Repairer } from '../repair/repairer.ts'
import { advanceLane, holdLane, isAhead, type Lane, type PlacedLane } from '../rows/lanes.ts'
import { type LaneLetter, nextLetters, noteExceptions } from '../rows/members.ts'
import { readRedriveByNumber, type StoredRedrive } from '../rows/rows.ts'
import { firstOutOfTurn, keepOrder, lockEligible, repairLetters } from './eligibility.ts'
import { exceptionOf, isAboutLetter } from './obstacles.ts'

interface BatchTerms {
  readonly owner: string
  readonly size: number
  readonly source: LetterSource
  readonly repairer: Repairer
}

export interface BatchDone {
  readonly outcome: 'done'
  readonly sent: number
  readonly skipped: number
  readonly failed: number
  /** Current terms: an operator may have changed the rate. */
  readonly terms: Terms
}

/** 'halted': paused, over, or another server's by now. */
type BatchResult = BatchDone | { readonly outcome: 'halted' }

/** Runs the next batch of a lane. Rejects, and does nothing, when the redrive cannot go on. */
export function runBatch(
  db: Database,
  clock: Clock,
  { action }: Redrive,
  lane: Lane,
  terms: BatchTerms,
): Promise<BatchResult> {
  const { source } = terms
  return isSending(action) && isOutside(source)
    ? runOutside(db, clock, lane, { ...terms, source })
    : inOffice(db, clock, 'redrive.batch', (work) => runInside(work, lane, terms))
}

async function runInside(work: OfficeWork, lane: Lane, terms: BatchTerms): Promise<BatchResult> {
  const both = await holdBoth(work, lane, terms.owner)
  if (both === null) return { outcome: 'halted' }
  const next = await nextLetters(work.tx, both.held, both.held.behind, terms.size)
  const { members, fit, edits, exceptions } = await choose(work, both, next, terms)
  const refused = await act(work, both.redrive, terms.source, fit, edits)
  return moveOn(work, both, members, [...exceptions, ...refused.map(exceptionOf)])
}

/** A redrive and one of its lanes, locked until the transaction ends. */
interface Both {
  readonly held: PlacedLane
  readonly redrive: StoredRedrive
}

/** null when this server may not go on with them. */
async function holdBoth({ tx }: OfficeWork, lane: Lane, owner: string): Promise<Both | null> {
  // In one flight; the redrive is read once the lane is locked.
  const [held, redrive] = await Promise.all([holdLane(tx, lane), readRedriveByNumber(tx, lane.redrive)])
  const isOurs = redrive?.owner === owner && isWorking(redrive.state)
  return held === null || !isOurs ? null : { held, redrive }
}

interface Chosen {
  readonly members: readonly LaneLetter[]
  readonly fit: readonly (BulkLetter & Departing)[]
  readonly edits: Edits
  readonly exceptions: readonly Exception[]
}

/** Locks the next letters and decides about them; the batch ends before the first that cannot be decided yet. */
async function choose(
  { tx }: OfficeWork,
  { held, redrive }: Both,
  next: readonly LaneLetter[],
  { repairer }: BatchTerms,
): Promise<Chosen> {
  const letters = before(next, await firstOutOfTurn(tx, redrive, held, next))
  const asPlanned = await lockEligible(tx, redrive, letters)
  const repaired = await repairLetters(tx, redrive, held, repairer, asPlanned.fit)
  const ordered = await keepOrder(tx, redrive, held, letters, repaired.fit)
  const members = before(before(letters, repaired.next), ordered.next)
  const decided = new Set(members.map(({ letter }) => letter))
  const originalQueue = held.destination === '' ? null : held.destination
  return {
    members,
    fit: ordered.fit
      .filter(({ id }) => decided.has(id))
      .map((letter: BulkLetter) => ({ ...letter, originalQueue })),
    edits: repaired.edits,
    exceptions: [...asPlanned.exceptions, ...repaired.exceptions, ...ordered.exceptions].filter(
      ({ letter }) => decided.has(letter),
    ),
  }
}

/** Letters before `end`; all without one. */
function before(letters: readonly LaneLetter[], end: LetterId | null): readonly LaneLetter[] {
  const place = letters.findIndex(({ letter }) => letter === end)
  return place === -1 ? letters : letters.slice(0, place)
}

/** Acts on locked letters; gives the refused ones. Throws what concerns all of them. */
async function act(
  work: OfficeWork,
  redrive: Redrive,
  source: LetterSource,
  letters: Chosen['fit'],
  edits: Edits,
): Promise<readonly Refused[]> {
  if (letters.length === 0) return []
  const how = sendingOf(redrive)
  switch (redrive.action) {
    case 'discard': {
      await source.moved(work, letters, 'discard')
      const details = sentBy(how.redrive)
      await change(
        work,
        'discard',
        letters.map(({ id, engine }) => ({ id, engine, details })),
        how,
      )
      return []
    }
    case 'restore':
      return aboutLetters(
        await restoreLetters(
          work,
          source,
          letters.map((letter) => ({ ...letter, before: letter })),
          how,
        ),
      )
    case 'retry':
    case 'move':
      return aboutLetters((await sendBack(work, source, letters, edits, how)).filter(isRefused))
  }
}

/** Refusals of single letters. Throws the first that concerns all. */
function aboutLetters(refused: readonly Refused[]): readonly Refused[] {
  for (const { refusal } of refused) if (!isAboutLetter(refusal)) throw refusal
  return refused
}

const sendingOf = (redrive: Redrive) => ({
  notes: redrive.reason === null ? `Redrive ${redrive.id}` : `${redrive.reason} (redrive ${redrive.id})`,
  actor: redrive.startedBy ?? redrive.plannedBy,
  redrive: refOf(redrive),
})

/** Records the batch, and how far the lane is, with the commit. */
async function moveOn(
  { tx }: OfficeWork,
  { held, redrive }: Both,
  members: readonly LaneLetter[],
  exceptions: readonly Exception[],
): Promise<BatchDone> {
  await noteExceptions(tx, redrive.number, exceptions)
  const failed = exceptions.filter(({ outcome }) => outcome === 'failed').length
  const step = { sent: members.length - exceptions.length, skipped: exceptions.length - failed, failed }
  const last = members.at(-1)
  if (last !== undefined) advanceLane(tx, held, { ...step, to: last })
  return { outcome: 'done', ...step, terms: redrive.terms }
}

/** Sends the next letter over the network and counts it, whatever was decided about the redrive meanwhile. */
async function runOutside(
  db: Database,
  clock: Clock,
  lane: Lane,
  terms: BatchTerms & { readonly source: OutsideSource },
): Promise<BatchResult> {
  const next = await inOffice(db, clock, 'redrive.next', (work) => nextOutside(work, lane, terms))
  if ('outcome' in next) return next
  const { redrive, member, letter, edits } = next
  const forgo = () =>
    inOffice(db, clock, 'redrive.unsent', (work) => forgoRedrive(work, letter.id, member.version, redrive))
  const [answer] = await terms.source
    .sendOutside([letter], edits, sendingOf(redrive))
    .catch(async (error: unknown) => {
      await forgo()
      throw error
    })
  const refused = answer !== undefined && isRefused(answer) ? answer : null
  if (refused !== null && !isAboutLetter(refused.refusal)) {
    await forgo()
    throw refused.refusal
  }
  return inOffice(db, clock, 'redrive.sent', async (work) => {
    const held = await holdLane(work.tx, lane)
    // Another server found it sent and has counted it.
    if (held === null || !isAhead(held, member)) return { outcome: 'halted' }
    // Refused as uncertain, it may have come back meanwhile.
    const isSent = refused === null || (await wasSent(work, redrive, member))
    return leftBehind(work, { redrive, held }, member, isSent ? [] : [exceptionOf(refused)])
  })
}

/** Counts a letter as sent, or as left out. */
async function leftBehind(
  work: OfficeWork,
  both: Both,
  member: LaneLetter,
  exceptions: readonly Exception[],
): Promise<BatchDone> {
  if (exceptions.length > 0) await forgoRedrive(work, member.letter, member.version, both.redrive)
  return moveOn(work, both, [member], exceptions)
}

interface Next {
  readonly redrive: StoredRedrive
  readonly member: LaneLetter
  readonly letter: Departing
  readonly edits: Edits
}

/** The next letter to send; one left out, or sent before a crash, is counted here. */
async function nextOutside(work: OfficeWork, lane: Lane, terms: BatchTerms): Promise<Next | BatchResult> {
  const both = await holdBoth(work, lane, terms.owner)
  if (both === null) return { outcome: 'halted' }
  const next = await nextLetters(work.tx, both.held, both.held.behind, 1)
  const [member] = next
  if (member === undefined) return moveOn(work, both, [], [])
  if (await wasSent(work, both.redrive, member)) return leftBehind(work, both, member, [])
  const { members, fit, edits, exceptions } = await choose(work, both, next, terms)
  const [letter] = fit
  if (letter !== undefined) return { redrive: both.redrive, member, letter, edits }
  return members.length === 0 ? moveOn(work, both, [], []) : leftBehind(work, both, member, exceptions)
}

/** Whether this redrive sent the letter already: its server died before counting it. */
async function wasSent({ tx }: OfficeWork, redrive: StoredRedrive, member: LaneLetter): Promise<boolean> {
  const letter = (await readBulkLetters(tx, [member.letter])).get(member.letter)
  if (letter === undefined || letter.version === member.version) return false
  return letter.redrive === redrive.number || wasSentFor(tx, member.letter, member.version, redrive)
}
