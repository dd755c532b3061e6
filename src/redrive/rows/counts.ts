/** Counts of redrives: sums over their lanes, and the outcomes of sent letters. */
import { type Outcomes, outcomesOf } from '../../letters/numbers/counts.ts'
import type { Session } from '../../store/database.ts'
import {
  type Destination,
  isSending,
  isWorking,
  type RedriveCounts,
  type RedriveStanding,
} from '../redrive.ts'
import { type CountedLane, readLanes, remainingOf } from './lanes.ts'
import type { StoredRedrive } from './rows.ts'

export async function readProgress(
  session: Session,
  redrive: StoredRedrive,
): Promise<{ readonly lanes: readonly CountedLane[]; readonly counts: RedriveCounts }> {
  const outcomes = await outcomesOf(session, [redrive.number])
  const lanes = await readLanes(session, [redrive.number])
  return { lanes, counts: countsOf(redrive, lanes, outcomes.get(redrive.number)) }
}

/** In the order of `redrives`. Cost: one row per lane, plus unfolded outcomes. */
export async function readSummaries(
  session: Session,
  redrives: readonly StoredRedrive[],
): Promise<readonly RedriveStanding[]> {
  const numbers = redrives.map(({ number }) => number)
  // Outcomes first: a letter sent between the two reads can have none yet.
  const outcomes = await outcomesOf(session, numbers)
  const lanes = Map.groupBy(await readLanes(session, numbers), ({ redrive }) => redrive)
  return redrives.map((redrive) =>
    summaryOf(redrive, countsOf(redrive, lanes.get(redrive.number) ?? [], outcomes.get(redrive.number))),
  )
}

export function summaryOf(redrive: StoredRedrive, counts: RedriveCounts): RedriveStanding {
  const { owner: _, canarySentAt, recent, rateMeasured, ...shown } = redrive
  const rateNow = isWorking(redrive.state) ? rateMeasured : null
  return {
    ...shown,
    counts,
    rateNow,
    // How long a canary waits is unknown.
    secondsLeft:
      redrive.state !== 'running' || rateNow === null || rateNow <= 0
        ? null
        : Math.ceil(counts.remaining / rateNow),
  }
}

/** An act inside the office is confirmed once it is done. */
function countsOf(
  { action }: StoredRedrive,
  lanes: readonly CountedLane[],
  outcomes: Outcomes | undefined,
): RedriveCounts {
  const sums = sumsOf(lanes)
  const { sent } = sums
  const confirmed = isSending(action) ? (outcomes?.confirmed ?? 0) : sent
  // A letter can be back over the network before it is counted as sent.
  const returned = Math.min(outcomes?.returned ?? 0, sent - confirmed)
  const unconfirmed = sent - confirmed - returned
  return { ...sums, remaining: remainingOf(sums), confirmed, returned, unconfirmed }
}

function sumsOf(lanes: readonly CountedLane[]) {
  const sum = (count: 'planned' | 'sent' | 'skipped' | 'failed'): number =>
    lanes.reduce((total, lane) => total + lane[count], 0)
  return { planned: sum('planned'), sent: sum('sent'), skipped: sum('skipped'), failed: sum('failed') }
}

/** Each place once. */
export function destinationsOf(lanes: readonly CountedLane[]): Destination[] {
  const places = Map.groupBy(lanes, ({ source, destination }) => JSON.stringify([source, destination]))
  return [...places.values()].flatMap((same) =>
    same.slice(0, 1).map(({ source, destination: name }) => ({ source, name, ...sumsOf(same) })),
  )
}
