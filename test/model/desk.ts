/** Takes each step on the real queues and on the reference, and compares: answers first, then everything that can be seen. */
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { type Instant, later } from '../../src/core/clock.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import type { Office } from '../../src/office.ts'
import type { LeasedItem, StoredItem } from '../../src/queues/queue.ts'
import type { Step } from '../world/model.ts'
import { labelOf } from './history.ts'
import { type Granted, type ReferenceItem, type ReferencePartition, ReferenceQueue } from './reference.ts'

const usOf = (ms: number): bigint => BigInt(ms) * 1_000n

const NO_SUCH_PARTITION: ReferencePartition = { number: -1, items: [] }

interface Known {
  readonly partition: ReferencePartition
  readonly id: string
}

/** The queue that items are put into, or its dead queue. */
export type On = 'main' | 'dead'

/** Which ids a step is about: of the leases that are held now, or of everything that was ever seen. */
export interface Picks {
  readonly among: 'leased' | 'known'
  readonly places: readonly number[]
}

export interface ImportedItem {
  readonly source: number
  readonly leasedForMs: number | null
  readonly expiresInMs: number | null
  readonly attempts: number
}

interface Picked {
  readonly queue: ReferenceQueue
  readonly partition: ReferencePartition
  readonly address: {
    readonly queueName: string
    readonly partition: number
    readonly ids: readonly string[]
  }
}

export class Desk {
  readonly #office: Office
  readonly #main: ReferenceQueue
  readonly #dead: ReferenceQueue
  /** Every id that was ever seen, by queue, the latest last. */
  readonly #known = new Map<ReferenceQueue, Known[]>()
  readonly #greatest = new Map<ReferencePartition, string>()
  #labels = 0
  #clients = 0

  private constructor(office: Office, main: ReferenceQueue, dead: ReferenceQueue) {
    this.#office = office
    this.#main = main
    this.#dead = dead
  }

  static async open(office: Office, name: string, partitions: number): Promise<Desk> {
    const timeouts = { leaseTimeout: '1s', expireTimeout: '5s', maxAttempts: 2 }
    const settings = { leaseUs: usOf(1_000), expireUs: usOf(5_000), maxAttempts: 2 }
    // One attempt: items of the dead queue itself die at the first chance, letters never.
    const dead = new ReferenceQueue(`${name}-dead`, 1, { ...settings, maxAttempts: 1, deadQueue: null })
    const main = new ReferenceQueue(name, partitions, { ...settings, deadQueue: dead })
    await office.queues.create({ ...timeouts, maxAttempts: 1, queueName: dead.name, requestedPartitions: 1 })
    await office.queues.create({
      ...timeouts,
      queueName: main.name,
      deadQueue: dead.name,
      requestedPartitions: partitions,
    })
    return new Desk(office, main, dead)
  }

  async close(): Promise<void> {
    await this.#office.queues.delete({ queueName: this.#main.name })
    await this.#office.queues.delete({ queueName: this.#dead.name, force: true })
  }

  /** Takes a step on one of the queues; afterwards all that can be seen of both is what the reference predicts. */
  async take(step: Step<Desk>): Promise<void> {
    await step.perform(this)
    await this.#office.queues.settle()
    for (const each of [this.#main, this.#dead]) each.sweep(this.#now)
    await this.#compare(this.#main)
    await this.#compare(this.#dead)
  }

  get #now(): Instant {
    return this.#office.clock.now()
  }

  #queue(on: On): ReferenceQueue {
    return on === 'main' ? this.#main : this.#dead
  }

  advance(ms: number): Promise<void> {
    return this.#office.advanceClock(usOf(ms))
  }

  async update(maxAttempts: number, keepsDeadQueue: boolean, leaseMs: number): Promise<void> {
    const { name: queueName, settings } = this.#main
    Object.assign(settings, {
      maxAttempts,
      deadQueue: keepsDeadQueue ? this.#dead : null,
      leaseUs: usOf(leaseMs),
    })
    const deadQueue = keepsDeadQueue ? this.#dead.name : ''
    await this.#office.queues.update({ queueName, maxAttempts, deadQueue, leaseTimeout: `${leaseMs}ms` })
  }

