/** The lanes of redrives: what they count is what their letters, the notes on these, and history say. */
import { type Integer, integerList, sql } from '../db/database.ts'
import { readSeriesLabels } from '../history/rows.ts'
import { KAFKA } from '../kafka/event.ts'
import { KAFKA_OPERATIONS } from '../letters/letter.ts'
import { outcomesOf } from '../letters/outcomes.ts'
import { isSending } from '../redrive/redrive.ts'
import type { Audit, Finding } from './invariant.ts'
import {
  type AuditedLane,
  type AuditedRedrive,
  LANE_END,
  LANE_START,
  lanesOf,
  type MemberRange,
  memberRanges,
  redrivePages,
} from './redrive-walk.ts'

/** Exceptions of a redrive by outcome, along the primary key. */
const countNotes = sql(
  'verify.redriveNotes',
  'SELECT outcome, count(*) AS letters FROM bartleby.redrive_exceptions WHERE redrive = $1 GROUP BY outcome',
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

const readOdd = sql(
  'verify.oddMembers',
  {
    postgres: readMembers(
      `record.series = ANY($7::int[]) AND position(convert_to($8, 'UTF8') IN record.output) > 0`,
    ),
    sqlite: readMembers(
      'record.series IN (SELECT value FROM json_each($7)) AND instr(record.output, CAST($8 AS BLOB)) > 0',
    ),
  },
  { bigints: true },
)

interface MemberRow {
  readonly letter: Integer
  /** null: it was not left out. */
  readonly outcome: Integer | null
  readonly recorded: Integer
}

/** What the letters of a lane say. */
interface LaneCensus {
  behind: number
  ahead: number
  skipped: number
  failed: number
  /** Sent over a network, and not counted yet. */
  underWay: number
}

export async function* redriveLanes(audit: Audit): AsyncGenerator<Finding> {
  const retries = await retrySeries(audit)
  for await (const page of redrivePages(audit)) {
    const outcomes = await outcomesOf(
      audit.session,
      page.map(({ number }) => number),
    )
    for (const redrive of page) {
      const censuses: LaneCensus[] = []
      const lanes = await lanesOf(audit, redrive)
      for (const lane of lanes) {
        const census: LaneCensus = { behind: 0, ahead: 0, skipped: 0, failed: 0, underWay: 0 }
        yield* membersOf(audit, lane, retries, census)
        yield* laneFaults(lane, census)
        censuses.push(census)
      }
      yield* strayNotes(audit, redrive, censuses)
      const { confirmed, returned } = outcomes.get(redrive.number) ?? { confirmed: 0, returned: 0 }
      const sent = lanes.reduce((sum, lane) => sum + lane.sent, 0)
      const underWay = censuses.reduce((sum, census) => sum + census.underWay, 0)
      if (confirmed < 0 || returned < 0 || confirmed + returned > sent + underWay) {
        yield {
          what: `redrive ${redrive.id} heard of ${confirmed + returned} letters, and has sent ${sent}`,
          row: {
            redrive: redrive.id,
            sent: String(sent),
            confirmed: String(confirmed),
            returned: String(returned),
          },
        }
      }
    }
  }
}

/** The series of what says that a letter was sent back. */
async function retrySeries({ session }: Audit): Promise<string> {
  const operations: readonly string[] = ['retry', KAFKA_OPERATIONS.published]
  const labels = [...(await readSeriesLabels(session))]
  return integerList(
    session.dialect,
    labels.filter(([, { operation }]) => operations.includes(operation)).map(([series]) => series),
  )
}

/** Looks at all letters of a lane: those behind its place were sent once or noted, those ahead neither. */
async function* membersOf(
  audit: Audit,
  lane: AuditedLane,
  retries: string,
  census: LaneCensus,
): AsyncGenerator<Finding> {
  const isSent = isSending(lane.redrive.action)
  for await (const range of memberRanges(audit, lane, LANE_START, lane.at)) {
    census.behind += range.letters
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
  for await (const range of memberRanges(audit, lane, lane.at, LANE_END)) {
    census.ahead += range.letters
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
  { after, through }: MemberRange,
  retries: string,
  expected: number,
): Promise<MemberRow[]> =>
  session.rows<MemberRow>(
    readOdd,
    redrive.number,
    lane,
    after.capturedAt,
    after.letter,
    through.capturedAt,
    through.letter,
    retries,
    `"redrive":"${redrive.id}"`,
    expected,
  )

function* sentFaults({ historySince }: Audit, lane: AuditedLane, member: MemberRow): Iterable<Finding> {
  const recorded = Number(member.recorded)
  if (recorded > 1) yield finding(lane, member, `was sent ${recorded} times`)
  // What retention took from history is not missed.
  else if (recorded === 0 && isSending(lane.redrive.action) && (lane.redrive.startedAt ?? 0n) >= historySince)
    yield finding(lane, member, 'counts as sent, and history does not have it')
}

/** The next letter of a lane. */
const readNext = sql(
  'verify.nextMember',
  `SELECT member.letter, member.version AS planned, letter.version, letter.redrive FROM bartleby.redrive_letters AS member
   JOIN bartleby.letters AS letter ON letter.id = member.letter
   WHERE member.redrive = $1 AND member.lane = $2 AND (member.captured_at, member.letter) > ($3, $4)
   ORDER BY member.captured_at, member.letter LIMIT 1`,
  { bigints: true },
)

/**
 * Of letters that leave over a network the next one may have been sent, and is counted in a moment, or by the server that takes the
 * redrive up: history says so, or the letter, which is not what it was, names the redrive.
 */
async function nextLetter(
  { session }: Audit,
  { redrive, lane, at }: AuditedLane,
): Promise<{ readonly letter: string; readonly isNamed: boolean } | null> {
  const [next] = await session.rows<{
    letter: Integer
    planned: Integer
    version: Integer
    redrive: Integer | null
  }>(readNext, redrive.number, lane, at.capturedAt, at.letter)
  if (next === undefined) return null
  const isNamed = Number(next.redrive) === redrive.number && Number(next.version) !== Number(next.planned)
  return { letter: String(next.letter), isNamed }
}

function* laneFaults(lane: AuditedLane, { behind, ahead, skipped, failed }: LaneCensus): Iterable<Finding> {
  const { redrive, planned, sent } = lane
  const row = {
    ...place(lane),
    planned: String(planned),
    sent: String(sent),
    skipped: String(lane.skipped),
    failed: String(lane.failed),
  }
  const name = `lane ${lane.lane} of redrive ${redrive.id}`
  if (behind + ahead !== planned)
    yield {
      what: `${name} was planned with ${planned} letters, and has ${behind + ahead}`,
      row: { ...row, found: String(behind + ahead) },
    }
  if (behind !== sent + lane.skipped + lane.failed)
    yield {
      what: `${name} has passed ${behind} letters, and counts ${sent + lane.skipped + lane.failed}`,
      row: { ...row, passed: String(behind) },
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
  censuses: readonly LaneCensus[],
): AsyncGenerator<Finding> {
  const notes = await session.rows<{ outcome: Integer; letters: Integer }>(countNotes, number)
  const noted = notes.reduce((sum, { letters }) => sum + Number(letters), 0)
  const known = censuses.reduce((sum, { skipped, failed }) => sum + skipped + failed, 0)
  if (noted === known) return
  yield {
    what: `redrive ${id} has notes on ${noted} letters, and left out ${known}`,
    row: { redrive: id, notes: String(noted), leftOut: String(known) },
  }
}

const place = ({ redrive, lane, destination }: AuditedLane) => ({
  redrive: redrive.id,
  lane: String(lane),
  destination,
})

const finding = (lane: AuditedLane, { letter, recorded }: MemberRow, what: string): Finding => ({
  what: `letter ${letter} of redrive ${lane.redrive.id} ${what}`,
  row: { ...place(lane), letter: String(letter), recorded: String(recorded) },
})
