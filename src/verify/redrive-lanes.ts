/** Redrives and their lanes: what they count is what their letters, the notes on these, and history say. */
import type { Integer, Session, Value } from '../db/database.ts'
import { readSeriesLabels } from '../history/rows.ts'
import { KAFKA } from '../kafka/event.ts'
import { KAFKA_OPERATIONS } from '../letters/letter.ts'
import { outcomesOf } from '../letters/outcomes.ts'
import { LANE_START, type PlacedLane, readLanes } from '../redrive/lanes.ts'
import {
  isSending,
  type RedriveAction,
  type RedriveNumber,
  redriveNumber,
  type Terms,
} from '../redrive/redrive.ts'
import type { Audit, Finding, FoundRow } from './invariant.ts'
import { pages, read, STEP } from './walk.ts'

/** A redrive as its row has it. */
interface AuditedRedrive {
  readonly number: RedriveNumber
  readonly id: string
  readonly action: RedriveAction
  readonly order: Terms['order']
  /** null: it is a plan. */
  readonly startedAt: bigint | null
}

/** Along the primary key. What is being planned, or forgotten, is not whole and nobody is shown it. */
const readRedrives = read(
  'redrives',
  `SELECT number, id, action, terms, started_at FROM bartleby.redrives
   WHERE number > $1 AND state NOT IN ('planning', 'forgotten') ORDER BY number LIMIT 100`,
)

interface RedriveRow {
  readonly number: Integer
  readonly id: string
  readonly action: RedriveAction
  readonly terms: string
  readonly started_at: Integer | null
}

/** All redrives, the oldest first, some at a time. */
export async function* redrivePages(session: Session): AsyncGenerator<readonly AuditedRedrive[]> {
  for await (const rows of pages<RedriveRow>(session, readRedrives, [0], ({ number }) => [number]))
    yield rows.map(({ number, id, action, terms, started_at }) => ({
      ...{ number: redriveNumber(number), id, action },
      // Written by the office, from a value of this type.
      order: (JSON.parse(terms) as Terms).order,
      startedAt: started_at === null ? null : BigInt(started_at),
    }))
}

/** A lane with its redrive. */
interface AuditedLane extends Omit<PlacedLane, 'redrive'> {
  readonly redrive: AuditedRedrive
}

/** A place in the order of a lane: that of a letter. */
type Place = readonly [capturedAt: Value, letter: Value]

const START: Place = [LANE_START.capturedAt, LANE_START.letter]
/** Behind all letters. */
const END: Place = [2n ** 63n - 1n, 2n ** 63n - 1n]

const placeOf = ({ behind }: AuditedLane): Place => [behind.capturedAt, behind.letter]

/** Where a step along the primary key ends, and how many letters it has. */
const endOfStep = read(
  'memberStep',
  `SELECT captured_at, letter, number FROM (
     SELECT captured_at, letter, row_number() OVER (ORDER BY captured_at, letter) AS number FROM bartleby.redrive_letters
     WHERE redrive = $3 AND lane = $4 AND (captured_at, letter) > ($1, $2) AND (captured_at, letter) <= ($5, $6)
     ORDER BY captured_at, letter LIMIT ${STEP}) AS step
   ORDER BY number DESC LIMIT 1`,
)

interface StepEnd {
  readonly captured_at: Integer
  readonly letter: Integer
  readonly number: Integer
}

/** The letters of a lane behind `after`, up to and with `through`, step by step: from where to where, and how many. */
async function* memberRanges(
  { session, looked }: Audit,
  { redrive, lane }: AuditedLane,
  after: Place,
  through: Place,
) {
  const keyOf = ({ captured_at, letter }: StepEnd): Place => [captured_at, letter]
  let from = after
  for await (const [end] of pages(session, endOfStep, after, keyOf, redrive.number, lane, ...through)) {
    if (end === undefined) continue
    const to = keyOf(end)
    const letters = Number(end.number)
    yield { range: [...from, ...to], letters }
    await looked(letters)
    from = to
  }
}

