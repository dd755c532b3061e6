/** Takes each step on the real queues and on the reference, and compares: answers first, then everything that can be seen. */
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { type Instant, later } from '../../src/core/clock.ts'
import type { ErrorCode } from '../../src/core/errors.ts'
import type { Office } from '../../src/office.ts'
import type { LeasedItem, StoredItem } from '../../src/queues/queue.ts'
import { labelOf } from './history.ts'
import { type Granted, type ReferenceItem, type ReferencePartition, ReferenceQueue } from './reference.ts'
import type { ImportedStep, Picks, Step } from './steps.ts'

const usOf = (ms: number): bigint => BigInt(ms) * 1_000n

const NO_SUCH_PARTITION: ReferencePartition = { number: -1, items: [] }

interface Known {
  readonly partition: ReferencePartition
  readonly id: string
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

  async take(step: Step): Promise<void> {
    const queue = step.on === 'main' ? this.#main : this.#dead
    await this.#act(step, queue)
    await this.#office.queues.settle()
    for (const each of [this.#main, this.#dead]) each.sweep(this.#now)
    await this.#compare(this.#main)
    await this.#compare(this.#dead)
  }

  get #now(): Instant {
    return this.#office.clock.now()
  }

  async #act(step: Step, queue: ReferenceQueue): Promise<void> {
    const { queues } = this.#office
    const queueName = queue.name
    switch (step.step) {
      case 'advance':
        return this.#office.advanceClock(usOf(step.ms))
      case 'produce':
        return this.#produce(queue, step.delaysMs)
      case 'lease':
        return this.#lease(queue, step.sizes)
      case 'import':
        return this.#import(queue, step.partition, step.items)
      case 'update':
        queue.settings.maxAttempts = step.maxAttempts
        queue.settings.deadQueue = step.keepDeadQueue ? this.#dead : null
        queue.settings.leaseUs = usOf(step.leaseMs)
        await queues.update({
          queueName,
          maxAttempts: step.maxAttempts,
          deadQueue: step.keepDeadQueue ? this.#dead.name : '',
          leaseTimeout: `${step.leaseMs}ms`,
        })
        return
      case 'clear':
        for (const partition of queue.partitions) {
          if (step.queue)
            queue.remove(partition, (item) => item.enqueueAt === null && (step.destructive || !item.leased))
          if (step.scheduled) queue.remove(partition, (item) => item.enqueueAt !== null)
        }
        return expectAnswer(
          queues.clear({ queueName, ...step }),
          step.queue || step.scheduled ? null : 'clear_nothing',
        )
      case 'delete':
        return this.#about(queue, step.picks, async (partition, ids) => {
          queue.remove(partition, ({ id }) => id !== null && ids.includes(id))
          await queues.deleteItems({ queueName, partition: partition.number, ids })
        })
      case 'complete':
        return this.#about(queue, step.picks, async (partition, ids) => {
          const problem = queue.problem(partition, ids)
          const code = { unknown: 'item_unknown', not_leased: 'complete_not_leased' } as const
          await expectAnswer(
            queues.complete({ queueName, partition: partition.number, ids }),
            problem && code[problem],
          )
          if (problem === null) queue.remove(partition, ({ id }) => id !== null && ids.includes(id))
        })
      case 'retry':
        return this.#about(queue, step.picks, (partition, ids) => this.#retry(queue, partition, ids, step))
      case 'extend':
        return this.#about(queue, step.picks, async (partition, ids) => {
          const problem = queue.problem(partition, ids)
          const code = { unknown: 'item_unknown', not_leased: 'extend_not_leased' } as const
          const leaseTimeout = `${step.byMs}ms`
          const extending = queues.extend({ queueName, partition: partition.number, ids, leaseTimeout })
          await expectAnswer(extending, problem && code[problem])
          if (problem !== null) return
          for (const item of itemsOf(partition, ids)) item.deadline = later(this.#now, usOf(step.byMs))
        })
    }
  }

  async #produce(queue: ReferenceQueue, delaysMs: readonly number[]): Promise<void> {
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
  async #lease(queue: ReferenceQueue, sizes: readonly number[]): Promise<void> {
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

  async #retry(
    queue: ReferenceQueue,
    partition: ReferencePartition,
    ids: readonly string[],
    { inMs, dead }: { readonly inMs: number | null; readonly dead: boolean },
  ): Promise<void> {
    const problem = queue.problem(partition, ids)
    const code = { unknown: 'item_unknown', not_leased: 'retry_not_leased' } as const
    const retryAt = inMs === null ? null : later(this.#now, usOf(inMs))
    const items = ids.map((id) => ({ id, dead, ...(retryAt === null ? {} : { retryAt }) }))
    await expectAnswer(
      this.#office.queues.retry({ queueName: queue.name, partition: partition.number, items }),
      problem && code[problem],
    )
    if (problem === null) queue.retry(partition, itemsOf(partition, ids), retryAt, dead, this.#now)
  }

  async #import(queue: ReferenceQueue, number: number, steps: readonly ImportedStep[]): Promise<void> {
    const partition = queue.partitions[number % queue.partitions.length] ?? NO_SUCH_PARTITION
    const inMs = (ms: number | null) => (ms === null ? null : later(this.#now, usOf(ms)))
    const items = steps.map((each) => ({
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

  /** Some of the leases of one partition, or of all ids that it ever had, counted from the latest. */
  async #about(
    queue: ReferenceQueue,
    { among, places }: Picks,
    act: (partition: ReferencePartition, ids: readonly string[]) => Promise<void>,
  ): Promise<void> {
    const isLeased = ({ partition, id }: Known) => itemsOf(partition, [id]).some(({ leased }) => leased)
    const known = (this.#known.get(queue) ?? []).filter((each) => among === 'known' || isLeased(each))
    const picked = places.flatMap((place) => known.at(-1 - (place % Math.max(1, known.length))) ?? [])
    const [first] = picked
    if (first === undefined) return
    const mine = picked.filter(({ partition }) => partition === first.partition)
    await act(first.partition, [...new Set(mine.map(({ id }) => id))])
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

const showReference = (shown: ReferenceItem) => ({
  label: shown.label,
  id: shown.id,
  sourceId: shown.sourceId,
  leased: shown.leased,
  deadline: shown.deadline,
  expireAt: shown.expireAt,
  createdAt: shown.createdAt,
  enqueueAt: shown.enqueueAt,
  attempts: shown.attempts,
  death: shown.death,
})
