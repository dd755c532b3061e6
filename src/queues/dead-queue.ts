/**
 * The dead queue's side of letters: what taking letters out of a dead queue means for its counts and for history.
 * The letters themselves are the letters module's.
 */
import { type HistoryEntry, recordHistory } from '../history/record.ts'
import { activityOf } from '../letters/activity.ts'
import type { Act } from '../letters/letter.ts'
import { STATUS } from '../letters/letter.ts'
import { type Lifted, resolveLying } from '../letters/lying/resolve.ts'
import type { OfficeWork } from '../letters/work.ts'
import { type CountChange, negated, sumOfInstants } from './counts.ts'
import type { Partition } from './records.ts'
import { SHELF } from './schema.ts'

/** The shelves that letters can lie on. */
const SHELVES = [SHELF.queue, SHELF.scheduled]

/** What a queue call that takes letters out of a dead queue did to them. */
export interface Resolving {
  readonly act: Act
  /** Who; null for the client that holds the lease. */
  readonly by: string | null
  /** The history rows of the runs that led to it, by serial: each doubles as the row of its letter's resolution. */
  readonly runs?: ReadonlyMap<number, HistoryEntry>
  readonly leasedOnly?: boolean
  readonly shelves?: readonly number[]
}

/**
 * Resolves the letters among `serials`, with counts and history, in the transaction of the call. Gives the serials
 * that were letters and what the partition's counts lose.
 */
export async function resolveFromDeadQueue(
  work: OfficeWork,
  partition: Partition,
  serials: readonly number[],
  { act, by, runs, leasedOnly = false, shelves = SHELVES }: Resolving,
): Promise<{ readonly serials: ReadonlySet<number>; readonly change: CountChange }> {
  if (!partition.holdsLetters) return { serials: new Set(), change: {} }
  const lifted = await resolveLying(work.tx, partition.part, serials, {
    shelves,
    leasedOnly,
    at: work.now,
    act,
    by,
  })
  const activity = activityOf(act)
  for (const { drawer } of lifted) {
    work.letters.moved({ drawer, status: STATUS.Pending }, { drawer, status: STATUS.Resolved })
    if (activity !== null) work.letters.acted(activity, drawer, 1)
  }
  await recordHistory(
    work.tx,
    lifted.map((letter) => ({
      engine: letter.engine,
      operation: act,
      status: 'Succeeded',
      instanceId: letter.instanceId,
      correlationId: letter.correlationId,
      createdAt: work.now,
      durationMs: 0,
      actor: letter.resolvedBy,
      ...runs?.get(letter.serial),
      letterId: letter.id,
      letterVersion: letter.version,
    })),
  )
  return { serials: new Set(lifted.map(({ serial }) => serial)), change: departureOf(lifted) }
}

/** What a partition's counts lose with these letters; scheduled ones count neither as queued nor in the ages. */
export function departureOf(
  letters: readonly Pick<Lifted, 'shelf' | 'leased' | 'laidAt' | 'leaseDeadline'>[],
): CountChange {
  const queued = letters.filter(({ shelf }) => shelf === SHELF.queue)
  const leased = queued.filter((letter) => letter.leased)
  return {
    ready: leased.length - queued.length,
    leased: -leased.length,
    scheduled: queued.length - letters.length,
    dead: -letters.length,
    created: negated(sumOfInstants(queued.map(({ laidAt }) => laidAt))),
    deadline: negated(sumOfInstants(leased.flatMap(({ leaseDeadline }) => leaseDeadline ?? []))),
  }
}
