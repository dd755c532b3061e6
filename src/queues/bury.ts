/**
 * Death: the one place where items leave their queue for good without having been completed. In the transaction of
 * whatever made them die they become letters, or reopen the letters they were sent back from; after a crash an item
 * lies in exactly one place.
 */
import { idFromSerial } from '../core/ksuid.ts'
import type { Log } from '../core/log.ts'
import { recordHistory } from '../history/record.ts'
import { bury as fileDeaths } from '../letters/bury.ts'
import type { Registers } from '../letters/death-note.ts'
import { relocateLying } from '../letters/lying/move.ts'

import { failedRun } from './cases.ts'

import { emptiestPartition, instantSum, negated, sumOfInstants } from './counts.ts'
import { type Cycle, insistOn } from './cycle.ts'
import { resolveFromDeadQueue } from './dead-queue.ts'
import { readEngineOf } from './engine-queues.ts'
import { type Dying, deathsOf, takingItems } from './item-deaths.ts'
import { allocateSerials, type Partition, type QueueRecord, readQueue } from './records.ts'
import { SHELF } from './schema.ts'
import { holdItems } from './sql/move.ts'
import { removeAny } from './sql/remove.ts'

export type { Dying } from './item-deaths.ts'

/** What burying needs beside the cycle. */
export interface Undertaking {
  readonly log: Log
  readonly registers: Registers
}

/** 'held': the queue names a dead queue that does not exist, and nothing was changed. */
export type BurialOutcome = 'buried' | 'held'

/**
 * Makes letters of dying items, in the dead queue that is configured now, or in none without one. Where the queue says so
 * then, they are deleted, but for those whose failure is on record or that were sent back from a letter. Order is kept.
 * All lie on one shelf, and all are leased or none is.
 */
export async function bury(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  undertaking: Undertaking,
): Promise<BurialOutcome> {
  const { tx, queue } = cycle
  const [deadQueue, engine] = await Promise.all([
    queue.deadQueue === '' ? null : readQueue(tx, queue.deadQueue),
    readEngineOf(tx, queue.queueName),
  ])
  if (queue.deadQueue !== '' && deadQueue === null) return 'held'
  const grave = deadQueue && { deadQueue, partition: await graveIn(cycle, deadQueue) }

  const letters = dying.filter(({ item }) => item.isLetter)
  if (letters.length > 0) await buryLetters(cycle, partition, letters, grave)
  const items = dying.filter(({ item }) => !item.isLetter)
  const isDeleted = ({ item, run, error }: Dying): boolean =>
    queue.onDeath === 'delete' && grave === null && run === null && error === null && item.caseId === null
  const kept = items.filter((each) => !isDeleted(each))
  if (kept.length > 0) await makeLetters(cycle, partition, { shelf, engine }, kept, grave, undertaking)
  const forgotten = items.filter(isDeleted)
  if (forgotten.length > 0) await forget(cycle, partition, shelf, forgotten, undertaking.log)
  return 'buried'
}

/** Where letters are laid: a partition of a dead queue. */
interface Grave {
  readonly deadQueue: QueueRecord
  readonly partition: Partition
}

async function makeLetters(
  cycle: Cycle,
  partition: Partition,
  { shelf, engine }: { readonly shelf: number; readonly engine: string | null },
  dying: readonly Dying[],
  grave: Grave | null,
  { registers }: Undertaking,
): Promise<void> {
  const { tx, changes, now } = cycle
  const to = grave && { deadQueue: grave.deadQueue.queueName, part: grave.partition.part }
  const serials = to === null ? [] : await allocateSerials(tx, dying.length)
  const graves = to === null ? [] : serials.map((serial) => ({ ...to, serial, laidAt: now }))
  const deaths = await deathsOf(cycle, partition, shelf, dying, { engine, graves })
  const { part, number } = partition
  const from = { part, shelf, leased: dying[0]?.item.leased ?? false, partition: number }
  const buried = await fileDeaths(cycle, registers, takingItems(cycle, from, to), deaths)
  insistOn(dying.length, buried.taken + buried.reopened)

  changes.add(part, departure(dying, shelf))
  if (to === null) return
  const laid = buried.captured + buried.reopened
  changes.add(to.part, { ready: laid, dead: laid, created: instantSum(now, laid) })
  cycle.arrived(to.deadQueue, to.part, serials[0] ?? 0)
}

const graveIn = (cycle: Cycle, deadQueue: QueueRecord): Promise<Partition> =>
  emptiestPartition(cycle.tx, deadQueue, (part) => cycle.changes.readyOf(part))

/** Letters that a consumer rejects are resolved; where their queue has a dead queue of its own by now, they move there. */
async function buryLetters(
  cycle: Cycle,
  partition: Partition,
  dying: readonly Dying[],
  grave: Grave | null,
): Promise<void> {
  const serials = serialsOf(dying).sort((a, b) => a - b)
  const runs = dying.flatMap(({ run }) => (run === null ? [] : failedRun(run, cycle.now)))
  await recordHistory(cycle.tx, runs)
  if (grave === null) {
    const resolving = { act: 'discard', by: null, leasedOnly: true } as const
    const resolved = await resolveFromDeadQueue(cycle, partition, serials, resolving)
    insistOn(dying.length, resolved.serials.size)
    cycle.changes.add(partition.part, resolved.change)
    return
  }
  const tail = await allocateSerials(cycle.tx, dying.length)
  const { part } = grave.partition
  const moves = serials.map((serial, i) => ({ serial, tail: tail[i] ?? 0 }))
  const to = { part, deadQueue: grave.deadQueue.queueName, at: cycle.now }
  insistOn(dying.length, await relocateLying(cycle.tx, partition.part, moves, to))
  cycle.changes.add(partition.part, { ...departure(dying, SHELF.queue), dead: -dying.length })
  cycle.changes.add(part, {
    ready: dying.length,
    dead: dying.length,
    created: instantSum(cycle.now, dying.length),
  })
  cycle.arrived(grave.deadQueue.queueName, part, tail[0] ?? 0)
}

/** Deletes items as their queue says, and says so. */
async function forget(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  log: Log,
): Promise<void> {
  const { change } = await removeAny(cycle.tx, partition.part, serialsOf(dying), [shelf])
  const { ready = 0, leased = 0, held = 0 } = change
  insistOn(dying.length, -(ready + leased + held))
  cycle.changes.add(partition.part, change)
  cycle.afterCommit(() => {
    for (const { item, reason } of dying) {
      const id = idFromSerial(partition.idPrefix, item.serial)
      log.info(
        { queue: cycle.queue.queueName, id, reason },
        'item deleted: it died, and its queue has no dead queue and says on_death: delete',
      )
    }
  })
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

function departure(dying: readonly Dying[], shelf: number) {
  const leased = dying.filter(({ item }) => item.leased)
  return {
    ready: shelf === SHELF.queue ? leased.length - dying.length : 0,
    leased: -leased.length,
    held: shelf === SHELF.held ? -dying.length : 0,
    created: negated(sumOfInstants(dying.map(({ item }) => item.createdAt))),
    deadline: negated(deadlineSum(leased)),
  }
}

const deadlineSum = (leased: readonly Dying[]) =>
  sumOfInstants(leased.flatMap(({ item }) => item.leaseDeadline ?? []))

const serialsOf = (dying: readonly Dying[]): number[] => dying.map(({ item }) => item.serial)
