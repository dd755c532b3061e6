/** Letters leaving their dead queue, and what its counts lose. The letters module owns the letters themselves. */
import { type DepartedLetter, type Resolving, resolveInDeadQueue } from '../../letters/in-dead-queue/move.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type CountChange, leaseDeadlines, negated, sumOfInstants } from '../counts.ts'
import type { Partition } from '../records.ts'
import { SHELF } from '../schema.ts'

/** The shelves of letters. */
const SHELVES = [SHELF.queue, SHELF.scheduled]

/** Resolves the letters among `serials`; gives the serials that were letters and what the counts of the partition lose. */
export async function resolveFromDeadQueue(
  work: OfficeWork,
  partition: Partition,
  serials: readonly number[],
  resolving: Pick<Resolving, 'act' | 'by'> & Partial<Resolving>,
): Promise<{ readonly serials: ReadonlySet<number>; readonly change: CountChange }> {
  if (!partition.holdsLetters) return { serials: new Set(), change: {} }
  const lifted = await resolveInDeadQueue(work, partition.part, serials, {
    leasedOnly: false,
    shelves: SHELVES,
    ...resolving,
  })
  return { serials: new Set(lifted.map(({ serial }) => serial)), change: departureOf(lifted) }
}

/** The loss of a partition's counts; scheduled letters count neither as queued nor in the ages. */
export function departureOf(
  letters: readonly Pick<DepartedLetter, 'shelf' | 'leased' | 'laidAt' | 'leaseDeadline'>[],
): CountChange {
  const queued = letters.filter(({ shelf }) => shelf === SHELF.queue)
  const leased = queued.filter((letter) => letter.leased)
  return {
    ready: leased.length - queued.length,
    leased: -leased.length,
    scheduled: queued.length - letters.length,
    dead: -letters.length,
    created: negated(sumOfInstants(queued.map(({ laidAt }) => laidAt))),
    deadline: negated(leaseDeadlines(leased)),
  }
}
