/**
 * I10: of every redrive, planned = sent + skipped + failed + remaining, and each number is what its letters say: the lane has as many
 * as were planned, and is past as many as it counts; those that it left out are noted; each of the others was sent, once, which
 * history has; no letter says that it was sent and was not; no more were heard of than were sent, and no fewer than letters say.
 */

import type {
  Audit,
  CaseFile,
  CountedSide,
  Finding,
  FoundRow,
  Invariant,
  LetterCheck,
} from '../../letters/audit/invariant.ts'
import { batchesOf, read, Sums, type Walker } from '../../letters/audit/walk.ts'
import { kindOf } from '../../letters/kinds.ts'
import { STATUS } from '../../letters/letter.ts'
import { outcomesOf } from '../../letters/numbers/counts.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { isSending, type RedriveAction, type RedriveNumber, redriveNumber, type Terms } from '../redrive.ts'
import { type PlacedLane, readLanes } from '../rows/lanes.ts'

/** A redrive as its row has it. */
interface AuditedRedrive {
  readonly number: RedriveNumber
  readonly id: string
  readonly action: RedriveAction
  readonly order: Terms['order']
  /** null: it is a plan. */
  readonly startedAt: bigint | null
}

/** What is being planned, or forgotten, is not whole and nobody is shown it. */
const readRedrives = read(
  'redrives',
  `SELECT number, id, action, terms, started_at FROM bartleby.redrives
   WHERE state NOT IN ('planning', 'forgotten') ORDER BY number`,
)

interface RedriveRow {
  readonly number: Integer
  readonly id: string
  readonly action: RedriveAction
  readonly terms: string
  readonly started_at: Integer | null
}

/** All redrives, the oldest first, some at a time. */
export async function* redrivePages(walker: Walker): AsyncGenerator<readonly AuditedRedrive[]> {
  for await (const rows of batchesOf<RedriveRow>(walker, readRedrives))
    yield rows.map(({ number, id, action, terms, started_at }) => ({
      ...{ number: redriveNumber(number), id, action },
      // Written by the office, from a value of this type.
      order: (JSON.parse(terms) as Terms).order,
      startedAt: started_at === null ? null : BigInt(started_at),
    }))
}

/** A lane with its redrive, and what its letters say of it. */
interface AuditedLane extends Omit<PlacedLane, 'redrive'> {
  readonly redrive: AuditedRedrive
  readonly census: LaneCensus
  /** Of letters that leave over a network: the next one, which may have been sent. */
  readonly next: NextLetter | null
}

/** `underWay`: sent over a network, and not counted yet. `confirmed`, `returned`: sent, and this was the last that was heard of them. */
const NOTHING = { behind: 0, ahead: 0, skipped: 0, failed: 0, underWay: 0, confirmed: 0, returned: 0 }
type LaneCensus = typeof NOTHING

/** All redrives and their lanes, which are few. */
interface Register {
  readonly redrives: ReadonlyMap<number, AuditedRedrive>
  readonly lanes: ReadonlyMap<string, AuditedLane>
}

/** One of these may have been sent, and is counted in a moment. */
const leavesOverNetwork = ({ source }: Pick<PlacedLane, 'source'>): boolean =>
  kindOf(source).sendsOutside === true

const nameOf = (redrive: FoundRow[string], lane: FoundRow[string]): string => `${redrive} ${lane}`

async function readRegister(audit: Audit): Promise<Register> {
  const { session } = audit
  const redrives = new Map<number, AuditedRedrive>()
  const lanes = new Map<string, AuditedLane>()
  for await (const page of redrivePages(audit)) {
    for (const redrive of page) redrives.set(redrive.number, redrive)
    for (const placed of await readLanes(
      session,
      page.map(({ number }) => number),
    )) {
      const redrive = redrives.get(placed.redrive)
      if (redrive === undefined) continue
      const next = leavesOverNetwork(placed) ? await nextLetter(session, placed) : null
      const census = { ...NOTHING, underWay: next?.isNamed === true ? 1 : 0 }
      lanes.set(nameOf(placed.redrive, placed.lane), { ...placed, redrive, census, next })
    }
  }
  return { redrives, lanes }
}

/** What is in the lanes of redrives, which are `redriven` letters, and what redrives left out: no index has that in this order. */
const MEMBERS: CountedSide = {
  statement: read(
    'members',
    'SELECT letter AS key, redrive, lane, captured_at FROM bartleby.redrive_letters ORDER BY letter',
  ),
  rows: redriven,
}
const NOTES: CountedSide = {
  statement: read(
    'notes',
    'SELECT letter AS key, redrive, outcome FROM bartleby.redrive_exceptions ORDER BY letter',
  ),
}

const readRedriven = sql(
  'verify.redriven',
  'SELECT coalesce(sum(planned), 0) AS redriven FROM bartleby.redrive_lanes',
)

