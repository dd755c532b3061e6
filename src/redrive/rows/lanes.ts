/** Lanes as rows: destination, position, counts. */
import { type Instant, instant } from '../../core/clock.ts'
import type { SourceName } from '../../letters/kinds.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'
import { type Session, sql, type Transaction, type Value } from '../../store/database.ts'
import { at, integer, oneOf, type RowOf, rowShape, text } from '../../store/row.ts'
import { LET_GO } from '../../work/run-rows.ts'
import { type RedriveNumber, redriveNumber } from '../redrive.ts'

const LANE = rowShape({
  redrive: redriveNumber,
  lane: integer,
  source: oneOf<SourceName>(),
  engine: text,
  destination: text,
  planned: integer,
  sent: integer,
  skipped: integer,
  failed: integer,
  /** Position: the last letter looked at. */
  atCaptured: at,
  atLetter: letterId,
})

/** Letters of one source, engine and destination, sent batch after batch. */
export type Lane = Pick<RowOf<typeof LANE>, 'redrive' | 'lane' | 'source' | 'engine' | 'destination'>
export type CountedLane = Omit<RowOf<typeof LANE>, 'atCaptured' | 'atLetter'>

export const remainingOf = (lane: Omit<CountedLane, keyof Lane>): number =>
  lane.planned - lane.sent - lane.skipped - lane.failed

/** A position in a lane. */
export interface LanePlace {
  readonly capturedAt: Instant
  readonly letter: LetterId
}

export interface PlacedLane extends CountedLane {
  readonly behind: LanePlace
}

function toLane(row: object): PlacedLane {
  const { atCaptured: capturedAt, atLetter: letter, ...lane } = LANE.read(row)
  return { ...lane, behind: { capturedAt, letter } }
}

/** Whether a letter has not been looked at yet. */
export const isAhead = ({ behind }: Pick<PlacedLane, 'behind'>, { capturedAt, letter }: LanePlace): boolean =>
  behind.capturedAt < capturedAt || (behind.capturedAt === capturedAt && behind.letter < letter)

/** Before all letters. */
export const LANE_START: LanePlace = { capturedAt: instant(-(2n ** 63n) + 1n), letter: letterId(0) }

const insertRow = sql(
  'redriveLanes.insert',
  `INSERT INTO bartleby.redrive_lanes (redrive, lane, source, engine, destination, planned) VALUES ($1, $2, $3, $4, $5, $6)`,
)

export async function insertLanes(
  tx: Transaction,
  lanes: readonly (Lane & { readonly planned: number })[],
): Promise<void> {
  for (const { redrive, lane, source, engine, destination, planned } of lanes)
    await tx.run(insertRow, redrive, lane, source, engine, destination, planned)
}

/** Along the primary key. */
const readOf = sql(
  'redriveLanes.read',
  `SELECT ${LANE.columns} FROM bartleby.redrive_lanes WHERE redrive = ANY($1::int[]) ORDER BY redrive, lane`,
  { bigints: true },
)

export async function readLanes(session: Session, redrives: readonly RedriveNumber[]): Promise<PlacedLane[]> {
  if (redrives.length === 0) return []
  return (await session.rows<object>(readOf, redrives)).map(toLane)
}

/** Along the primary key, locked. */
const lockAll = sql(
  'redriveLanes.lockAll',
  `SELECT lane, ${LET_GO} FROM bartleby.redrive_lanes WHERE redrive = $1 ORDER BY redrive, lane FOR UPDATE`,
)

/** Waits for running batches and keeps others from starting until the transaction ends. */
export async function holdLanes(tx: Transaction, redrive: RedriveNumber): Promise<void> {
  await tx.rows(lockAll, redrive)
}

const lockOne = sql(
  'redriveLanes.lock',
  `SELECT ${LANE.columns}, ${LET_GO} FROM bartleby.redrive_lanes WHERE redrive = $1 AND lane = $2 FOR UPDATE`,
  { bigints: true },
)

/** The lane, locked until the transaction ends; null when it is gone with its redrive. */
export async function holdLane(tx: Transaction, { redrive, lane }: Lane): Promise<PlacedLane | null> {
  const [row] = await tx.rows<object>(lockOne, redrive, lane)
  return row === undefined ? null : toLane(row)
}

const advanceRow = sql(
  'redriveLanes.advance',
  `UPDATE bartleby.redrive_lanes SET sent = sent + $3, skipped = skipped + $4, failed = failed + $5, at_captured = $6, at_letter = $7
   WHERE redrive = $1 AND lane = $2`,
)

export interface LaneStep {
  readonly sent: number
  readonly skipped: number
  readonly failed: number
  readonly to: LanePlace
}

/** Moves a locked lane on, with the commit. */
export function advanceLane(tx: Transaction, { redrive, lane }: Lane, step: LaneStep): void {
  const values: readonly Value[] = [step.sent, step.skipped, step.failed, step.to.capturedAt, step.to.letter]
  tx.atCommit(advanceRow, redrive, lane, ...values)
}