/** Exceptions of a redrive, along the primary key. */
const countNotes = read(
  'redriveNotes',
  'SELECT count(*) AS notes FROM bartleby.redrive_exceptions WHERE redrive = $1',
)

/**
 * Letters of a range of a lane with the notes on them, and how often history says that this redrive sent them: a few rows of history
 * for each letter. Those that were not left out, and sent `$9` times, are as they should be and do not travel.
 */
const readMembers = (counted: string): string =>
  `SELECT letter, outcome, recorded FROM (
     SELECT member.letter, member.captured_at, exception.outcome, letter.id AS found, (SELECT count(*) FROM bartleby.history AS record
         WHERE record.letter_id = member.letter AND record.correlation_id IS NOT NULL AND ${counted}) AS recorded
     FROM bartleby.redrive_letters AS member
     LEFT JOIN bartleby.redrive_exceptions AS exception ON exception.redrive = $1 AND exception.letter = member.letter
     LEFT JOIN bartleby.letters AS letter ON letter.id = member.letter
     WHERE member.redrive = $1 AND member.lane = $2 AND (member.captured_at, member.letter) > ($3, $4)
       AND (member.captured_at, member.letter) <= ($5, $6)) AS members
   WHERE outcome IS NOT NULL OR (found IS NOT NULL AND recorded <> $9) ORDER BY captured_at, letter`

const readOdd = read('oddMembers', {
  postgres: readMembers(
    `record.series = ANY($7::int[]) AND position(convert_to($8, 'UTF8') IN record.output) > 0`,
  ),
  sqlite: readMembers(
    'record.series IN (SELECT value FROM json_each($7)) AND instr(record.output, CAST($8 AS BLOB)) > 0',
  ),
})

interface MemberRow {
  readonly letter: Integer
  /** null: it was not left out. */
  readonly outcome: Integer | null
  readonly recorded: Integer
}

/** What the letters of a lane say; `underWay`: sent over a network, and not counted yet. */
const NOTHING = { behind: 0, ahead: 0, skipped: 0, failed: 0, underWay: 0 }
type LaneCensus = typeof NOTHING

export async function* redriveLanes(audit: Audit): AsyncGenerator<Finding> {
  const retries = await retrySeries(audit)
  for await (const page of redrivePages(audit.session)) {
    const numbers = page.map(({ number }) => number)
    const outcomes = await outcomesOf(audit.session, numbers)
    for (const redrive of page) {
      let [sent, leftOut, underWay] = [0, 0, 0]
      for (const placed of await readLanes(audit.session, [redrive.number])) {
        const lane = { ...placed, redrive }
        const census = { ...NOTHING }
        yield* membersOf(audit, lane, retries, census)
        yield* laneFaults(lane, census)
        sent += lane.sent
        leftOut += census.skipped + census.failed
        underWay += census.underWay
      }
      yield* strayNotes(audit, redrive, leftOut)
      const { confirmed, returned } = outcomes.get(redrive.number) ?? { confirmed: 0, returned: 0 }
      if (confirmed < 0 || returned < 0 || confirmed + returned > sent + underWay)
        yield {
          what: `redrive ${redrive.id} heard of ${confirmed + returned} letters, and has sent ${sent}`,
          row: { redrive: redrive.id, sent, confirmed, returned },
        }
    }
  }
}

/** The series of what says that a letter was sent back. */
async function retrySeries({ session }: Audit): Promise<readonly number[]> {
  const operations: readonly string[] = ['retry', KAFKA_OPERATIONS.published]
  const labels = [...(await readSeriesLabels(session))]
  return labels.filter(([, { operation }]) => operations.includes(operation)).map(([series]) => series)
}

