/**
 * Deals ready items to the waiting leases of a queue.
 *
 * PostgreSQL keeps index entries of finished items until a vacuum, and a lease that starts at the head wades through them. So each
 * partition has a watermark below which this server knows of nothing ready. `lookAgainFrom` lowers it for new items; a full look every few
 * seconds finds the rest, such as items of a server that died after its commit.
 */
import { type Alarm, type Clock, type Instant, later } from '../../core/clock.ts'
import { usFromNs } from '../../core/duration.ts'
import { failure } from '../../core/errors.ts'
import { noteLessee } from '../../letters/in-dead-queue/move.ts'
import { instantSum, readReadyCounts } from '../counts.ts'
import type { LeasedBatch, LeasedItem } from '../queue.ts'
import { itemIdIn, type Partition } from '../records.ts'
import { LEASE_GRACE_US, type LeasedRow, leaseItems } from '../sql/lease.ts'
import type { Cycle } from './cycle.ts'

/** The longest that an item stays unseen below a watermark. */
const FULL_LOOK_EVERY_MS = 2_000

/** The share of time that full looks may take. */
const FULL_LOOK_SHARE = 0.05

/** Items leased per cycle: a transaction of some ten milliseconds. */
const MAX_LEASED = 4_000

/** Up to this many items a lease counts them in its own statement. */
const FEW = 50

export class Dealer {
  /** By part: every ready item is believed to have a greater serial. */
  readonly #watermarks = new Map<number, number>()
  /** By part: the lowest serial announced since the latest look began. */
  readonly #announced = new Map<number, number>()
  readonly #looking = new Map<number, Promise<void>>()
  /** By part: how many items the latest look found. */
  readonly #latest = new Map<number, number>()
  readonly #nextFullLookMs = new Map<number, number>()

  /** An item with this serial became leasable. */
  lookAgainFrom(part: number, serial: number): void {
    this.#announced.set(part, Math.min(serial, this.#announced.get(part) ?? serial))
    this.#lower(part, serial)
  }

  /**
   * Whether the next lease starts at once and will find few items, as the last one did. Counting them in its statement then saves a trip
   * and costs a fifth more per item.
   */
  isQuick({ part }: Partition): boolean {
    return !this.#looking.has(part) && (this.#latest.get(part) ?? 0) <= FEW
  }

  lookAgainEverywhere(): void {
    this.#watermarks.clear()
    this.#nextFullLookMs.clear()
  }

  /** Leases items in the cycle's transaction and gives them out after the commit; true if one cycle may not have been enough. */
  async deal(cycle: Cycle, waiters: readonly Waiter[]): Promise<boolean> {
    let more = false
    const { partitions } = cycle.queue
    const [only] = partitions
    // One partition needs no choice, and its lease is issued before the first wait.
    const assigned =
      partitions.length === 1 && only !== undefined
        ? [[only, waiters] as const]
        : await this.#assign(cycle, waiters)
    for (const [partition, served] of assigned) {
      const sizes = served.map(({ batchSize }) => batchSize)
      const wanted = Math.min(
        MAX_LEASED,
        sizes.reduce((sum, size) => sum + size, 0),
      )
      const deadline = later(cycle.now, usFromNs(cycle.queue.leaseTimeoutNs))
      const rows = await this.#take(cycle, partition, wanted, deadline)
      if (rows.length === 0) continue
      more ||= rows.length === MAX_LEASED
      if (!cycle.oneTrip)
        cycle.changes.add(partition.part, {
          ready: -rows.length,
          leased: rows.length,
          deadline: instantSum(deadline, rows.length),
        })
      cycle.expectAt(later(deadline, LEASE_GRACE_US))
      const hands = dealRoundRobin(sizes, rows)
      if (partition.holdsLetters) noteLessees(cycle, partition, served, hands)
      cycle.afterCommit(() => {
        for (const [i, waiter] of served.entries()) {
          const hand = hands[i]
          if (hand === undefined || hand.length === 0) continue
          waiter.give({
            queueName: cycle.queue.queueName,
            partition: partition.number,
            items: hand.map((row) => toLeasedItem(row, partition, deadline)),
          })
        }
      })
    }
    return more
  }