/** What the lanes of redrives were planned with; a letter that is in two counts twice. */
export async function redriven({ session }: Audit): Promise<number> {
  const [planned] = await session.rows<{ redriven: Integer }>(readRedriven)
  return Number(planned?.redriven)
}

export const redriveLanes: Invariant = {
  id: 'I10',
  promise:
    'a redrive has sent, skipped and failed as many letters as it says, each once, and the others remain',
  beside: { members: MEMBERS, notes: NOTES },
  ofLetters: lanesOf,
}

/** The letters of all redrives, and those that say a redrive sent them; then what redrives and lanes count. */
async function lanesOf(audit: Audit): Promise<LetterCheck> {
  const register = await readRegister(audit)
  const notesOf = new Sums<number>()
  return {
    *look(file) {
      const { members = [], notes = [] } = file.beside
      for (const { redrive } of notes) notesOf.add(Number(redrive), 1)
      if (members.length > 0 || (file.letter?.redrive ?? null) !== null)
        yield* placesOf(audit, register, file)
    },
    end: () => totals(audit, register, notesOf),
  }
}

/** What is wrong with the places that a letter has in redrives, or should have. */
function* placesOf(audit: Audit, { redrives, lanes }: Register, file: CaseFile): Iterable<Finding> {
  const { id, letter, beside } = file
  const { members = [], notes = [] } = beside
  let isSent = false
  for (const { redrive, lane: number, captured_at } of members) {
    const lane = lanes.get(nameOf(redrive, number))
    if (lane === undefined) continue
    const note = notes.find((each) => Number(each.redrive) === Number(redrive))
    const member: Member = {
      letter: id,
      isThere: letter !== undefined,
      isBehind: isBehind(lane, captured_at, id),
      outcome: note === undefined ? null : Number(note.outcome),
      recorded: file.transitions.filter(({ output }) => names(output, lane.redrive)).length,
    }
    yield* member.isBehind ? passed(audit, lane, member) : remaining(lane, member)
    if (letter === undefined || Number(letter.redrive) !== Number(redrive)) continue
    isSent ||= member.isBehind ? note === undefined : lane.next?.letter === id
    if (member.isBehind && note === undefined) countOutcome(lane, letter)
  }
  // Of a redrive that was forgotten nothing is known.
  const named = redrives.get(Number(letter?.redrive))
  if (named !== undefined && !isSent)
    yield {
      what: `letter ${id} says that redrive ${named.id} sent it, which has not`,
      row: { redrive: named.id, letter: id, engine: letter?.engine, sourceId: letter?.sourceId },
    }
}

/** Of one that went over a network and failed meanwhile for another reason, nobody has heard that it came back. */
function countOutcome(lane: AuditedLane, { confirmed_at, status }: FoundRow): void {
  const { census, redrive } = lane
  if (!isSending(redrive.action)) return
  if (confirmed_at !== null) census.confirmed++
  else if (Number(status) === STATUS.Pending && !leavesOverNetwork(lane)) census.returned++
}

/** A letter of a lane. */
interface Member {
  readonly letter: number
  /** Whether the letter has not been removed. */
  readonly isThere: boolean
  readonly isBehind: boolean
  /** null: it was not left out. */
  readonly outcome: number | null
  /** How often history says that this redrive sent it. */
  readonly recorded: number
}

const isBehind = ({ behind }: AuditedLane, capturedAt: FoundRow[string], letter: number): boolean => {
  const at = BigInt(capturedAt ?? 0)
  return at < behind.capturedAt || (at === behind.capturedAt && BigInt(letter) <= behind.letter)
}

const names = (output: unknown, { id }: AuditedRedrive): boolean =>
  output instanceof Uint8Array && Buffer.from(output).includes(`"redrive":"${id}"`)

/** Behind the place of its lane a letter was sent once, or noted. */
function* passed({ historySince }: Audit, lane: AuditedLane, member: Member): Iterable<Finding> {
  const { outcome, recorded } = member
  lane.census.behind++
  if (outcome !== null) {
    if (outcome === 1) lane.census.failed++
    else lane.census.skipped++
    if (recorded > 0) yield finding(lane, member, 'is noted as left out, and was sent')
  } else if (recorded > 1 && member.isThere) yield finding(lane, member, `was sent ${recorded} times`)
  else if (recorded === 0 && member.isThere && isSending(lane.redrive.action)) {
    // What retention took from history is not missed.
    if ((lane.redrive.startedAt ?? 0n) >= historySince)
      yield finding(lane, member, 'counts as sent, and history does not have it')
  }
}

/** Ahead of it a letter was neither. */
function* remaining(lane: AuditedLane, member: Member): Iterable<Finding> {
  const { outcome, recorded } = member
  lane.census.ahead++
  if (outcome !== null) yield finding(lane, member, 'is noted as left out before it was its turn')
  else if (recorded === 0 || !member.isThere) return
  else if (recorded === 1 && lane.next?.letter === member.letter) lane.census.underWay = 1
  else yield finding(lane, member, 'was sent before it was its turn')
}

