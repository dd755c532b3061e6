/**
 * A queue in memory, as simple as the contract reads: arrays and sorting, no store, no concurrency. It predicts
 * exactly what the real queue answers when one client makes one call after the other.
 */
import { type Instant, later } from '../../src/core/clock.ts'
import type { DeathReason, PartitionStats } from '../../src/queues/queue.ts'

const NEAR_NOW_US = 100_000n
/** The contract allows 5 to 10 ms. */
const GRACE_US = 7_000n

export interface ReferenceItem {
  readonly label: string
  /** The real id, once a list or a receipt has shown it; a move to the tail makes it unknown again. */
  id: string | null
  /** Orders the items of this model; says nothing about ids but their order. */
  serial: number
  sourceId: string
  createdAt: Instant
  expireAt: Instant | null
  attempts: number
  leased: boolean
  deadline: Instant | null
  enqueueAt: Instant | null
  death: { readonly reason: DeathReason; readonly attempts: number } | null
}

export interface ReferencePartition {
  readonly number: number
  items: ReferenceItem[]
}

export interface ReferenceSettings {
  leaseUs: bigint
  expireUs: bigint
  maxAttempts: number
  deadQueue: ReferenceQueue | null
}

export interface Imported {
  readonly label: string
  readonly sourceId: string
  readonly leased: boolean
  readonly deadline: Instant | null
  readonly expireAt: Instant | null
  readonly attempts: number
}

export type Granted = {
  readonly partition: ReferencePartition
  readonly items: readonly ReferenceItem[]
} | null

export class ReferenceQueue {
  readonly name: string
  readonly settings: ReferenceSettings
  readonly partitions: readonly ReferencePartition[]
  #serials = 0

  constructor(name: string, partitions: number, settings: ReferenceSettings) {
    this.name = name
    this.settings = settings
    this.partitions = Array.from({ length: partitions }, (_, number) => ({ number, items: [] }))
  }

  get items(): ReferenceItem[] {
    return this.partitions.flatMap((partition) => partition.items)
  }

  queued({ items }: ReferencePartition): ReferenceItem[] {
    return items.filter((item) => item.enqueueAt === null).sort(bySerial)
  }

  scheduled({ items }: ReferencePartition): ReferenceItem[] {
    return items.filter((item) => item.enqueueAt !== null).sort(bySerial)
  }

  ready(partition: ReferencePartition, now: Instant): ReferenceItem[] {
    return this.queued(partition).filter((item) => !item.leased && !isPast(item.expireAt, now))
  }

  produce(
    items: readonly { readonly label: string; readonly enqueueAt: Instant | null }[],
    now: Instant,
  ): Granted {
    const partition = this.#extreme((a, b) => this.ready(a, now).length < this.ready(b, now).length)
    const made = items.map(({ label, enqueueAt }) => {
      const item = this.#fresh(label, now)
      item.expireAt = later(now, this.settings.expireUs)
      item.enqueueAt = enqueueAt === null || enqueueAt < now + NEAR_NOW_US ? null : enqueueAt
      return item
    })
    partition.items.push(...made)
    return { partition, items: made }
  }

  /** Leases that wait together and are served in one cycle. */
  lease(sizes: readonly number[], now: Instant): Granted[] {
    const unpromised = this.partitions.map((partition) => this.ready(partition, now).length)
    const chosen = sizes.map((size) => {
      const free = this.#extreme((a, b) => (unpromised[a.number] ?? 0) > (unpromised[b.number] ?? 0))
      if ((unpromised[free.number] ?? 0) === 0) {
        return this.#extreme((a, b) => this.ready(a, now).length > this.ready(b, now).length)
      }
      unpromised[free.number] = Math.max(0, (unpromised[free.number] ?? 0) - size)
      return free
    })
    const hands: ReferenceItem[][] = sizes.map(() => [])
    for (const partition of new Set(chosen)) {
      const mine = sizes.flatMap((_, i) => (chosen[i] === partition ? i : []))
      const queue = this.ready(partition, now)
      const open = (i: number) => (hands[i]?.length ?? 0) < (sizes[i] ?? 0)
      while (queue.length > 0 && mine.some(open)) {
        for (const i of mine.filter(open)) hands[i]?.push(...queue.splice(0, 1))
      }
    }
    return hands.map((items, i) => {
      const partition = chosen[i]
      if (items.length === 0 || partition === undefined) return null
      for (const item of items) {
        item.leased = true
        item.attempts += 1
        item.deadline = later(now, this.settings.leaseUs)
      }
      return { partition, items }
    })
  }

  /** What complete, retry or extend of these ids answers: the first problem, in their order. */
  problem(partition: ReferencePartition, ids: readonly string[]): 'unknown' | 'not_leased' | null {
    for (const id of ids) {
      const item = this.queued(partition).find((each) => each.id === id)
      if (item === undefined) return 'unknown'
      if (!item.leased) return 'not_leased'
    }
    return null
  }

  remove(partition: ReferencePartition, gone: (item: ReferenceItem) => boolean): void {
    partition.items = partition.items.filter((item) => !gone(item))
  }

