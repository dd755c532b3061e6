/** produce: requests that arrived together become one insert per partition. */
import { type Instant, later } from '../../core/clock.ts'
import { payloadBytes } from '../../core/content.ts'
import { usFromNs } from '../../core/duration.ts'
import { type CountChange, emptiest, instantSum, readReadyCounts } from '../counts.ts'
import { type Cycle, StaleQueue } from '../cycles/cycle.ts'
import type { ItemContent, NewItem, ProduceOutcome, ProduceReceipt } from '../queue.ts'
import { itemIdIn, type Partition } from '../records.ts'
import { type Insertion, type ItemToInsert, insertItems, insertItemsAlone } from '../sql/insert.ts'
import { type DedupeAnswer, resolveDedupeKeys } from './dedupe.ts'

export interface ProduceAsk {
  readonly items: readonly AskedItem[]
}

export interface AskedItem extends ItemContent {
  readonly enqueueAt: Instant | null
  readonly dedupeKey: string | null
}

export const toAskedItem = (item: NewItem): AskedItem => ({
  encoding: item.encoding ?? '',
  kind: item.kind ?? '',
  reference: item.reference ?? '',
  payload: payloadBytes(item.payload),
  enqueueAt: item.enqueueAt ?? null,
  dedupeKey: item.dedupeKey || null,
})

/**
 * Writes each request whole into the partition with the fewest ready items; receipts are in the order of requests. With one partition and
 * no dedupe keys the insert is issued before the first wait.
 */
export async function produce(
  cycle: Cycle,
  asks: readonly ProduceAsk[],
  dedupeWindowUs: bigint,
): Promise<ProduceReceipt[]> {
  const { partitions } = cycle.queue
  const chosen =
    partitions.length === 1 ? asks.flatMap(() => partitions) : await choosePartitions(cycle, asks)
  const receipts: ProduceReceipt[] = new Array(asks.length)
  for (const partition of new Set(chosen)) {
    const indexes = asks.flatMap((_, i) => (chosen[i] === partition ? i : []))
    const answers = await produceInto(
      cycle,
      partition,
      indexes.flatMap((i) => asks[i] ?? []),
      dedupeWindowUs,
    )
    for (const [k, i] of indexes.entries()) {
      const receipt = answers[k]
      if (receipt !== undefined) receipts[i] = receipt
    }
  }
  return receipts
}

/** The same in one statement that is the whole transaction: one round trip instead of two. PostgreSQL, one partition, no dedupe keys. */
export async function produceAlone(cycle: Cycle, asks: readonly ProduceAsk[]): Promise<ProduceReceipt[]> {
  const [partition] = cycle.queue.partitions
  if (partition === undefined) throw new Error(`queue '${cycle.queue.queueName}' has no partitions`)
  const items = asks.flatMap((ask) => ask.items).map((item) => toInsertion(item, cycle.now))
  const insertion = insertionOf(cycle, partition, items)
  const serials = await insertItemsAlone(cycle.tx, cycle.queue, insertion, changeOf(cycle, items))
  if (serials === null) throw new StaleQueue()
  announce(cycle, partition, insertion, serials)
  return receiptsOf(partition, asks, null, serials, items)
}

async function choosePartitions(cycle: Cycle, asks: readonly ProduceAsk[]): Promise<Partition[]> {
  const { partitions } = cycle.queue
  const [first] = partitions
  if (first === undefined) throw new Error(`queue '${cycle.queue.queueName}' has no partitions`)
  const ready = await readReadyCounts(cycle.tx, partitions, (part) => cycle.changes.readyOf(part))
  return asks.map((ask) => {
    const number = emptiest(ready)
    const leasable = ask.items.filter((item) => enqueueAtOf(item, cycle.now) === null).length
    ready[number] = (ready[number] ?? 0) + leasable
    return partitions[number] ?? first
  })
}

