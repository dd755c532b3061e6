/** The dead queue's side of letters: what taking them out means for its counts. The letters themselves are the letters module's. */
import { type Lifted, type Resolving, resolveLying } from '../../letters/in-dead-queue/move.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type CountChange, negated, sumOfInstants } from '../counts.ts'
import type { Partition } from '../records.ts'
import { SHELF } from '../schema.ts'

/** The shelves that letters can lie on. */
const SHELVES = [SHELF.queue, SHELF.scheduled]

/**
 * Resolves the letters among `serials`, in the transaction of the call. Gives the serials
 * that were letters and what the partition's counts lose.
 */
export async function resolveFromDeadQueue(
  work: OfficeWork,
  partition: Partition,
  serials: readonly number[],
  resolving: Pick<Resolving, 'act' | 'by'> & Partial<Resolving>,
): Promise<{ readonly serials: ReadonlySet<number>; readonly change: CountChange }> {
  if (!partition.holdsLetters) return { serials: new Set(), change: {} }
  const lifted = await resolveLying(work, partition.part, serials, {
    leasedOnly: false,
    shelves: SHELVES,
    ...resolving,
  })
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
