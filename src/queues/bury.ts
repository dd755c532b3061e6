/**
 * Death: the one place where items leave their queue for good without having been completed. In the transaction of
 * whatever made them die they become letters, or reopen the letters they were sent back from; after a crash an item
 * lies in exactly one place.
 */
import { idFromSerial } from '../core/ksuid.ts'
import type { Log } from '../core/log.ts'
import { recordHistory } from '../history/record.ts'
import type { Registers } from '../letters/death-note.ts'
import { engineSourceId } from '../letters/item-source-id.ts'
import { STATUS } from '../letters/letter.ts'
import { relocateLying } from '../letters/lying/move.ts'
import { lockLettersOf, type Relapse, reopenLetters } from '../letters/reopen.ts'
import { failedRun } from './cases.ts'
import { emptiestPartition, instantSum, negated, sumOfInstants } from './counts.ts'
import { type Cycle, insistOn } from './cycle.ts'
import { resolveFromDeadQueue } from './dead-queue.ts'
import { NoteBook } from './death-notes.ts'
import { type MessageNames, readMessageNames } from './engine-deaths.ts'
import { readEngineOf } from './engine-queues.ts'
import type { DeathReason, FailedRun, GivenError } from './queue.ts'
import { allocateSerials, type Partition, type QueueRecord, readQueue } from './records.ts'
import { SHELF } from './schema.ts'
import { buryItems } from './sql/bury.ts'
import type { ItemFacts } from './sql/inspect.ts'
import { holdItems, removeRelapsed } from './sql/move.ts'
import { removeAny } from './sql/remove.ts'

export interface Dying {
  readonly item: ItemFacts
  readonly reason: DeathReason
  /** The run that was its last; null when none is known. */
  readonly run: FailedRun | null
  /** What its consumer says instead of a run; else null. */
  readonly error: GivenError | null
}

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

const NO_NAMES: ReadonlyMap<number, MessageNames> = new Map()

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
  const { tx, changes } = cycle
  const from = { part: partition.part, shelf, leased: dying[0]?.item.leased ?? false }
  const serials = grave === null ? [] : await allocateSerials(tx, dying.length)
  const placed = dying.map((each, i) => ({ ...each, to: serials[i] ?? null }))
  const caseIds = dying.flatMap(({ item }) => item.caseId ?? [])
  const cases = await lockLettersOf(tx, caseIds)
  // The letter of an item is resolved as long as the item is out. One that is pending was reported anew, and its item lost its case since it was read.
  insistOn(cases.size, [...cases.values()].filter(({ status }) => status !== STATUS.Pending).length)
  const notes = new NoteBook(cycle, registers)

  const relapses: Relapse[] = []
  for (const { item, to, ...death } of placed) {
    const letter = item.caseId === null ? undefined : cases.get(item.caseId)
    if (letter === undefined) continue
    relapses.push({
      letterId: letter.id,
      diedAs: idFromSerial(partition.idPrefix, item.serial),
      attempts: item.attempts,
      note: await notes.ofRelapse(letter, death),
      grave: grave === null || to === null ? null : graveOf(grave, to, cycle),
    })
  }
  const isRelapsed = ({ item }: Dying): boolean => item.caseId !== null && cases.has(item.caseId)
  if (relapses.length > 0) {
    await removeRelapsed(
      tx,
      from,
      placed.filter(isRelapsed).map(({ item }) => item),
    )
    await reopenLetters(cycle, relapses, cases)
  }

  const fresh = placed.filter((each) => !isRelapsed(each))
  const names = engine === null ? NO_NAMES : await readMessageNames(tx, from, serialsOf(fresh))
  const named = fresh.map(({ item, to, ...ending }) => {
    const itemId = idFromSerial(partition.idPrefix, item.serial)
    const owner = engine === null ? null : { engine, names: names.get(item.serial) ?? null }
    const prefix = owner === null && ending.run === null ? '' : engineSourceId('')
    return { item, itemId, prefix, to, sourceId: prefix + itemId, ending, owner }
  })
  const places = await notes.ofDeaths(named)
  const items = named.map(({ item, itemId, prefix, to }, i) => ({
    ...item,
    itemId,
    prefix,
    to,
    note: places[i] ?? 0,
  }))
  let captured = 0
  for (const [prefix, mine] of Map.groupBy(items, (item) => item.prefix)) {
    captured += await buryItems(cycle, {
      from: { ...from, partition: partition.number },
      prefix,
      grave: grave && { part: grave.partition.part, deadQueue: grave.deadQueue.queueName },
      notes: notes.written,
      items: mine,
    })
  }

  changes.add(partition.part, departure(dying, shelf))
  if (grave === null) return
  const laid = captured + relapses.length
  const { part } = grave.partition
  changes.add(part, { ready: laid, dead: laid, created: instantSum(cycle.now, laid) })
  cycle.arrived(grave.deadQueue.queueName, part, serials[0] ?? 0)
}

const graveIn = (cycle: Cycle, deadQueue: QueueRecord): Promise<Partition> =>
  emptiestPartition(cycle.tx, deadQueue, (part) => cycle.changes.readyOf(part))

const graveOf = ({ deadQueue, partition }: Grave, serial: number, { now }: Cycle) => ({
  deadQueue: deadQueue.queueName,
  part: partition.part,
  serial,
  laidAt: now,
})

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
