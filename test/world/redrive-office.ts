/** An office with letters to send back and somebody who works on what was sent, on a clock that stands still. */
import { type Instant, instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import type { FailureReport } from '../../src/letters/reports/report.ts'
import { Office } from '../../src/office.ts'
import type { PlanRequest, RedriveDetail, Terms } from '../../src/redrive/redrive.ts'
import { reportOf } from './report.ts'
import type { FreshStore, StoreKind } from './stores.ts'

export const START: Instant = instant(1_800_000_000_000_000n)

/** How a redrive goes when nothing is said. */
export const PLAIN: Terms = { rate: null, canary: null, stopRule: null, order: 'key' }

/** Leases everything in a queue, and completes or kills each by its payload or its place; gives the payloads in their order. */
export async function workOff(
  queues: Office['queues'],
  queueName: string,
  succeeds: (payload: string, nth: number) => boolean,
): Promise<string[]> {
  const seen: string[] = []
  for (;;) {
    const { partitions } = await queues.stats(queueName)
    if (partitions.every(({ total, totalLeased }) => total === totalLeased)) return seen
    const lease = { queueName, clientId: 'worker', batchSize: 1_000, requestTimeout: '1s' }
    const { partition, items } = await queues.lease(lease)
    const payloads = items.map(({ payload }) => Buffer.from(payload).toString())
    seen.push(...payloads)
    const isGood = payloads.map(succeeds)
    const good = items.filter((_, n) => isGood[n]).map(({ id }) => id)
    const bad = items.filter((_, n) => !isGood[n]).map(({ id }) => ({ id, dead: true }))
    if (good.length > 0) await queues.complete({ queueName, partition, ids: good })
    if (bad.length > 0) await queues.retry({ queueName, partition, items: bad })
  }
}

export class RedriveOffice {
  readonly clock: TestClock
  readonly place: FreshStore
  office: Office
  #reports = 0

  private constructor(place: FreshStore, clock: TestClock, office: Office) {
    this.place = place
    this.clock = clock
    this.office = office
  }

  static async open(kind: StoreKind): Promise<RedriveOffice> {
    const place = await kind.fresh()
    const clock = new TestClock()
    clock.freeze(START)
    return new RedriveOffice(place, clock, await Office.open({ store: place.url, clock }))
  }

  /** Another server on the same store. */
  another(): Promise<Office> {
    return Office.open({ store: this.place.url, clock: this.clock })
  }

  async close(): Promise<void> {
    await this.office.close()
    await this.place.dispose()
  }

  /** A queue, with a dead queue called `{name}-dead`. */
  async createQueue(queueName: string, partitions = 1): Promise<void> {
    const settings = { leaseTimeout: '1h', expireTimeout: '240h', requestedPartitions: partitions }
    await this.office.queues.create({ ...settings, queueName: `${queueName}-dead` })
    await this.office.queues.create({
      ...settings,
      queueName,
      deadQueue: `${queueName}-dead`,
      maxAttempts: 1,
    })
  }

  /** Items of a queue that die: their letters lie in its dead queue, captured in this order. */
  async dead(queueName: string, payloads: readonly string[]): Promise<void> {
    const items = payloads.map((payload) => ({ payload }))
    await this.office.queues.produce({ queueName, items, requestTimeout: '1m' })
    await this.work(queueName, () => false)
    this.clock.advance(1n)
  }

  /** A failure that a service reports: it goes back to `queue`, in order with the others of its instance. */
  async reported(queue: string, changes: Partial<FailureReport> = {}): Promise<string> {
    const report = reportOf(++this.#reports, this.clock.now(), { originalQueue: queue, ...changes })
    const { letter } = await this.office.letters.capture(report)
    this.clock.advance(1n)
    return letter.rowKey
  }

  /** Leases everything in a queue, and completes or kills each by its payload; gives the payloads in their order. */
  work(queueName: string, succeeds: (payload: string) => boolean = () => true): Promise<string[]> {
    return workOff(this.office.queues, queueName, succeeds)
  }

  /** A plan of all pending letters, unless something else is said. */
  plan(changes: Partial<PlanRequest> = {}): Promise<RedriveDetail> {
    return this.office.redrives.plan({
      selection: { by: 'filter', filter: {} },
      action: 'retry',
      queue: null,
      recipe: null,
      terms: PLAIN,
      reason: null,
      actor: 'nell',
      ...changes,
    })
  }

  /** A plan that is started, and gone on with until it waits for something. */
  async run(changes: Partial<PlanRequest> = {}): Promise<RedriveDetail> {
    const { id } = await this.plan(changes)
    await this.office.redrives.start(id, 'nell')
    await this.office.redrives.settle()
    return this.office.redrives.read(id)
  }
}
