/**
 * The books: every drawer with its counts. What the office tells in numbers is added up from them, so that all of it
 * agrees and nothing ever counts letters. Cost: a row per drawer, and one per drawer and status.
 */
import type { Instant } from '../core/clock.ts'
import type { Session } from '../db/database.ts'
import { readLetterCounts } from './counts.ts'
import { type Drawer, DrawerLabels } from './drawers.ts'
import { type LetterStatus, type SourceName, STATUS, STATUSES } from './letter.ts'

/** Letters of each status. */
export type StatusCounts = Readonly<Record<LetterStatus, number>>

/** A drawer and what it holds. */
export interface Account {
  readonly drawer: Drawer
  readonly letters: StatusCounts
  /** Letters that were ever captured into it, and that were removed from it when their time was over. */
  readonly captured: number
  readonly removed: number
  /** Sent back, and neither confirmed nor back yet; they are among the resolved ones. */
  readonly unconfirmed: number
  /** The newest failure that was ever filed there. */
  readonly lastSeenAt: Instant
}

/** Which drawers are asked for; all parts given must hold. */
export interface AccountFilter {
  readonly source?: SourceName | null | undefined
  readonly engine?: string | null | undefined
  readonly originalQueue?: string | null | undefined
  /** A fingerprint. */
  readonly signature?: string | null | undefined
}

/** The accounts of the drawers that match, by source, engine, queue and signature. */
export async function readAccounts(
  session: Session,
  filter: AccountFilter,
  labels = new DrawerLabels(),
): Promise<Account[]> {
  // Counts first: the drawer of a count that was seen is there, one that is new meanwhile has no count yet.
  const counts = await readLetterCounts(session)
  const byDrawer = new Map<number, { readonly letters: number[]; lastSeenAt: Instant }>()
  for (const { drawer, status, letters, lastSeenAt } of counts) {
    const sums = byDrawer.get(drawer) ?? { letters: [], lastSeenAt }
    sums.letters[status] = letters
    if (lastSeenAt > sums.lastSeenAt) sums.lastSeenAt = lastSeenAt
    byDrawer.set(drawer, sums)
  }
  const drawers = await labels.covering(session, byDrawer.keys())
  return drawers.flatMap((drawer) => {
    const sums = byDrawer.get(drawer.number)
    if (sums === undefined || !matches(drawer, filter)) return []
    const count = (status: number) => sums.letters[status] ?? 0
    return {
      drawer,
      letters: {
        Pending: count(STATUS.Pending),
        Resolved: count(STATUS.Resolved),
        Expired: count(STATUS.Expired),
      },
      captured: count(STATUS.captured),
      removed: count(STATUS.removed),
      unconfirmed: count(STATUS.unconfirmed),
      lastSeenAt: sums.lastSeenAt,
    }
  })
}

function matches(drawer: Drawer, { source, engine, originalQueue, signature }: AccountFilter): boolean {
  return (
    (source == null || drawer.source === source) &&
    (engine == null || drawer.engine === engine) &&
    (originalQueue == null || drawer.queue === originalQueue) &&
    (signature == null || drawer.signature.fingerprint === signature)
  )
}

/** Letters of any status. */
export const lettersIn = (counts: StatusCounts): number =>
  STATUSES.reduce((sum, status) => sum + counts[status], 0)

/** The queue as everybody sees it; null when there is none. */
export const queueOf = ({ queue }: Drawer): string | null => (queue === '' ? null : queue)