/** The next letter of a lane, along the primary key. */
const readNext = read(
  'nextMember',
  `SELECT member.letter, member.version AS planned, letter.version, letter.redrive FROM bartleby.redrive_letters AS member
   JOIN bartleby.letters AS letter ON letter.id = member.letter
   WHERE member.redrive = $1 AND member.lane = $2 AND (member.captured_at, member.letter) > ($3, $4)
   ORDER BY member.captured_at, member.letter LIMIT 1`,
)

interface NextLetter {
  readonly letter: number
  readonly isNamed: boolean
}

/**
 * Of letters that leave over a network the next one may have been sent, and is counted in a moment, or by the server that takes the
 * redrive up: history says so, or the letter, which is not what it was, names the redrive.
 */
async function nextLetter(
  session: Session,
  { redrive, lane, behind }: PlacedLane,
): Promise<NextLetter | null> {
  const [next] = await session.rows<FoundRow>(readNext, redrive, lane, behind.capturedAt, behind.letter)
  if (next === undefined) return null
  const isNamed = Number(next.redrive) === redrive && Number(next.version) !== Number(next.planned)
  return { letter: Number(next.letter), isNamed }
}

/** What redrives and their lanes count, and what was found. */
async function* totals(
  { session }: Audit,
  { redrives, lanes }: Register,
  notesOf: ReadonlyMap<number, number>,
): AsyncGenerator<Finding> {
  const byRedrive = Map.groupBy(lanes.values(), ({ redrive }) => redrive)
  const outcomes = await outcomesOf(
    session,
    [...redrives.values()].map(({ number }) => number),
  )
  for (const [number, redrive] of redrives) {
    const { id } = redrive
    let [sent, leftOut, underWay] = [0, 0, 0]
    const found = { confirmed: 0, returned: 0 }
    for (const lane of byRedrive.get(redrive) ?? []) {
      yield* laneFaults(lane)
      sent += lane.sent
      leftOut += lane.census.skipped + lane.census.failed
      underWay += lane.census.underWay
      found.confirmed += lane.census.confirmed
      found.returned += lane.census.returned
    }
    // Others are on letters that are in no lane, or not behind its place.
    const notes = notesOf.get(number) ?? 0
    if (notes !== leftOut)
      yield {
        what: `redrive ${id} has notes on ${notes} letters, and left out ${leftOut}`,
        row: { redrive: id, notes, leftOut },
      }
    const { confirmed, returned } = outcomes.get(redrive.number) ?? { confirmed: 0, returned: 0 }
    if (confirmed < 0 || returned < 0 || confirmed + returned > sent + underWay)
      yield {
        what: `redrive ${id} heard of ${confirmed + returned} letters, and has sent ${sent}`,
        row: { redrive: id, sent, confirmed, returned },
      }
    // Of letters that something else was done to since, or that are gone, only the counts know.
    if (found.confirmed > confirmed || found.returned > returned)
      yield {
        what: `redrive ${id} counts ${confirmed} confirmed and ${returned} returned letters, and has ${found.confirmed} and ${found.returned}`,
        row: {
          redrive: id,
          confirmed,
          returned,
          found: `${found.confirmed} confirmed, ${found.returned} returned`,
        },
      }
  }
}

function* laneFaults(lane: AuditedLane): Iterable<Finding> {
  const { behind, ahead, skipped, failed } = lane.census
  const { redrive, planned, sent } = lane
  const row = { ...placeOf(lane), planned, sent, skipped: lane.skipped, failed: lane.failed }
  const name = `lane ${lane.lane} of redrive ${redrive.id}`
  const found = behind + ahead
  if (found !== planned)
    yield { what: `${name} was planned with ${planned} letters, and has ${found}`, row: { ...row, found } }
  const counted = sent + lane.skipped + lane.failed
  if (behind !== counted)
    yield {
      what: `${name} has passed ${behind} letters, and counts ${counted}`,
      row: { ...row, passed: behind },
    }
  if (skipped !== lane.skipped || failed !== lane.failed)
    yield {
      what: `${name} counts ${lane.skipped} skipped and ${lane.failed} failed letters, and has notes of ${skipped} and ${failed}`,
      row: { ...row, noted: `${skipped} skipped, ${failed} failed` },
    }
}

const placeOf = ({ redrive, lane, destination }: AuditedLane) => ({ redrive: redrive.id, lane, destination })

const finding = (lane: AuditedLane, { letter, recorded }: Member, what: string): Finding => ({
  what: `letter ${letter} of redrive ${lane.redrive.id} ${what}`,
  row: { ...placeOf(lane), letter, recorded },
})
