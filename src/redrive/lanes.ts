/** The rows of lanes: where their letters go, how far they are, and what became of the letters so far. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, integerList, type Session, sql, type Transaction, type Value } from '../db/database.ts'
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

export interface LaneStanding extends Lane {
  readonly planned: number
  readonly sent: number
  readonly skipped: number
  readonly failed: number
}

/** What is left of it. */
export const remainingOf = ({ planned, sent, skipped, failed }: LaneStanding): number =>
  planned - sent - skipped - failed

/** A place in the order of a lane. */
export interface LanePlace {
  readonly capturedAt: Instant
  readonly letter: LetterId
}

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

const STANDING = 'redrive, lane, source, engine, destination, planned, sent, skipped, failed'

interface Row {
  readonly redrive: Integer
  readonly lane: Integer
  readonly source: SourceName
  readonly engine: string
  readonly destination: string
  readonly planned: Integer
  readonly sent: Integer
  readonly skipped: Integer
  readonly failed: Integer
}

const toStanding = (row: Row): LaneStanding => ({
  redrive: redriveNumber(row.redrive),
  lane: Number(row.lane),
  source: row.source,
  engine: row.engine,
  destination: row.destination,
  planned: Number(row.planned),
  sent: Number(row.sent),
  skipped: Number(row.skipped),
  failed: Number(row.failed),
})

/** Along the primary key. */
const readOf = sql('redriveLanes.read', {
  postgres: `SELECT ${STANDING} FROM bartleby.redrive_lanes WHERE redrive = ANY($1::int[]) ORDER BY redrive, lane`,
  sqlite: `SELECT ${STANDING} FROM redrive_lanes WHERE redrive IN (SELECT value FROM json_each($1)) ORDER BY redrive, lane`,
})

/** The lanes of these redrives, in their order. */
export async function readLanes(
  session: Session,
  redrives: readonly RedriveNumber[],
): Promise<LaneStanding[]> {
  if (redrives.length === 0) return []
  return (await session.rows<Row>(readOf, integerList(session.dialect, redrives))).map(toStanding)
}

/** Along the primary key, locked until the transaction ends. */
const lockAll = sql('redriveLanes.lockAll', {
  postgres: `SELECT lane, ${LET_GO} FROM bartleby.redrive_lanes WHERE redrive = $1 ORDER BY redrive, lane FOR UPDATE`,
  sqlite: '',
})

/** Waits for the batches at hand, and keeps others from beginning before the transaction ends. */
export async function holdLanes(tx: Transaction, redrive: RedriveNumber): Promise<void> {
  // SQLite has one writer.
  if (tx.dialect === 'postgres') await tx.rows(lockAll, redrive)
}

/** One row by primary key, locked until the transaction ends. */
const lockOne = sql(
  'redriveLanes.lock',
  {
    postgres: `SELECT ${STANDING}, at_captured, at_letter, ${LET_GO} FROM bartleby.redrive_lanes
               WHERE redrive = $1 AND lane = $2 FOR UPDATE`,
    sqlite: `SELECT ${STANDING}, at_captured, at_letter FROM redrive_lanes WHERE redrive = $1 AND lane = $2`,
  },
  { bigints: true },
)

/** A lane and how far it is. */
export interface PlacedLane extends LaneStanding {
  /** The last letter that was looked at. */
  readonly behind: LanePlace
}

/** A lane that nobody else can walk before the transaction ends. */
export type HeldLane = PlacedLane

interface PlacedRow extends Row {
  readonly at_captured: Integer
  readonly at_letter: Integer
}

const toPlaced = (row: PlacedRow): PlacedLane => ({
  ...toStanding(row),
  behind: { capturedAt: instant(BigInt(row.at_captured)), letter: letterId(row.at_letter) },
})

/** The lane, locked until the transaction ends; null when it is gone with its redrive. */
export async function holdLane(tx: Transaction, { redrive, lane }: Lane): Promise<HeldLane | null> {
  const [row] = await tx.rows<PlacedRow>(lockOne, redrive, lane)
  return row === undefined ? null : toPlaced(row)
}

/** Along the primary key. */
const readPlaced = sql(
  'redriveLanes.places',
  `SELECT ${STANDING}, at_captured, at_letter FROM bartleby.redrive_lanes WHERE redrive = $1 ORDER BY redrive, lane`,
  { bigints: true },
)

/** The lanes of a redrive and how far each is, in their order. */
export async function readPlaces(session: Session, redrive: RedriveNumber): Promise<PlacedLane[]> {
  return (await session.rows<PlacedRow>(readPlaced, redrive)).map(toPlaced)
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