  retry(
    partition: ReferencePartition,
    items: readonly ReferenceItem[],
    retryAt: Instant | null,
    dead: boolean,
    now: Instant,
  ): void {
    for (const item of items) {
      const reason = dead ? 'rejected' : this.#usedUp(item) ? 'attempts' : null
      if (reason !== null) this.#bury(partition, item, reason, now)
      else if (retryAt !== null && retryAt >= now + NEAR_NOW_US) {
        item.leased = false
        item.deadline = null
        item.enqueueAt = retryAt
      } else this.#toTail(item)
    }
  }

  import(partition: ReferencePartition, items: readonly Imported[], now: Instant): (ReferenceItem | null)[] {
    return items.map((given) => {
      const isHeld = partition.items.some(({ sourceId }) => sourceId !== '' && sourceId === given.sourceId)
      const item = this.#fresh(given.label, now)
      if (isHeld) return null
      item.sourceId = given.sourceId
      item.leased = given.leased
      item.deadline = given.deadline
      item.attempts = given.attempts
      item.expireAt = given.expireAt ?? later(now, this.settings.expireUs)
      partition.items.push(item)
      return item
    })
  }

  /** Everything that is due: ended leases, schedules, expiry. */
  sweep(now: Instant): void {
    for (const partition of this.partitions) {
      const over = this.queued(partition).filter(
        (item) => item.leased && now > (item.deadline ?? 0n) + GRACE_US,
      )
      const arriving = over.map((item) => ({ item, at: (item.deadline ?? 0n) + GRACE_US }))
      for (const item of this.scheduled(partition)) {
        if (item.enqueueAt !== null && now > item.enqueueAt) arriving.push({ item, at: item.enqueueAt })
      }
      arriving.sort((a, b) => (a.at === b.at ? a.item.serial - b.item.serial : a.at < b.at ? -1 : 1))
      for (const { item } of arriving) {
        const reason = !item.leased || item.death !== null ? null : this.#usedUp(item) ? 'attempts' : null
        const expired = item.leased && item.death === null && isPast(item.expireAt, now) ? 'expired' : null
        const dies = reason ?? expired
        if (dies === null) this.#toTail(item)
        else this.#bury(partition, item, dies, now)
      }
      for (const item of this.queued(partition)) {
        if (!item.leased && isPast(item.expireAt, now)) this.#bury(partition, item, 'expired', now)
      }
    }
  }

  stats(partition: ReferencePartition, now: Instant): PartitionStats {
    const queued = this.queued(partition)
    const leased = queued.filter((item) => item.leased)
    const sum = (instants: readonly (Instant | null)[]) =>
      instants.reduce<bigint>((total, at) => total + (at ?? 0n), 0n)
    return {
      partition: partition.number,
      total: queued.length,
      totalLeased: leased.length,
      scheduled: this.scheduled(partition).length,
      failures: 0,
      averageAgeUs:
        queued.length === 0
          ? 0n
          : now - sum(queued.map(({ createdAt }) => createdAt)) / BigInt(queued.length),
      averageLeasedAgeUs:
        leased.length === 0 ? 0n : sum(leased.map(({ deadline }) => deadline)) / BigInt(leased.length) - now,
    }
  }

  /** Takes over the order that the store chose where the contract leaves it open. */
  reorder(items: readonly ReferenceItem[]): void {
    for (const item of items) item.serial = ++this.#serials
  }

  #usedUp(item: ReferenceItem): boolean {
    const { maxAttempts } = this.settings
    return item.death === null && maxAttempts !== 0 && item.attempts >= maxAttempts
  }

  #toTail(item: ReferenceItem): void {
    item.id = null
    item.serial = ++this.#serials
    item.leased = false
    item.deadline = null
    item.enqueueAt = null
  }

  #bury(partition: ReferencePartition, item: ReferenceItem, reason: DeathReason, now: Instant): void {
    this.remove(partition, (each) => each === item)
    this.settings.deadQueue?.receive(item, reason, now)
  }

  receive(item: ReferenceItem, reason: DeathReason, now: Instant): void {
    const [position] = this.partitions
    const sourceId = item.id
    if (
      position === undefined ||
      position.items.some((each) => sourceId !== null && each.sourceId === sourceId)
    )
      return
    const letter = this.#fresh(item.label, now)
    // An item that came due past its expiry dies under an id that no list has shown.
    letter.sourceId = sourceId ?? ''
    letter.death = { reason, attempts: item.attempts }
    position.items.push(letter)
  }

  #fresh(label: string, now: Instant): ReferenceItem {
    return {
      label,
      id: null,
      serial: ++this.#serials,
      sourceId: '',
      createdAt: now,
      expireAt: null,
      attempts: 0,
      leased: false,
      deadline: null,
      enqueueAt: null,
      death: null,
    }
  }

  #extreme(isBetter: (a: ReferencePartition, b: ReferencePartition) => boolean): ReferencePartition {
    return this.partitions.reduce((best, each) => (isBetter(each, best) ? each : best))
  }
}

const bySerial = (a: ReferenceItem, b: ReferenceItem): number => a.serial - b.serial

const isPast = (deadline: Instant | null, now: Instant): boolean => deadline !== null && now > deadline
