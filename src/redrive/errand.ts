/**
 * Letters of a lane one by one, for what cannot be done to many at once: letters of outboxes and webhooks, restoring, and letters that
 * leave over a network. What is within reach of a transaction is done in the one that moves the lane on, some letters at a time. A
 * network is not: its source writes for which redrive a letter leaves before it does, and a server that finds the next letter sent
 * counts it instead of sending it again.
 */
import type { Clock } from '../core/clock.ts'
import { BartlebyError } from '../core/errors.ts'
import type { Database } from '../db/database.ts'
import { isBefore, readCandidates } from '../letters/candidates.ts'
import { readLetterById } from '../letters/detail.ts'
import {
  type Edit,
  isRemote,
  type Letter,
  type LetterSource,
  type RemoteLetterSource,
} from '../letters/letter.ts'
import { unnameRedrive, wasSentFor } from '../letters/redriven.ts'
import { retryLetter } from '../letters/resolve.ts'
import { changeLetter } from '../letters/restore.ts'
import { inOffice, type OfficeWork } from '../letters/work.ts'
import {
  actorOf,
  type BatchDone,
  type BatchResult,
  type BatchTerms,
  type Both,
  doneWith,
  holdBoth,
  notesOf,
} from './batch.ts'
import { advanceLane, holdLane, type Lane } from './lanes.ts'
import { type LaneLetter, nextLetters, noteExceptions } from './members.ts'
import { exceptionOf, isObstacle, isPassing } from './obstacles.ts'
import { type Exception, isSending, type Redrive, refOf } from './redrive.ts'
import { repairLetter } from './repair-letter.ts'
import type { StoredRedrive } from './rows.ts'
import { REPAIR_MS, siftLetters, skipped } from './sifting.ts'

/** Letters of one transaction, where a refusal of one undoes the others too: they are done again one by one. */
const SOME = 50

/** Does the next letters of a lane. Refuses when the redrive cannot go on; then nothing was done. */
export async function runErrand(
  db: Database,
  clock: Clock,
  redrive: Redrive,
  lane: Lane,
  terms: BatchTerms,
): Promise<BatchResult> {
  const { source, size } = terms
  if (isRemote(source) && isSending(redrive.action)) return runRemote(db, clock, lane, terms, source)
  const run = (letters: number): Promise<BatchResult> =>
    inOffice(db, clock, 'redrive.letters', (work) => doSome(work, lane, { ...terms, size: letters }))
  try {
    return await run(Math.min(size, SOME))
  } catch (error) {
    if (!isAboutLetter(error)) throw error
  }
  try {
    return await run(1)
  } catch (error) {
    if (!isAboutLetter(error)) throw error
    return inOffice(db, clock, 'redrive.refused', (work) => passOver(work, lane, terms, error))
  }
}

/** Whether it concerns the letter at hand, and not all of them. */
const isAboutLetter = (error: unknown): error is BartlebyError =>
  error instanceof BartlebyError && !isObstacle(error) && !isPassing(error)

/** The next letters of a lane, each by itself, in one transaction. */
async function doSome(work: OfficeWork, lane: Lane, terms: BatchTerms): Promise<BatchResult> {
  const { tx } = work
  const both = await holdBoth(work, lane, terms.owner)
  if (both === null) return { outcome: 'halted' }
  const next = await nextLetters(tx, both.held, both.held.behind, terms.size)
  const sifted = await siftLetters(tx, both.redrive, next)
  const leftOut = new Map(sifted.exceptions.map((exception) => [exception.letter, exception]))
  const members: LaneLetter[] = []
  const exceptions: Exception[] = []
  const startedMs = performance.now()
  for (const member of next) {
    // A recipe may take its time for each of them.
    if (members.length > 0 && performance.now() - startedMs > REPAIR_MS) break
    members.push(member)
    const ready = leftOut.get(member.letter) ?? (await readyLetter(work, both.redrive, member, terms))
    if ('reason' in ready) exceptions.push(ready)
    else await act(work, terms.source, both.redrive, ready)
  }
  await noteExceptions(tx, both.redrive.number, exceptions)
  return movedOn(work, both, members, exceptions)
}

/** A letter that can be acted on now, locked. */
interface Ready {
  readonly letter: Letter
  readonly edit: Edit | null
}

/** A letter that was locked and found fit, as it is to be sent; or why it is left out. */
async function readyLetter(
  { tx }: OfficeWork,
  redrive: StoredRedrive,
  member: LaneLetter,
  { repairer }: BatchTerms,
): Promise<Ready | Exception> {
  const letter = await readLetterById(tx, member.letter)
  if (letter === null) return skipped(member.letter, 'gone')
  const { edit, refusal } = await repairLetter(repairer, redrive.recipe, letter)
  return refusal === null ? { letter, edit } : skipped(letter.id, 'repair_refused', refusal)
}

