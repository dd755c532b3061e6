/** The rows of lanes: where their letters go, how far they are, and what became of the letters so far. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql, type Transaction, type Value } from '../db/database.ts'
import { type LetterId, letterId, type SourceName } from '../letters/letter.ts'
import { LET_GO } from '../work/let-go.ts'
import { type RedriveNumber, redriveNumber } from './redrive.ts'

/** Letters of one source, engine and destination that are sent one batch after the other. */
export interface Lane {
  readonly redrive: RedriveNumber
  readonly lane: number
  readonly source: SourceName
  readonly engine: string
  readonly destination: string
}

export interface CountedLane extends Lane {
  readonly planned: number
  readonly sent: number
  readonly skipped: number
  readonly failed: number
}

/** What is left of it. */
export const remainingOf = (lane: Omit<CountedLane, keyof Lane>): number =>
  lane.planned - lane.sent - lane.skipped - lane.failed

/** A place in the order of a lane. */
export interface LanePlace {
  readonly capturedAt: Instant
  readonly letter: LetterId
}

/** A lane and how far it is. */
export interface PlacedLane extends CountedLane {
  /** The last letter that was looked at. */
  readonly behind: LanePlace
}

/** Whether a letter of a lane was not looked at yet. */
export const isAhead = ({ behind }: Pick<PlacedLane, 'behind'>, { capturedAt, letter }: LanePlace): boolean =>
  behind.capturedAt < capturedAt || (behind.capturedAt === capturedAt && behind.letter < letter)

/** Before all letters. */
export const LANE_START: LanePlace = { capturedAt: instant(-(2n ** 63n) + 1n), letter: letterId(0) }

const insertRow = sql(
  'redriveLanes.insert',
  `INSERT INTO bartleby.redrive_lanes (redrive, lane, source, engine, destination, planned) VALUES ($1, $2, $3, $4, $5, $6)`,
)

/** Adds the lanes of a plan. */
export async function insertLanes(
  tx: Transaction,
  lanes: readonly (Lane & { readonly planned: number })[],
): Promise<void> {
  for (const { redrive, lane, source, engine, destination, planned } of lanes)
    await tx.run(insertRow, redrive, lane, source, engine, destination, planned)
}

const COLUMNS = `redrive, lane, source, engine, destination, planned, sent, skipped, failed,
  at_captured AS "capturedAt", at_letter AS letter`

type Row = {
  readonly [Column in keyof CountedLane]: CountedLane[Column] extends number ? Integer : CountedLane[Column]
} & { readonly capturedAt: Integer; readonly letter: Integer }

const toLane = ({ source, engine, destination, ...row }: Row): PlacedLane => ({
  ...{ redrive: redriveNumber(row.redrive), lane: Number(row.lane), source, engine, destination },
  planned: Number(row.planned),
  sent: Number(row.sent),
  skipped: Number(row.skipped),
  failed: Number(row.failed),
  behind: { capturedAt: instant(BigInt(row.capturedAt)), letter: letterId(row.letter) },
})

/** Along the primary key. */
const readOf = sql(
  'redriveLanes.read',
  `SELECT ${COLUMNS} FROM bartleby.redrive_lanes WHERE redrive = ANY($1::int[]) ORDER BY redrive, lane`,
  { bigints: true },
)

/** The lanes of these redrives, in their order. */
export async function readLanes(session: Session, redrives: readonly RedriveNumber[]): Promise<PlacedLane[]> {
  if (redrives.length === 0) return []
  return (await session.rows<Row>(readOf, redrives)).map(toLane)
}

/** Along the primary key, locked until the transaction ends. */
const lockAll = sql(
  'redriveLanes.lockAll',
  `SELECT lane, ${LET_GO} FROM bartleby.redrive_lanes WHERE redrive = $1 ORDER BY redrive, lane FOR UPDATE`,
)

/** Waits for the batches at hand, and keeps others from beginning before the transaction ends. */
export async function holdLanes(tx: Transaction, redrive: RedriveNumber): Promise<void> {
  await tx.rows(lockAll, redrive)
}

/** One row by primary key, locked until the transaction ends. */
const lockOne = sql(
  'redriveLanes.lock',
  `SELECT ${COLUMNS}, ${LET_GO} FROM bartleby.redrive_lanes WHERE redrive = $1 AND lane = $2 FOR UPDATE`,
  { bigints: true },
)

/** The lane, which nobody else can walk before the transaction ends; null when it is gone with its redrive. */
export async function holdLane(tx: Transaction, { redrive, lane }: Lane): Promise<PlacedLane | null> {
  const [row] = await tx.rows<Row>(lockOne, redrive, lane)
  return row === undefined ? null : toLane(row)
}

/** One row by primary key, which is locked. */
const advanceRow = sql(
  'redriveLanes.advance',
  `UPDATE bartleby.redrive_lanes SET sent = sent + $3, skipped = skipped + $4, failed = failed + $5, at_captured = $6, at_letter = $7
   WHERE redrive = $1 AND lane = $2`,
)

/** How far a batch came. */
export interface LaneStep {
  readonly sent: number
  readonly skipped: number
  readonly failed: number
  readonly to: LanePlace
}

/** Writes how far a held lane is, with the commit. */
export function advanceLane(tx: Transaction, { redrive, lane }: Lane, step: LaneStep): void {
  const values: readonly Value[] = [step.sent, step.skipped, step.failed, step.to.capturedAt, step.to.letter]
  tx.atCommit(advanceRow, redrive, lane, ...values)
}
