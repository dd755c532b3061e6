/**
 * Work as it was done in the past, on a clock that is moved: messages that succeeded, messages that died, and what became of those
 * that were sent back. The same queues, judgements and words as in the present, without its waiting.
 */
import { setTimeout as rest } from 'node:timers/promises'
import { later } from '../core/clock.ts'
import type { SourceName } from '../letters/kinds.ts'
import type { LetterSummary } from '../letters/letter.ts'
import type { Office } from '../office.ts'
import type { FailedRun, LeasedItem, RetryItem, Run } from '../queues/queue.ts'
import type { EngineMessage } from '../sources/engines/options.ts'
import type { Chance } from './chance.ts'
import type { CatchUpClock } from './clock.ts'
import { type EngineRole, instanceOf } from './engine-roles.ts'
import type { Partners } from './partners.ts'
import { label, type Occasion, order } from './payloads.ts'
import { CLOSED_WAREHOUSE, fateOfOrder, SLOW_WAREHOUSE } from './plain-queues.ts'
import { reportFailure } from './reports.ts'
import type { World } from './world.ts'

export interface PastParts {
  readonly office: Office
  readonly clock: CatchUpClock
  readonly world: World
  readonly chance: Chance
  readonly partners: Partners
}

/** Letters that died together, and how to do the work that a retry of them brings. */
export interface PastGroup {
  readonly letters: readonly LetterSummary[]
  /** null: there is no way back. */
  readonly workOn: (() => Promise<void>) | null
}

const SECOND_US = 1_000_000n
/** Deliveries go over a real connection: the clock is moved in steps that wait for them. */
const STEP_US = 4n * SECOND_US
const STEP_MS = 3
const MOST_STEPS = 500
const LONGEST_LEASE_MS = 30_000

export class PastWork {
  readonly #parts: PastParts

  constructor(parts: PastParts) {
    this.#parts = parts
  }

  /** Messages that an engine had no trouble with. */
  async succeed(role: EngineRole, count: number): Promise<void> {
    await this.#produce(role, role.well, count)
    await this.#complete(role, await this.#lease(role.queue, count))
  }

  /** Messages that an engine failed at until they became letters; some of them at once, as if it had no hope for them. */
  async dieInEngine(role: EngineRole, count: number): Promise<PastGroup> {
    const { chance, clock, office } = this.#parts
    const maxAttempts = chance.isOne(0.4) ? role.maxAttempts : 1
    await this.#produce(role, role.sick, count)
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      await this.#fail(role, await this.#lease(role.queue, count), attempt === maxAttempts)
      if (attempt < maxAttempts) clock.moveTo(later(clock.now(), SECOND_US))
    }
    const { items: letters } = await office.letters.list({ engine: role.name }, { limit: count })
    return { letters, workOn: () => this.#takeBack(role, count) }
  }