async function act(
  work: OfficeWork,
  source: LetterSource,
  redrive: StoredRedrive,
  { letter, edit }: Ready,
): Promise<void> {
  const [notes, actor] = [notesOf(redrive), actorOf(redrive)]
  switch (redrive.action) {
    case 'restore':
      await changeLetter(work, source, letter, { status: 'Pending', notes, actor })
      return
    case 'discard':
      await changeLetter(work, source, letter, { status: 'Resolved', notes, actor })
      return
    case 'retry':
    case 'move':
      if (isRemote(source)) throw new Error(`letters of '${source.name}' leave over a network`)
      await retryLetter(work, source, letter, { edit, notes, actor, redrive: refOf(redrive) })
  }
}

/** The lane is so many letters further, with the commit. */
function movedOn(
  { tx }: OfficeWork,
  both: Both,
  members: readonly LaneLetter[],
  exceptions: readonly Exception[],
): BatchDone {
  const failed = exceptions.filter(({ outcome }) => outcome === 'failed').length
  const step = {
    sent: members.length - exceptions.length,
    skipped: exceptions.length - failed,
    failed,
  }
  const last = members.at(-1)
  if (last !== undefined) advanceLane(tx, both.held, { ...step, to: last })
  return doneWith(both, step)
}

/** A source refused the letter, and all of its transaction is undone: it is noted, and the lane goes on. */
async function passOver(
  work: OfficeWork,
  lane: Lane,
  { owner }: BatchTerms,
  error: BartlebyError,
): Promise<BatchResult> {
  const both = await holdBoth(work, lane, owner)
  if (both === null) return { outcome: 'halted' }
  const members = await nextLetters(work.tx, both.held, both.held.behind, 1)
  const exceptions = members.map(({ letter }) => exceptionOf(letter, error))
  await noteExceptions(work.tx, both.redrive.number, exceptions)
  return movedOn(work, both, members, exceptions)
}

/** The next letter of a lane, to be sent over the network. */
interface Next extends Ready {
  readonly both: Both
  readonly member: LaneLetter
}

/** Sends the next letter of a lane over the network, and counts it whatever was decided about the redrive meanwhile. */
async function runRemote(
  db: Database,
  clock: Clock,
  lane: Lane,
  terms: BatchTerms,
  source: RemoteLetterSource,
): Promise<BatchResult> {
  const next = await inOffice(db, clock, 'redrive.next', (work) => nextRemote(work, lane, terms))
  if ('outcome' in next) return next
  const { both, member, letter, edit } = next
  const { redrive } = both
  let refusal: BartlebyError | null = null
  try {
    const how = { notes: notesOf(redrive), actor: actorOf(redrive), redrive: refOf(redrive) }
    await source.sendRemote(letter, { edit, ...how })
  } catch (error) {
    if (!isAboutLetter(error)) {
      await db.session('redrive.unsent', (session) =>
        unnameRedrive(session, letter.id, member.version, redrive),
      )
      throw error
    }
    refusal = error
  }
  return inOffice(db, clock, 'redrive.sent', async (work) => {
    const held = await holdLane(work.tx, lane)
    if (held === null || !isAhead(held.behind, member)) return { outcome: 'halted' }
    // One that was refused because nobody knew whether it had arrived may have come back meanwhile.
    const isSent = refusal === null || (await wasSent(work, redrive, member))
    const exception = isSent || refusal === null ? null : exceptionOf(letter.id, refusal)
    return leftBehind(work, { redrive, held }, member, exception)
  })
}

/** A letter was sent, or left out for this reason. */
async function leftBehind(
  work: OfficeWork,
  both: Both,
  member: LaneLetter,
  exception: Exception | null,
): Promise<BatchDone> {
  const exceptions = exception === null ? [] : [exception]
  if (exception !== null) {
    await noteExceptions(work.tx, both.redrive.number, exceptions)
    await unnameRedrive(work.tx, member.letter, member.version, both.redrive)
  }
  return movedOn(work, both, [member], exceptions)
}

/** False: another server found it sent, and has counted it. */
const isAhead = (behind: Both['held']['behind'], member: LaneLetter): boolean =>
  isBefore(
    { capturedAt: behind.capturedAt, id: behind.letter },
    { capturedAt: member.capturedAt, id: member.letter },
  )

/** The next letter; what is left out, or was sent before a crash, is counted. */
async function nextRemote(work: OfficeWork, lane: Lane, terms: BatchTerms): Promise<Next | BatchResult> {
  const { tx } = work
  const both = await holdBoth(work, lane, terms.owner)
  if (both === null) return { outcome: 'halted' }
  const [member] = await nextLetters(tx, both.held, both.held.behind, 1)
  if (member === undefined) return movedOn(work, both, [], [])
  if (await wasSent(work, both.redrive, member)) return leftBehind(work, both, member, null)
  const { exceptions } = await siftLetters(tx, both.redrive, [member])
  const ready = exceptions[0] ?? (await readyLetter(work, both.redrive, member, terms))
  return 'reason' in ready ? leftBehind(work, both, member, ready) : { ...ready, both, member }
}

/** Whether this redrive has sent the letter already, whatever became of it: its server ended between the two. */
async function wasSent({ tx }: OfficeWork, redrive: StoredRedrive, member: LaneLetter): Promise<boolean> {
  const letter = (await readCandidates(tx, [member.letter])).get(member.letter)
  if (letter === undefined || letter.version === member.version) return false
  return letter.redrive === redrive.number || wasSentFor(tx, member.letter, member.version, redrive)
}