  async clear(
    on: On,
    cleared: { readonly queue: boolean; readonly scheduled: boolean; readonly destructive: boolean },
  ): Promise<void> {
    const queue = this.#queue(on)
    for (const partition of queue.partitions) {
      if (cleared.queue)
        queue.remove(partition, (item) => item.enqueueAt === null && (cleared.destructive || !item.leased))
      if (cleared.scheduled) queue.remove(partition, (item) => item.enqueueAt !== null)
    }
    await expectAnswer(
      this.#office.queues.clear({ queueName: queue.name, ...cleared }),
      cleared.queue || cleared.scheduled ? null : 'clear_nothing',
    )
  }

  async delete(on: On, picks: Picks): Promise<void> {
    const picked = this.#picked(on, picks)
    if (picked === null) return
    const { queue, partition, address } = picked
    queue.remove(partition, ({ id }) => id !== null && address.ids.includes(id))
    await this.#office.queues.deleteItems(address)
  }

  complete(on: On, picks: Picks): Promise<void> {
    return this.#settle('complete', this.#picked(on, picks), {
      call: (address) => this.#office.queues.complete(address),
      apply: ({ queue, partition, address }) =>
        queue.remove(partition, ({ id }) => id !== null && address.ids.includes(id)),
    })
  }

  retry(on: On, picks: Picks, inMs: number | null, dead: boolean): Promise<void> {
    const retryAt = inMs === null ? null : later(this.#now, usOf(inMs))
    return this.#settle('retry', this.#picked(on, picks), {
      call: ({ ids, ...address }) =>
        this.#office.queues.retry({
          ...address,
          items: ids.map((id) => ({ id, dead, ...(retryAt === null ? {} : { retryAt }) })),
        }),
      apply: ({ queue, partition, address: { ids } }) =>
        queue.retry(partition, itemsOf(partition, ids), retryAt, dead, this.#now),
    })
  }

  extend(on: On, picks: Picks, byMs: number): Promise<void> {
    return this.#settle('extend', this.#picked(on, picks), {
      call: (address) => this.#office.queues.extend({ ...address, leaseTimeout: `${byMs}ms` }),
      apply: ({ partition, address: { ids } }) => {
        for (const item of itemsOf(partition, ids)) item.deadline = later(this.#now, usOf(byMs))
      },
    })
  }

  /** Asks the office, which refuses what the reference refuses; the reference does the rest. */
  async #settle(
    verb: 'complete' | 'retry' | 'extend',
    picked: Picked | null,
    both: {
      readonly call: (address: Picked['address']) => Promise<unknown>
      readonly apply: (picked: Picked) => void
    },
  ): Promise<void> {
    if (picked === null) return
    const problem = picked.queue.problem(picked.partition, picked.address.ids)
    const code = { unknown: 'item_unknown', not_leased: `${verb}_not_leased` } as const
    await expectAnswer(both.call(picked.address), problem && code[problem])
    if (problem === null) both.apply(picked)
  }

  /** Some of the leases of one partition, or of all ids that it ever had, counted from the latest. */
  #picked(on: On, { among, places }: Picks): Picked | null {
    const queue = this.#queue(on)
    const isLeased = ({ partition, id }: Known) => itemsOf(partition, [id]).some(({ leased }) => leased)
    const known = (this.#known.get(queue) ?? []).filter((each) => among === 'known' || isLeased(each))
    const picked = places.flatMap((place) => known.at(-1 - (place % Math.max(1, known.length))) ?? [])
    const [first] = picked
    if (first === undefined) return null
    const { partition } = first
    const ids = picked.filter((each) => each.partition === partition).map(({ id }) => id)
    const address = { queueName: queue.name, partition: partition.number, ids: [...new Set(ids)] }
    return { queue, partition, address }
  }

  async produce(on: On, delaysMs: readonly number[]): Promise<void> {
    const queue = this.#queue(on)
    const items = delaysMs.map((delayMs) => ({
      label: this.#label(),
      enqueueAt: delayMs === 0 ? null : later(this.#now, usOf(delayMs)),
    }))
    const expected = queue.produce(items, this.#now)
    const receipt = await this.#office.queues.produce({
      queueName: queue.name,
      items: items.map(({ label, enqueueAt }) => ({
        payload: label,
        ...(enqueueAt === null ? {} : { enqueueAt }),
      })),
    })
    expect(receipt.partition).toBe(expected?.partition.number)
    expect(receipt.items.map(({ outcome }) => outcome)).toEqual(
      expected?.items.map((item) => (item.enqueueAt === null ? 'queued' : 'scheduled')),
    )
    for (const [i, item] of (expected?.items ?? []).entries()) {
      this.#learn(queue, expected?.partition ?? NO_SUCH_PARTITION, item, receipt.items[i]?.id ?? '')
    }
  }

  /** One lease is a lease; several gather while the queue is paused, so that one cycle deals to all. */
  async lease(on: On, sizes: readonly number[]): Promise<void> {
    const queue = this.#queue(on)
    const { queues } = this.#office
    const expected = queue.lease(sizes, this.#now)
    const gone = new AbortController()
    if (sizes.length > 1) await queues.pause(queue.name, true)
    const leasing = sizes.map((batchSize) =>
      queues
        .lease({ queueName: queue.name, clientId: `client-${this.#clients++}`, batchSize }, gone.signal)
        .catch((error: unknown) => {
          if (!gone.signal.aborted) throw error
          return null
        }),
    )
    if (sizes.length > 1) await queues.pause(queue.name, false)
    await Promise.all(leasing.filter((_, i) => expected[i] !== null))
    await queues.settle()
    gone.abort()
    const batches = await Promise.all(leasing)
    const shown = batches.map(
      (batch) => batch && { partition: batch.partition, items: batch.items.map(showLeased) },
    )
    expect(shown).toEqual(expected.map(showGranted))
  }

  async import(on: On, number: number, given: readonly ImportedItem[]): Promise<void> {
    const queue = this.#queue(on)
    const partition = queue.partitions[number % queue.partitions.length] ?? NO_SUCH_PARTITION
    const inMs = (ms: number | null) => (ms === null ? null : later(this.#now, usOf(ms)))
    const items = given.map((each) => ({
      label: this.#label(),
      sourceId: each.source === 0 ? '' : `source-${each.source}`,
      leased: each.leasedForMs !== null,
      deadline: inMs(each.leasedForMs),
      expireAt: inMs(each.expiresInMs),
      attempts: each.attempts,
    }))
    const expected = queue.import(partition, items, this.#now)
    const outcomes = await this.#office.queues.importItems({
      queueName: queue.name,
      partition: partition.number,
      items: items.map((item) => ({
        payload: Buffer.from(item.label),
        sourceId: item.sourceId,
        isLeased: item.leased,
        leaseDeadline: item.deadline,
        expireDeadline: item.expireAt,
        attempts: item.attempts,
      })),
    })
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(
      expected.map((item) => (item === null ? 'existed' : 'imported')),
    )
    for (const [i, item] of expected.entries()) {
      const outcome = outcomes[i]
      if (item !== null && outcome?.outcome === 'imported')
        this.#learn(queue, partition, item, outcome.item.id)
    }
  }

  async #compare(queue: ReferenceQueue): Promise<void> {
    const { queues } = this.#office
    const now = this.#now
    for (const partition of queue.partitions) {
      const page = { queueName: queue.name, partition: partition.number, limit: 10_000 }
      const listed = await queues.listItems(page)
      this.#adopt(queue, partition, listed)
      same(listed.map(showStored), queue.queued(partition).map(showReference))
      same((await queues.listScheduled(page)).map(showStored), queue.scheduled(partition).map(showReference))
      const peeked = await queues.peek({ queueName: queue.name, partition: partition.number, limit: 1_000 })
      same(
        peeked.map(labelOf),
        queue.ready(partition, now).map(({ label }) => label),
      )
    }
    const { partitions } = await queues.stats(queue.name)
    same(
      partitions,
      queue.partitions.map((partition) => queue.stats(partition, now)),
    )
    const depth = (await queues.depths()).find(({ queueName }) => queueName === queue.name)
    const queued = queue.partitions.flatMap((partition) => queue.queued(partition))
    const heads = queue.partitions.flatMap((partition) => queue.queued(partition)[0]?.createdAt ?? [])
    same(depth, {
      queueName: queue.name,
      ready: queued.filter(({ leased }) => !leased).length,
      leased: queued.filter(({ leased }) => leased).length,
      scheduled: queue.partitions.flatMap((partition) => queue.scheduled(partition)).length,
      held: 0,
      dead: queue.items.filter(({ death }) => death !== null).length,
      oldestAt: heads.length === 0 ? null : heads.reduce((a, b) => (a < b ? a : b)),
    })
  }

  /**
   * Learns the ids of items that went to the tail: each greater than every id before. Letters that arrive together
   * come in an order that the contract leaves open; the order of the list is taken over.
   */
  #adopt(queue: ReferenceQueue, partition: ReferencePartition, listed: readonly StoredItem[]): void {
    const moved = queue.queued(partition).filter(({ id }) => id === null)
    if (moved.length === 0) return
    const arrived = listed.slice(-moved.length)
    const found = arrived.flatMap((item) => moved.find(({ label }) => label === labelOf(item)) ?? [])
    if (queue === this.#dead) queue.reorder(found)
    for (const [i, item] of found.entries()) {
      const id = arrived[i]?.id ?? ''
      if (item.death !== null && item.sourceId === '') item.sourceId = arrived[i]?.sourceId ?? ''
      this.#learn(queue, partition, item, id)
    }
  }

  #learn(queue: ReferenceQueue, partition: ReferencePartition, item: ReferenceItem, id: string): void {
    const greatest = this.#greatest.get(partition) ?? ''
    expect(id > greatest, `id ${id} of ${item.label} is greater than ${greatest}`).toBe(true)
    this.#greatest.set(partition, id)
    item.id = id
    this.#known.set(queue, [...(this.#known.get(queue) ?? []), { partition, id }])
  }

  #label(): string {
    return `item-${this.#labels++}`
  }
}

