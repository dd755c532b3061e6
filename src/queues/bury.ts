/**
 * Death: the one place where an item leaves its queue for the dead queue. In the transaction of whatever made it
 * die, so that after a crash it lies in exactly one of the two.
 */
import { idFromSerial } from '../core/ksuid.ts'
import type { Log } from '../core/log.ts'
import { instantSum, negated, readCounts, sumOfInstants } from './counts.ts'
import type { Cycle } from './cycle.ts'
import { emptiest } from './deal.ts'
import { insistOn } from './mismatch.ts'
import type { DeathReason } from './queue.ts'
import { type Partition, type QueueRecord, readQueue } from './records.ts'
import { SHELF } from './schema.ts'
import type { ItemFacts } from './sql/inspect.ts'
import { buryItems, holdItems } from './sql/move.ts'
import { removeAny } from './sql/remove.ts'

export interface Dying {
  readonly item: ItemFacts
  readonly reason: DeathReason
}

/** 'held': the queue names a dead queue that does not exist, and nothing was changed. */
export type BurialOutcome = 'buried' | 'deleted' | 'held'

/**
 * Moves dying items to the dead queue that is configured now, or deletes them when there is none. Order is kept.
 * All lie on one shelf, and all are leased or none is.
 */
export async function bury(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  log: Log,
): Promise<BurialOutcome> {
  const { tx, queue, changes } = cycle
  if (queue.deadQueue === '') {
    const {
      ready = 0,
      leased = 0,
      held = 0,
      ...sums
    } = await removeAny(tx, partition.part, serialsOf(dying), [shelf])
    insistOn(dying.length, -(ready + leased + held))
    changes.add(partition.part, { ready, leased, held, ...sums })
    cycle.afterCommit(() => {
      for (const { item, reason } of dying) {
        const id = idFromSerial(partition.idPrefix, item.serial)
        log.warn(
          { queue: queue.queueName, id, reason },
          'item deleted: it died and its queue has no dead queue',
        )
      }
    })
    return 'deleted'
  }
  const deadQueue = await readQueue(tx, queue.deadQueue)
  if (deadQueue === null) return 'held'
  const grave = await emptiestPartition(cycle, deadQueue)
  const { buried, firstSerial } = await buryItems(tx, {
    from: {
      part: partition.part,
      shelf,
      leased: dying[0]?.item.leased ?? false,
      queueName: queue.queueName,
      partition: partition.number,
    },
    toPart: grave.part,
    at: cycle.now,
    items: dying.map(({ item, reason }) => ({
      ...item,
      sourceId: idFromSerial(partition.idPrefix, item.serial),
      reason,
    })),
  })
  changes.add(partition.part, departure(dying, shelf))
  changes.add(grave.part, { ready: buried, dead: buried, created: instantSum(cycle.now, buried) })
  cycle.arrived(deadQueue.queueName, grave.part, firstSerial)
  return 'buried'
}

/** Sets dying items aside whose dead queue is missing; the sweep tries again. */
export async function hold(cycle: Cycle, partition: Partition, dying: readonly Dying[]): Promise<void> {
  await holdItems(cycle.tx, partition.part, serialsOf(dying))
  const leased = dying.filter(({ item }) => item.leased)
  cycle.changes.add(partition.part, {
    ready: leased.length - dying.length,
    leased: -leased.length,
    held: dying.length,
    deadline: negated(deadlineSum(leased)),
  })
}

async function emptiestPartition(cycle: Cycle, queue: QueueRecord): Promise<Partition> {
  const [first] = queue.partitions
  if (first === undefined) throw new Error(`queue '${queue.queueName}' has no partitions`)
  if (queue.partitions.length === 1) return first
  const counts = await readCounts(
    cycle.tx,
    queue.partitions.map(({ part }) => part),
  )
  const ready = queue.partitions.map(({ part }, i) => (counts[i]?.ready ?? 0) + cycle.changes.readyOf(part))
  return queue.partitions[emptiest(ready)] ?? first
}

function departure(dying: readonly Dying[], shelf: number) {
  const leased = dying.filter(({ item }) => item.leased)
  const letters = dying.filter(({ item }) => item.isLetter)
  return {
    ready: shelf === SHELF.queue ? leased.length - dying.length : 0,
    leased: -leased.length,
    held: shelf === SHELF.held ? -dying.length : 0,
    dead: -letters.length,
    created: negated(sumOfInstants(dying.map(({ item }) => item.createdAt))),
    deadline: negated(deadlineSum(leased)),
  }
}

const deadlineSum = (leased: readonly Dying[]) =>
  sumOfInstants(leased.flatMap(({ item }) => item.leaseDeadline ?? []))

const serialsOf = (dying: readonly Dying[]): number[] => dying.map(({ item }) => item.serial)
