/** Letters leaving their dead queue, what its counts lose, and deaths that make no letter. The letters module owns the letters. */
import type { Log } from '../../core/log.ts'
import { recordHistory } from '../../history/record.ts'
import {
  type DepartedLetter,
  type Resolving,
  relocateLetters,
  resolveInDeadQueue,
} from '../../letters/in-dead-queue/move.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type CountChange, leaseDeadlines, lossOf, negated, sumOfInstants } from '../counts.ts'
import { type Cycle, type InDeadQueue, insistOn } from '../cycles/cycle.ts'
import { allocateSerials, itemIdIn, type Partition } from '../records.ts'
import { SHELF } from '../schema.ts'
import { removeAny } from '../sql/remove.ts'
import type { Dying } from './bury.ts'
import { failedRun } from './cases.ts'

const SHELVES = [SHELF.queue, SHELF.scheduled]

/** Resolves the letters among `serials`; gives the serials that were letters and what the counts of the partition lose. */
export async function resolveFromDeadQueue(
  work: OfficeWork,
  partition: Partition,
  serials: readonly number[],
  resolving: Pick<Resolving, 'act' | 'by'> & Partial<Resolving>,
): Promise<{ readonly serials: ReadonlySet<number>; readonly change: CountChange }> {
  if (!partition.holdsLetters) return { serials: new Set(), change: {} }
  const departed = await resolveInDeadQueue(work, partition.part, serials, {
    leasedOnly: false,
    shelves: SHELVES,
    ...resolving,
  })
  return { serials: new Set(departed.map(({ serial }) => serial)), change: departureOf(departed) }
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

/** Resolves letters that a consumer rejects, or moves them where their queue has a dead queue of its own. */
export async function buryLetters(
  cycle: Cycle,
  partition: Partition,
  dying: readonly Dying[],
  to: InDeadQueue | null,
): Promise<void> {
  const items = dying.map(({ item }) => item)
  const serials = items.map(({ serial }) => serial).sort((a, b) => a - b)
  const runs = dying.flatMap(({ run }) => (run === null ? [] : failedRun(run, cycle.now)))
  await recordHistory(cycle.tx, runs)
  if (to === null) {
    const resolving = { act: 'discard', by: null, leasedOnly: true } as const
    const resolved = await resolveFromDeadQueue(cycle, partition, serials, resolving)
    insistOn(dying.length, resolved.serials.size)
    cycle.changes.add(partition.part, resolved.change)
    return
  }
  const tail = await allocateSerials(cycle.tx, dying.length)
  const moves = serials.map((serial, i) => ({ serial, tail: tail[i] ?? 0 }))
  insistOn(dying.length, await relocateLetters(cycle.tx, partition.part, moves, { ...to, at: cycle.now }))
  cycle.changes.add(partition.part, { ...lossOf(items, SHELF.queue), dead: -dying.length })
  cycle.lettersArrived(to, dying.length, tail[0] ?? 0)
}

/** Deletes items because their queue says so, and logs it. */
export async function forget(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  log: Log,
): Promise<void> {
  const { change } = await removeAny(
    cycle.tx,
    partition.part,
    dying.map(({ item }) => item.serial),
    [shelf],
  )
  const { ready = 0, leased = 0, held = 0 } = change
  insistOn(dying.length, -(ready + leased + held))
  cycle.changes.add(partition.part, change)
  cycle.afterCommit(() => {
    for (const { item, reason } of dying) {
      const id = itemIdIn(partition, item.serial)
      log.info(
        { queue: cycle.queue.queueName, id, reason },
        'item deleted: it died, and its queue has no dead queue and says on_death: delete',
      )
    }
  })
}