async function produceInto(
  cycle: Cycle,
  partition: Partition,
  asks: readonly ProduceAsk[],
  dedupeWindowUs: bigint,
): Promise<ProduceReceipt[]> {
  const { tx, now } = cycle
  const asked = asks.flatMap((ask) => ask.items)
  const keyed = asked.some((item) => item.dedupeKey !== null)
  const known = keyed ? await resolveDedupeKeys(cycle, partition, asked, dedupeWindowUs) : null
  const toInsert: ItemToInsert[] = []
  for (const [i, item] of asked.entries()) {
    const answer = known?.[i]
    if (answer?.outcome === 'existed') continue
    const inserted = toInsertion(item, now)
    toInsert.push(answer === undefined ? inserted : { ...inserted, serial: answer.serial })
  }
  if (toInsert.length === 0) return receiptsOf(partition, asks, known, [], toInsert)

  const insertion = insertionOf(cycle, partition, toInsert)
  // Before the insert is awaited: a one-trip cycle writes its counts by then.
  cycle.changes.add(partition.part, changeOf(cycle, toInsert))
  const serials = await insertItems(tx, insertion)
  announce(cycle, partition, insertion, serials)
  return receiptsOf(partition, asks, known, serials, toInsert)
}

const toInsertion = (item: AskedItem, now: Instant): ItemToInsert =>
  item.enqueueAt === null ? item : { ...item, enqueueAt: enqueueAtOf(item, now) }

const insertionOf = (
  { now, queue }: Cycle,
  { part }: Partition,
  items: readonly ItemToInsert[],
): Insertion => ({
  part,
  createdAt: now,
  expireAt: later(now, usFromNs(queue.expireTimeoutNs)),
  items,
})

function changeOf({ now }: Cycle, items: readonly ItemToInsert[]): CountChange {
  const scheduled = items.filter((item) => item.enqueueAt !== null).length
  const ready = items.length - scheduled
  return { ready, scheduled, created: instantSum(now, ready) }
}

/** Expects what comes due, and announces items to lease. */
function announce(
  cycle: Cycle,
  { part }: Partition,
  { items, expireAt }: Insertion,
  serials: readonly number[],
): void {
  for (const { enqueueAt } of items) if (enqueueAt !== null) cycle.expectAt(enqueueAt)
  if (items.every((item) => item.enqueueAt !== null)) return
  cycle.expectAt(expireAt)
  cycle.arrived(cycle.queue.queueName, part, serials[0] ?? 0)
}

/** Receipts make their ids on demand: the wire's produce does not show them. */
function receiptsOf(
  partition: Partition,
  asks: readonly ProduceAsk[],
  known: readonly (DedupeAnswer | undefined)[] | null,
  serials: readonly number[],
  inserted: readonly ItemToInsert[],
): ProduceReceipt[] {
  let outcomes: ProduceOutcome[] | undefined
  const makeOutcomes = (): ProduceOutcome[] => {
    let next = 0
    const total = asks.reduce((sum, ask) => sum + ask.items.length, 0)
    return Array.from({ length: total }, (_, i) => {
      const answer = known?.[i]
      if (answer?.outcome === 'existed') return { outcome: 'existed', id: answer.id }
      const outcome = inserted[next]?.enqueueAt === null ? 'queued' : 'scheduled'
      return { outcome, id: itemIdIn(partition, serials[next++] ?? 0) }
    })
  }
  let from = 0
  return asks.map((ask) => {
    const start = from
    from += ask.items.length
    return {
      partition: partition.number,
      get items() {
        outcomes ??= makeOutcomes()
        return outcomes.slice(start, start + ask.items.length)
      },
    }
  })
}

/** Items due in less than this are queued at once. */
const NEAR_NOW_US = 100_000n

export const isNearNow = (at: Instant, now: Instant): boolean => at < later(now, NEAR_NOW_US)

const enqueueAtOf = (item: AskedItem, now: Instant): Instant | null =>
  item.enqueueAt === null || isNearNow(item.enqueueAt, now) ? null : item.enqueueAt