  /** An order that a plain consumer rejected, or failed at until its attempts were used up. */
  async dieInOrders(): Promise<PastGroup> {
    const { chance, office } = this.#parts
    const queueName = 'orders'
    const payload = order(this.#occasion(), chance.isOne(0.4) ? CLOSED_WAREHOUSE : SLOW_WAREHOUSE)
    await office.queues.produce({
      queueName,
      items: [{ payload, kind: 'order', encoding: 'application/json' }],
    })
    for (let isAlive = true; isAlive; ) isAlive = await this.#consumeOrder()
    const { items: letters } = await office.letters.list(
      { engine: 'queues', originalQueue: queueName },
      { limit: 1 },
    )
    return { letters, workOn: async () => void (await this.#consumeOrder()) }
  }

  /** A label that nobody will print: it dies by itself when its time is over. */
  async leaveLabel(): Promise<void> {
    const item = { payload: label(this.#occasion()), kind: 'label', encoding: 'application/pdf' }
    await this.#parts.office.queues.produce({ queueName: 'labels', items: [item] })
  }

  /** A failure that another system reported. */
  async report(): Promise<PastGroup> {
    const { office } = this.#parts
    const letter = await reportFailure(office, this.#occasion())
    const { originalQueue } = letter
    if (originalQueue === null) return { letters: [letter], workOn: null }
    const workOn = async () => {
      const ids = (await this.#lease(originalQueue, 1)).map(({ id }) => id)
      await office.queues.complete({ queueName: originalQueue, partition: 0, ids })
    }
    return { letters: [letter], workOn }
  }

  /** Messages to a partner that was out of order. */
  async dieAtPartner(source: 'outbox' | 'webhooks', count: number): Promise<PastGroup> {
    const { office, partners, world } = this.#parts
    const before = await this.#captured(source)
    const setDown = (isDown: boolean): void => {
      if (source === 'outbox') world.erpIsDown = isDown
      else world.warehouseIsDown = isDown
    }
    setDown(true)
    for (let sent = 0; sent < count; sent++) {
      if (source === 'outbox') await partners.tellErp(this.#occasion(), 'order.paid')
      else await partners.tellAll(this.#occasion(), 'parcel.ready')
    }
    await this.#until(async () => (await this.#captured(source)) >= before + count)
    setDown(false)
    const { items: letters } = await office.letters.list({ source, status: 'Pending' }, { limit: count })
    // Of all that were sent back in the past, only these may still be on their way.
    const isConfirmed = async () => (await office.letters.ledger.standing()).unconfirmed === 0
    return { letters, workOn: () => this.#until(isConfirmed) }
  }

  #occasion(): Occasion {
    const { chance, clock } = this.#parts
    return { chance, now: clock.now() }
  }

  async #lease(queueName: string, batchSize: number): Promise<readonly LeasedItem[]> {
    const request = { queueName, clientId: 'demo-past', batchSize }
    // There is something to lease; were there nothing, time that stands still would never end the wait.
    const { items } = await this.#parts.office.queues.lease(request, AbortSignal.timeout(LONGEST_LEASE_MS))
    return items
  }

  async #consumeOrder(): Promise<boolean> {
    const { queues } = this.#parts.office
    const place = { queueName: 'orders', partition: 0 }
    const [item] = await this.#lease('orders', 1)
    if (item === undefined) return false
    const { id, attempts } = item
    const fate = fateOfOrder(item)
    if (fate === 'complete') await queues.complete({ ...place, ids: [id] })
    else await queues.retry({ ...place, items: [{ id, dead: fate === 'reject' }] })
    return fate === 'retry' && attempts < 3
  }

  /** The messages of retries: they succeed where sending them back helps, and else fail once more for good. */
  async #takeBack(role: EngineRole, count: number): Promise<void> {
    const items = await this.#lease(role.queue, count)
    if (role.heals) await this.#complete(role, items)
    else await this.#fail(role, items, true)
  }

  async #produce({ queue: queueName }: EngineRole, make: EngineRole['well'], count: number): Promise<void> {
    const items = Array.from({ length: count }, () => ({ payload: make(this.#occasion()) }))
    await this.#parts.office.queues.produce({ queueName, items })
  }

  async #complete(role: EngineRole, items: readonly LeasedItem[]): Promise<void> {
    const runs = new Map(items.map((item) => [item.id, this.#run(role, item)]))
    const ids = items.map(({ id }) => id)
    await this.#parts.office.queues.complete({ queueName: role.queue, partition: 0, ids, runs })
  }

  async #fail(role: EngineRole, items: readonly LeasedItem[], dead: boolean): Promise<void> {
    const { world, office } = this.#parts
    const failed = items.map((item): RetryItem => {
      const trouble = role.judge(messageIn(item), world)
      if (trouble === null) throw new Error(`nothing is wrong with a message of ${role.name}`)
      const run: FailedRun = { ...this.#run(role, item), output: null, ...trouble }
      return { id: item.id, dead, run }
    })
    await office.queues.retry({ queueName: role.queue, partition: 0, items: failed })
  }

  #run({ name, operation, runMs }: EngineRole, item: LeasedItem): Run {
    const { chance } = this.#parts
    const message = messageIn(item)
    return {
      engine: name,
      operation,
      instanceId: String(instanceOf(message)),
      correlationId: String(message.correlationId),
      actor: `${name}@worker-${chance.whole(1, 3)}`,
      durationMs: chance.whole(1, runMs),
      input: item.payload,
      output: Buffer.from('{"ok":true}'),
    }
  }

  async #captured(source: SourceName): Promise<number> {
    const { totals } = await this.#parts.office.letters.ledger.counts({ source }, ['source'])
    return totals.Pending + totals.Resolved + totals.Expired
  }

  /** Moves the clock until it is so. What does not come about stays as it is: it is a demo's past. */
  async #until(isSo: () => Promise<boolean>): Promise<void> {
    const { clock, office } = this.#parts
    const { courier } = office.webhooks
    for (let steps = 0; steps < MOST_STEPS && !(await isSo()); steps++) {
      // Time that ran on while a connection is at work would be taken for its time-out.
      if (courier.held === 0) clock.moveTo(later(clock.now(), STEP_US))
      await rest(STEP_MS)
    }
  }
}

/** Everything that roles make for the past is JSON. */
const messageIn = ({ payload }: LeasedItem): EngineMessage =>
  JSON.parse(Buffer.from(payload).toString()) as EngineMessage