  async #assign(cycle: Cycle, waiters: readonly Waiter[]): Promise<Map<Partition, Waiter[]>> {
    const { partitions } = cycle.queue
    const served = new Map<Partition, Waiter[]>()
    const ready = await readReadyCounts(cycle.tx, partitions, (part) => cycle.changes.readyOf(part))
    const chosen = assignPartitions(
      waiters.map(({ batchSize }) => batchSize),
      ready,
    )
    for (const [i, waiter] of waiters.entries()) {
      const partition = partitions[chosen[i] ?? -1]
      if (partition === undefined) continue
      const others = served.get(partition)
      if (others === undefined) served.set(partition, [waiter])
      else others.push(waiter)
    }
    return served
  }

  async #take(cycle: Cycle, partition: Partition, limit: number, deadline: Instant): Promise<LeasedRow[]> {
    const { part } = partition
    // One look at a time: a second would start at the same place and skip the first one's rows one by one.
    const before = this.#looking.get(part)
    if (before !== undefined) await waitBriefly(before)
    this.#announced.delete(part)
    const look = this.#lease(cycle, partition, limit, deadline)
    const over = look.then(noop, noop)
    this.#looking.set(part, over)
    try {
      return await look
    } finally {
      if (this.#looking.get(part) === over) this.#looking.delete(part)
    }
  }

  async #lease(cycle: Cycle, partition: Partition, limit: number, deadline: Instant): Promise<LeasedRow[]> {
    const { part } = partition
    const startedMs = performance.now()
    const full = startedMs >= (this.#nextFullLookMs.get(part) ?? 0)
    const after = full ? 0 : (this.#watermarks.get(part) ?? 0)
    const rows = await leaseItems(
      cycle.tx,
      partition,
      { after, limit, now: cycle.now, deadline },
      cycle.oneTrip,
    )
    if (after === 0) {
      const tookMs = performance.now() - startedMs
      const pauseMs = Math.max(FULL_LOOK_EVERY_MS, tookMs / FULL_LOOK_SHARE)
      this.#nextFullLookMs.set(part, performance.now() + pauseMs)
    }
    this.#latest.set(part, rows.length)
    const last = rows.at(-1)?.serial
    // Before the commit, so that a cycle beside this one starts behind these rows; a rollback clears the watermark.
    if (last !== undefined) this.#raise(part, last)
    return rows
  }

  #raise(part: number, serial: number): void {
    this.#watermarks.set(part, serial)
    const announced = this.#announced.get(part)
    if (announced !== undefined) this.#lower(part, announced)
  }

  #lower(part: number, serial: number): void {
    const watermark = this.#watermarks.get(part)
    if (watermark !== undefined && serial <= watermark) this.#watermarks.set(part, serial - 1)
  }
}

const noop = (): void => {}

/**
 * How long a look waits for the one before. Its connection may be stuck behind a statement waiting for an item that this cycle has
 * locked: the store sees no deadlock there, and both would wait until the connection is given up.
 */
const LOOK_WAIT_MS = 50

async function waitBriefly(before: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, LOOK_WAIT_MS)
  await Promise.race([before, promise])
  clearTimeout(timer)
}

/** Records who leased each letter: completing it resolves it in that client's name. */
function noteLessees(
  { tx }: Cycle,
  { part }: Partition,
  waiters: readonly Waiter[],
  hands: readonly (readonly LeasedRow[])[],
): void {
  for (const [i, { clientId }] of waiters.entries()) {
    const letters = (hands[i] ?? []).filter((row) => row.isLetter).map((row) => row.serial)
    if (letters.length > 0) noteLessee(tx, part, letters, clientId)
  }
}

function toLeasedItem(row: LeasedRow, partition: Partition, leaseDeadline: Instant): LeasedItem {
  const { attempts, encoding, kind, reference, payload, caseId } = row
  const id = itemIdIn(partition, row.serial)
  const item = { id, attempts, leaseDeadline, encoding, kind, reference, payload }
  return caseId === null ? item : { ...item, caseId }
}

