/**
 * Counts of letters for metrics: by source, engine and queue, in a bounded number of sets. Signatures are no label,
 * because there may be thousands of them; and queues that reports name may be any text.
 */
import type { Session } from '../db/database.ts'
import { type Account, readAccounts, type StatusCounts } from './books.ts'
import type { DrawerLabels } from './drawers.ts'

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
export async function readLetterGauges(session: Session, labels?: DrawerLabels): Promise<LetterGauge[]> {
  return gaugesOf(await readAccounts(session, {}, labels))
}

/** Adds the accounts up. The sets that come first stay the first, so that no series jumps. */
export function gaugesOf(accounts: readonly Account[]): LetterGauge[] {
  const sets = new Map<string, LetterGauge>()
  for (const account of accounts.toSorted((a, b) => a.drawer.number - b.drawer.number)) {
    const { source, engine, queue } = account.drawer
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
      captured: sum.captured + account.captured,
      removed: sum.removed + account.removed,
      unconfirmed: sum.unconfirmed + account.unconfirmed,
    })
  }
  return [...sets.values()]
}

const NONE = { letters: { Pending: 0, Resolved: 0, Expired: 0 }, captured: 0, removed: 0, unconfirmed: 0 }
