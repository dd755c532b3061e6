/**
 * I10: of every redrive, planned = sent + skipped + failed + remaining, and its letters agree. A lane has as many as planned and has passed
 * as many as it counts. Letters left out are noted; each of the others was sent once, as history says. No letter claims a redrive that did
 * not send it. Outcomes are no more than were sent, and no fewer than letters say.
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
import { big, oneOf, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { isSending, type RedriveAction, redriveNumber, type Terms } from '../redrive.ts'
import { type PlacedLane, readLanes } from '../rows/lanes.ts'

const REDRIVE = rowShape({
  number: redriveNumber,
  id: text,
  action: oneOf<RedriveAction>(),
  // Written by the office, from a value of this type.
  terms: (value: string) => JSON.parse(value) as Terms,
  startedAt: orNull(big),
})
type AuditedRedrive = RowOf<typeof REDRIVE>

/** Without those being planned or removed, which are not whole and hidden. */
const readRedrives = read(
  'redrives',
  `SELECT ${REDRIVE.columns} FROM bartleby.redrives
   WHERE state NOT IN ('planning', 'forgotten') ORDER BY number`,
)

/** All redrives, the oldest first, some at a time. */
export async function* redrivePages(walker: Walker): AsyncGenerator<readonly AuditedRedrive[]> {
  for await (const rows of batchesOf<object>(walker, readRedrives)) yield rows.map(REDRIVE.read)
}

interface AuditedLane extends Omit<PlacedLane, 'redrive'> {
  readonly redrive: AuditedRedrive
  readonly census: LaneCensus
  /** For letters that leave over a network: the next one, which may have been sent. */
  readonly next: NextLetter | null
}

/** `underWay`: sent over a network, not counted yet. `confirmed`, `returned`: the last news of a sent letter. */
const NOTHING = { behind: 0, ahead: 0, skipped: 0, failed: 0, underWay: 0, confirmed: 0, returned: 0 }
type LaneCensus = typeof NOTHING

/** All redrives and lanes, which are few. */
interface Register {
  readonly redrives: ReadonlyMap<number, AuditedRedrive>
  readonly lanes: ReadonlyMap<string, AuditedLane>
}

/** One of these may have been sent and is counted in a moment. */
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

/** Letters in lanes, and letters left out; no index has this order. */
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

/** Planned letters of all lanes; a letter in two redrives counts twice. */
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

/** Checks every letter's places in redrives, then the counts of redrives and lanes. */
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

/** Faults of the places that a letter has, or should have, in redrives. */
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
  // A forgotten redrive is unknown.
  const named = redrives.get(Number(letter?.redrive))
  if (named !== undefined && !isSent)
    yield {
      what: `letter ${id} says that redrive ${named.id} sent it, which has not`,
      row: { redrive: named.id, letter: id, engine: letter?.engine, sourceId: letter?.sourceId },
    }
}

/** A letter that went over a network and failed for another reason since was not heard to come back. */
function countOutcome(lane: AuditedLane, { confirmed_at, status }: FoundRow): void {
  const { census, redrive } = lane
  if (!isSending(redrive.action)) return
  if (confirmed_at !== null) census.confirmed++
  else if (Number(status) === STATUS.Pending && !leavesOverNetwork(lane)) census.returned++
}

interface Member {
  readonly letter: number
  readonly isThere: boolean
  readonly isBehind: boolean
  /** null: not left out. */
  readonly outcome: number | null
  /** Times that history says this redrive sent it. */
  readonly recorded: number
}

const isBehind = ({ behind }: AuditedLane, capturedAt: FoundRow[string], letter: number): boolean => {
  const at = BigInt(capturedAt ?? 0)
  return at < behind.capturedAt || (at === behind.capturedAt && BigInt(letter) <= behind.letter)
}

const names = (output: unknown, { id }: AuditedRedrive): boolean =>
  output instanceof Uint8Array && Buffer.from(output).includes(`"redrive":"${id}"`)

/** Passed letters were sent once, or noted. */
function* passed({ historySince }: Audit, lane: AuditedLane, member: Member): Iterable<Finding> {
  const { outcome, recorded } = member
  lane.census.behind++
  if (outcome !== null) {
    if (outcome === 1) lane.census.failed++
    else lane.census.skipped++
    if (recorded > 0) yield finding(lane, member, 'is noted as left out, and was sent')
  } else if (recorded > 1 && member.isThere) yield finding(lane, member, `was sent ${recorded} times`)
  else if (recorded === 0 && member.isThere && isSending(lane.redrive.action)) {
    // Retention may have removed older history.
    if ((lane.redrive.startedAt ?? 0n) >= historySince)
      yield finding(lane, member, 'counts as sent, and history does not have it')
  }
}

/** Letters ahead were neither. */
function* remaining(lane: AuditedLane, member: Member): Iterable<Finding> {
  const { outcome, recorded } = member
  lane.census.ahead++
  if (outcome !== null) yield finding(lane, member, 'is noted as left out before it was its turn')
  else if (recorded === 0 || !member.isThere) return
  else if (recorded === 1 && lane.next?.letter === member.letter) lane.census.underWay = 1
  else yield finding(lane, member, 'was sent before it was its turn')
}

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
 * The next letter, if it leaves over a network, may have been sent and is counted in a moment or by the next server: history says so, or
 * the changed letter names the redrive.
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

/** Compares the counts of redrives and lanes with what was found. */
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
    // The surplus is on letters in no lane, or ahead of its place.
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
    // Counts alone remember letters that were acted on since, or are gone.
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