/** Index of the largest count, or -1 when all are empty; the lowest number wins a tie. */
function fullest(counts: readonly number[]): number {
  let best = -1
  for (let i = 0; i < counts.length; i++) {
    const count = counts[i] ?? 0
    if (count > 0 && (best < 0 || count > (counts[best] ?? 0))) best = i
  }
  return best
}

/**
 * A partition for each waiting lease, in order of arrival: the one with the most unpromised items, or the fullest once everything is
 * promised. -1 keeps it waiting.
 */
export function assignPartitions(batchSizes: readonly number[], ready: readonly number[]): number[] {
  const unpromised = [...ready]
  const shared = fullest(ready)
  return batchSizes.map((batchSize) => {
    const partition = fullest(unpromised)
    if (partition < 0) return shared
    unpromised[partition] = Math.max(0, (unpromised[partition] ?? 0) - batchSize)
    return partition
  })
}

/** Deals items in order, one at a time, until all leases are full or nothing is left. */
export function dealRoundRobin<T>(batchSizes: readonly number[], items: readonly T[]): T[][] {
  const hands: T[][] = batchSizes.map(() => [])
  let open = batchSizes.map((_, i) => i)
  let next = 0
  while (open.length > 0 && next < items.length) {
    const stillOpen: number[] = []
    for (const i of open) {
      const hand = hands[i]
      const item = items[next]
      if (hand === undefined || item === undefined) break
      hand.push(item)
      next++
      if (hand.length < (batchSizes[i] ?? 0)) stillOpen.push(i)
    }
    open = stillOpen
  }
  return hands
}

/** The client closed its connection. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}

export interface LeaseAsk {
  readonly clientId: string
  readonly batchSize: number
  readonly timeoutNs: bigint
}

/**
 * A lease that waits for items: one long poll of one client.
 *
 *   waiting ──► dealing ──► answered
 *      ▲           │
 *      └───────────┘  a cycle had nothing for it
 *
 * Time-outs and closed connections take effect only after dealing: the items may be leased already.
 */
export class Waiter {
  readonly clientId: string
  readonly batchSize: number
  readonly deadline: Instant
  readonly answer: Promise<LeasedBatch>
  #dealing = false
  #answered = false
  #timedOut = false
  #dropped = false
  #alarm: Alarm | undefined
  readonly #resolve: (batch: LeasedBatch) => void
  readonly #reject: (error: unknown) => void
  readonly #onGone: (waiter: Waiter) => void

  /** `onGone` is called once, when the waiter is answered in any way. */
  constructor(ask: LeaseAsk, clock: Clock, onGone: (waiter: Waiter) => void) {
    this.clientId = ask.clientId
    this.batchSize = ask.batchSize
    this.deadline = later(clock.now(), usFromNs(ask.timeoutNs))
    const { promise, resolve, reject } = Promise.withResolvers<LeasedBatch>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#onGone = onGone
  }

  get waiting(): boolean {
    return !this.#dealing && !this.#answered
  }

  /** Starts the time-out, which a paused queue (`held`) puts off. */
  startTimeout(clock: Clock, held: () => boolean): void {
    this.#alarm = clock.alarm(this.deadline, () => {
      this.#timedOut = true
      if (!held()) this.endIfTimedOut()
    })
  }

  endIfTimedOut(): void {
    if (this.#timedOut && !this.#dealing) this.fail(failure('lease_timed_out'))
  }

  drop(): void {
    this.#dropped = true
    if (!this.#dealing) this.fail(new ClientGone())
  }

  /** A cycle considers this waiter; `undeal` ends that without items. */
  deal(): void {
    this.#dealing = true
  }

  undeal(held: boolean): void {
    this.#dealing = false
    if (this.#dropped) this.fail(new ClientGone())
    else if (!held) this.endIfTimedOut()
  }

  give(batch: LeasedBatch): void {
    if (this.#finish()) this.#resolve(batch)
  }

  fail(error: unknown): void {
    if (this.#finish()) this.#reject(error)
  }

  #finish(): boolean {
    if (this.#answered) return false
    this.#answered = true
    this.#alarm?.cancel()
    this.#onGone(this)
    return true
  }
}