/** Looks at all letters of a lane: those behind its place were sent once or noted, those ahead neither. */
async function* membersOf(
  audit: Audit,
  lane: AuditedLane,
  retries: readonly number[],
  census: LaneCensus,
): AsyncGenerator<Finding> {
  const isSent = isSending(lane.redrive.action)
  for await (const { range, letters } of memberRanges(audit, lane, START, placeOf(lane))) {
    census.behind += letters
    for (const member of await oddMembers(audit, lane, range, retries, isSent ? 1 : 0)) {
      if (member.outcome === null) yield* sentFaults(audit, lane, member)
      else {
        if (Number(member.outcome) === 1) census.failed++
        else census.skipped++
        if (Number(member.recorded) > 0) yield finding(lane, member, 'is noted as left out, and was sent')
      }
    }
  }
  const next = lane.source === KAFKA ? await nextLetter(audit, lane) : null
  if (next?.isNamed === true) census.underWay = 1
  for await (const { range, letters } of memberRanges(audit, lane, placeOf(lane), END)) {
    census.ahead += letters
    for (const member of await oddMembers(audit, lane, range, retries, 0)) {
      const isUnderWay = String(member.letter) === next?.letter && Number(member.recorded) === 1
      if (member.outcome !== null) yield finding(lane, member, 'is noted as left out before it was its turn')
      else if (isUnderWay) census.underWay = 1
      else yield finding(lane, member, 'was sent before it was its turn')
    }
  }
}

const oddMembers = (
  { session }: Audit,
  { redrive, lane }: AuditedLane,
  range: readonly Value[],
  retries: readonly number[],
  expected: number,
): Promise<MemberRow[]> =>
  session.rows(readOdd, redrive.number, lane, ...range, retries, `"redrive":"${redrive.id}"`, expected)

function* sentFaults({ historySince }: Audit, lane: AuditedLane, member: MemberRow): Iterable<Finding> {
  const recorded = Number(member.recorded)
  if (recorded > 1) yield finding(lane, member, `was sent ${recorded} times`)
  // What retention took from history is not missed.
  else if (recorded === 0 && isSending(lane.redrive.action) && (lane.redrive.startedAt ?? 0n) >= historySince)
    yield finding(lane, member, 'counts as sent, and history does not have it')
}

/** The next letter of a lane. */
const readNext = read(
  'nextMember',
  `SELECT member.letter, member.version AS planned, letter.version, letter.redrive FROM bartleby.redrive_letters AS member
   JOIN bartleby.letters AS letter ON letter.id = member.letter
   WHERE member.redrive = $1 AND member.lane = $2 AND (member.captured_at, member.letter) > ($3, $4)
   ORDER BY member.captured_at, member.letter LIMIT 1`,
)

/**
 * Of letters that leave over a network the next one may have been sent, and is counted in a moment, or by the server that takes the
 * redrive up: history says so, or the letter, which is not what it was, names the redrive.
 */
async function nextLetter(
  { session }: Audit,
  lane: AuditedLane,
): Promise<{ readonly letter: string; readonly isNamed: boolean } | null> {
  const { number } = lane.redrive
  const [next] = await session.rows<FoundRow>(readNext, number, lane.lane, ...placeOf(lane))
  if (next === undefined) return null
  const isNamed = Number(next.redrive) === number && Number(next.version) !== Number(next.planned)
  return { letter: String(next.letter), isNamed }
}

function* laneFaults(lane: AuditedLane, { behind, ahead, skipped, failed }: LaneCensus): Iterable<Finding> {
  const { redrive, planned, sent } = lane
  const row = { ...nameOf(lane), planned, sent, skipped: lane.skipped, failed: lane.failed }
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

/** Notes on letters that are in no lane, or not behind its place. */
async function* strayNotes(
  { session }: Audit,
  { number, id }: AuditedRedrive,
  leftOut: number,
): AsyncGenerator<Finding> {
  const [counted] = await session.rows<{ notes: Integer }>(countNotes, number)
  const notes = Number(counted?.notes ?? 0)
  if (notes === leftOut) return
  yield {
    what: `redrive ${id} has notes on ${notes} letters, and left out ${leftOut}`,
    row: { redrive: id, notes, leftOut },
  }
}

const nameOf = ({ redrive, lane, destination }: AuditedLane) => ({ redrive: redrive.id, lane, destination })

const finding = (lane: AuditedLane, { letter, recorded }: MemberRow, what: string): Finding => ({
  what: `letter ${letter} of redrive ${lane.redrive.id} ${what}`,
  row: { ...nameOf(lane), letter, recorded },
})
