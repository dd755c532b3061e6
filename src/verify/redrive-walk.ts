/** Redrives, their lanes and the letters of these, in steps of bounded size. */
import { type Integer, sql } from '../db/database.ts'
import type { SourceName } from '../letters/letter.ts'
import { isSending, type RedriveAction, type Terms } from '../redrive/redrive.ts'
import type { Audit } from './invariant.ts'

/** A redrive as its row has it. */
export interface AuditedRedrive {
  readonly number: number
  readonly id: string
  readonly action: RedriveAction
  readonly order: Terms['order']
  /** null: it is a plan. */
  readonly startedAt: bigint | null
}

const PAGE = 100

/** Along the primary key. What is being planned, or forgotten, is not whole and nobody is shown it. */
const readRedrives = sql(
  'verify.redrives',
  `SELECT number, id, action, terms, started_at FROM bartleby.redrives
   WHERE number > $1 AND state NOT IN ('planning', 'forgotten') ORDER BY number LIMIT ${PAGE}`,
  { bigints: true },
)

interface RedriveRow {
  readonly number: Integer
  readonly id: string
  readonly action: RedriveAction
  readonly terms: string
  readonly started_at: Integer | null
}

/** All redrives, the oldest first, some at a time. */
export async function* redrivePages({ session }: Audit): AsyncGenerator<readonly AuditedRedrive[]> {
  for (let after = 0; ; ) {
    const rows = await session.rows<RedriveRow>(readRedrives, after)
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows.map(({ number, id, action, terms, started_at }) => ({
      number: Number(number),
      id,
      action,
      // Written by the office, from a value of this type.
      order: (JSON.parse(terms) as Terms).order,
      startedAt: started_at === null ? null : BigInt(started_at),
    }))
    after = Number(last.number)
  }
}

/** Whether letters of one key must go out as they were captured. */
export const keepsKeysInOrder = ({ action, order }: AuditedRedrive): boolean =>
  isSending(action) && order === 'key'

/** A place in the order of a lane: that of a letter. */
export interface MemberPlace {
  readonly capturedAt: bigint
  readonly letter: bigint
}

/** Before every letter, and behind all of them. */
export const LANE_START: MemberPlace = { capturedAt: -(2n ** 63n), letter: -1n }
export const LANE_END: MemberPlace = { capturedAt: 2n ** 63n - 1n, letter: 2n ** 63n - 1n }

/** A lane as its row has it. */
export interface AuditedLane {
  readonly redrive: AuditedRedrive
  readonly lane: number
  readonly source: SourceName
  readonly destination: string
  readonly planned: number
  readonly sent: number
  readonly skipped: number
  readonly failed: number
  /** The last letter that was looked at. */
  readonly at: MemberPlace
}

/** Along the primary key: a few for every destination. */
const readLanes = sql(
  'verify.redriveLanes',
  `SELECT lane, source, destination, planned, sent, skipped, failed, at_captured, at_letter FROM bartleby.redrive_lanes
   WHERE redrive = $1 ORDER BY lane`,
  { bigints: true },
)

interface LaneRow {
  readonly lane: Integer
  readonly source: SourceName
  readonly destination: string
  readonly planned: Integer
  readonly sent: Integer
  readonly skipped: Integer
  readonly failed: Integer
  readonly at_captured: Integer
  readonly at_letter: Integer
}

/** The lanes of a redrive. */
export async function lanesOf({ session }: Audit, redrive: AuditedRedrive): Promise<readonly AuditedLane[]> {
  const rows = await session.rows<LaneRow>(readLanes, redrive.number)
  return rows.map((row) => ({
    redrive,
    lane: Number(row.lane),
    source: row.source,
    destination: row.destination,
    planned: Number(row.planned),
    sent: Number(row.sent),
    skipped: Number(row.skipped),
    failed: Number(row.failed),
    at: { capturedAt: BigInt(row.at_captured), letter: BigInt(row.at_letter) },
  }))
}

/** Letters of one step. */
const STEP = 5_000

/** Where a step along the primary key ends, and how many letters it has. */
const endOfStep = sql(
  'verify.memberStep',
  `SELECT captured_at, letter, number FROM (
     SELECT captured_at, letter, row_number() OVER (ORDER BY captured_at, letter) AS number FROM bartleby.redrive_letters
     WHERE redrive = $1 AND lane = $2 AND (captured_at, letter) > ($3, $4) AND (captured_at, letter) <= ($5, $6)
     ORDER BY captured_at, letter LIMIT ${STEP}) AS step
   ORDER BY number DESC LIMIT 1`,
  { bigints: true },
)

/** Letters of a lane behind `after`, up to and with `through`. */
export interface MemberRange {
  readonly after: MemberPlace
  readonly through: MemberPlace
  readonly letters: number
}

/** The letters of a lane behind `after`, up to and with `through`, step by step. */
export async function* memberRanges(
  audit: Audit,
  { redrive, lane }: AuditedLane,
  after: MemberPlace,
  through: MemberPlace,
): AsyncGenerator<MemberRange> {
  for (let from = after; ; ) {
    const [end] = await audit.session.rows<{ captured_at: Integer; letter: Integer; number: Integer }>(
      endOfStep,
      redrive.number,
      lane,
      from.capturedAt,
      from.letter,
      through.capturedAt,
      through.letter,
    )
    if (end === undefined) return
    const to = { capturedAt: BigInt(end.captured_at), letter: BigInt(end.letter) }
    const letters = Number(end.number)
    yield { after: from, through: to, letters }
    await audit.looked(letters)
    from = to
  }
}
