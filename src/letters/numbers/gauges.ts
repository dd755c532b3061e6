/**
 * Counts of letters for metrics: by source, engine and queue, in a bounded number of sets. Signatures are no label,
 * because there may be thousands of them; and queues that reports name may be any text.
 */
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { STATUS } from '../letter.ts'
import type { ActivityName } from './activity.ts'
import { type Account, readAccounts, type StatusCounts } from './books.ts'

/** What metrics tell of the letters of one source, engine and queue. */
export interface LetterGauge {
  readonly source: string
  readonly engine: string
  /** '' when there is none. */
  readonly queue: string
  readonly letters: StatusCounts
  readonly captured: number
  readonly removed: number
  /** Sent back, and neither confirmed nor back yet; they are among the resolved ones. */
  readonly unconfirmed: number
}

const MAX_SETS = 1_000
/** The queue of all letters beyond the limit. No queue's name has a '~'. */
const OTHERS = '~others'

/** The letters of everything there is. */
export async function readLetterGauges(session: Session): Promise<LetterGauge[]> {
  return gaugesOf(await readAccounts(session))
}

/** Adds the accounts up. The sets that come first stay the first, so that no series jumps. */
export function gaugesOf(accounts: readonly Account[]): LetterGauge[] {
  const sets = new Map<string, LetterGauge>()
  for (const account of accounts.toSorted((a, b) => a.place.number - b.place.number)) {
    const { source, engine, queue } = account.place
    const known = sets.size < MAX_SETS || sets.has(JSON.stringify([source, engine, queue]))
    const labels = { source, engine, queue: known ? queue : OTHERS }
    const key = JSON.stringify(Object.values(labels))
    const sum = sets.get(key) ?? NONE
    sets.set(key, {
      ...labels,
      letters: {
        Pending: sum.letters.Pending + account.letters.Pending,
        Resolved: sum.letters.Resolved + account.letters.Resolved,
        Expired: sum.letters.Expired + account.letters.Expired,
      },
      captured: sum.captured + account.ever.arrived,
      removed: sum.removed + account.removed,
      unconfirmed: sum.unconfirmed + account.unconfirmed,
    })
  }
  return [...sets.values()]
}

const NONE = { letters: { Pending: 0, Resolved: 0, Expired: 0 }, captured: 0, removed: 0, unconfirmed: 0 }

/** Arrivals are counted by where they come from, with the gauges. */
export const OUTCOMES = [
  'retried',
  'confirmed',
  'returned',
  'discarded',
  'expired',
] as const satisfies ActivityName[]
export type Outcome = (typeof OUTCOMES)[number]

/** What metrics tell of all letters together. */
export interface Pulse {
  /** When the pending letter failed last whose last failure is the longest ago; null when none is pending. */
  readonly oldestPendingAt: Instant | null
  /** How often each was ever done. */
  readonly outcomes: Readonly<Record<Outcome, number>>
}

/** One step into letters_newest. */
const readOldest = sql(
  'letters.oldestPendingAt',
  `SELECT last_failure_at FROM bartleby.letters INDEXED BY letters_newest WHERE status = ${STATUS.Pending} ORDER BY status, last_failure_at, id LIMIT 1`,
  { bigints: true },
)

/** Reads both. */
export async function readPulse(session: Session): Promise<Pulse> {
  const [oldest] = await session.rows<{ last_failure_at: Integer }>(readOldest)
  const outcomes = { retried: 0, confirmed: 0, returned: 0, discarded: 0, expired: 0 }
  for (const { ever } of await readAccounts(session))
    for (const name of OUTCOMES) outcomes[name] += ever[name]
  return {
    oldestPendingAt: oldest === undefined ? null : instant(BigInt(oldest.last_failure_at)),
    outcomes,
  }
}