async function expectAnswer(call: Promise<unknown>, code: ErrorCode | null): Promise<void> {
  if (code === null) await call
  else await expect(call).rejects.toMatchObject({ code })
}

/** The quick comparison first: the other one explains. */
function same(given: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(given, expected)) expect(given).toEqual(expected)
}

const itemsOf = (partition: ReferencePartition, ids: readonly string[]): ReferenceItem[] =>
  ids.flatMap((id) => partition.items.find((item) => item.id === id) ?? [])

const showLeased = (item: LeasedItem) => ({
  label: labelOf(item),
  id: item.id,
  attempts: item.attempts,
  deadline: item.leaseDeadline,
})

const showGranted = (granted: Granted) =>
  granted && {
    partition: granted.partition.number,
    items: granted.items.map(({ label, id, attempts, deadline }) => ({ label, id, attempts, deadline })),
  }

const showStored = (item: StoredItem) => ({
  label: labelOf(item),
  id: item.id,
  sourceId: item.sourceId,
  leased: item.isLeased,
  deadline: item.leaseDeadline,
  expireAt: item.expireDeadline,
  createdAt: item.createdAt,
  enqueueAt: item.enqueueAt,
  attempts: item.attempts,
  death: item.death && { reason: item.death.reason, attempts: item.death.attempts },
})

const showReference = ({ serial: _, ...shown }: ReferenceItem) => shown
