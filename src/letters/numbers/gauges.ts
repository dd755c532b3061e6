/** Counts of letters for metrics, in a bounded number of label sets: signatures may be thousands, and reports may name any queue. */

import type { Instant } from '../../core/clock.ts'
import { type Session, sql } from '../../store/database.ts'
import { STATUS } from '../letter.ts'
import { type Position, type PositionRow, toPosition } from '../lists/positions.ts'
import type { PlaceLabel } from './find-drawers.ts'
import type { ActivityName } from './shapes.ts'
import { type PlaceCounts, readPlaceCounts, type StatusCounts, type Summary, summaryOf } from './summary.ts'

export interface LetterGauge extends Omit<PlaceLabel, 'number'>, Pick<Summary, 'captured' | 'unconfirmed'> {
  readonly letters: StatusCounts
  readonly removed: number
}

const MAX_SETS = 1_000
/** Stands for queues beyond the limit. No queue's name has a '~'. */
const OTHERS = '~others'

export async function readLetterGauges(session: Session): Promise<LetterGauge[]> {
  return gaugesOf(await readPlaceCounts(session))
}

/** The first sets stay the first, so that no time series jumps. */
export function gaugesOf(places: readonly PlaceCounts[]): LetterGauge[] {
  const inOrder = places.toSorted((a, b) => a.place.number - b.place.number)
  const sets = Map.groupBy(
    inOrder.entries(),
    ([
      i,
      {
        place: { source, engine, queue },
      },
    ]) => JSON.stringify([source, engine, i < MAX_SETS ? queue : OTHERS]),
  )
  return [...sets].map(([labels, set]) => {
    // Made above.
    const [source, engine, queue] = JSON.parse(labels) as [string, string, string]
    const counts = set.map(([, each]) => each)
    const { captured, unconfirmed, ...letters } = summaryOf(counts)
    const removed = counts.reduce((sum, each) => sum + each.removed, 0)
    return { source, engine, queue, letters, captured, removed, unconfirmed }
  })
}

/** Arrivals are counted with the gauges. */
export const OUTCOMES = [
  'retried',
  'confirmed',
  'returned',
  'discarded',
  'expired',
] as const satisfies ActivityName[]
export type Outcome = (typeof OUTCOMES)[number]

export interface OfficeGauges {
  /** The earliest last failure among pending letters. */
  readonly oldestPendingAt: Instant | null
  /** Ever. */
  readonly outcomes: Readonly<Record<Outcome, number>>
}

/** One step into letters_newest. */
const readOldest = sql(
  'letters.oldestPending',
  `SELECT id, last_failure_at AS at FROM bartleby.letters INDEXED BY letters_newest WHERE status = ${STATUS.Pending} ORDER BY status, last_failure_at, id LIMIT 1`,
  { bigints: true },
)

/** The pending letter with the earliest last failure. */
export async function readOldestPending(session: Session): Promise<Position | null> {
  const [row] = await session.rows<PositionRow>(readOldest)
  return row === undefined ? null : toPosition(row)
}

export async function readOfficeGauges(session: Session): Promise<OfficeGauges> {
  const oldest = await readOldestPending(session)
  const outcomes = { retried: 0, confirmed: 0, returned: 0, discarded: 0, expired: 0 }
  for (const { ever } of await readPlaceCounts(session))
    for (const name of OUTCOMES) outcomes[name] += ever[name]
  return {
    oldestPendingAt: oldest?.at ?? null,
    outcomes,
  }
}
