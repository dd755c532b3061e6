/**
 * Engines in the demo: workers that fail at some messages, and their past, filed with the same queues and judgements on
 * a clock that is moved.
 */
import { pause } from '../../core/waiting.ts'
import { errorOf } from '../../demo/story/shop.ts'
import {
  type DemoOffice,
  type DemoPart,
  type DemoStory,
  leaseInPast,
  makeQueues,
  type PastGroup,
  type SourceDemo,
} from '../../demo/story/story.ts'
import type { FailedRun, LeasedItem, RetryItem, Run } from '../../queues/queue.ts'
import type { SectionOf } from '../source-module.ts'
import {
  billing,
  DEMO_SIGNATURES,
  ENGINE_ROLES,
  type EngineRole,
  type EngineWorld,
  oldInvoice,
  Periods,
  payments,
  provisioning,
} from './demo-roles.ts'
import type { Engine } from './engine.ts'
import type { EnginesFace } from './module.ts'
import type { EngineMessage } from './options.ts'
import type { EnginesSchema } from './settings.ts'

/** Longer than the filed past. Resolved letters go then, so that a demo does not grow for ever. */
const RETENTION_DAYS = 3

export const enginesDemo: SourceDemo<SectionOf<typeof EnginesSchema>, EnginesFace> = {
  signatures: DEMO_SIGNATURES,
  section: ({ tables }) => ({
    context: 'publisher',
    definitions: Object.fromEntries(
      [billing, payments].map(({ name, queue, operation }) => [name, { queue, operations: [operation] }]),
    ),
    tables: { ...tables, retentionDays: RETENTION_DAYS },
  }),
  async open(office, story) {
    // Engines make their queues only when they start, and the past comes first.
    const terms = { leaseTimeout: '1m', expireTimeout: '8760h' }
    await makeQueues(
      office,
      ENGINE_ROLES.map(({ queue }) => ({ queueName: queue, ...terms })),
    )
    return new EnginesPart(office, story)
  },
}

class EnginesPart implements DemoPart {
  readonly #office: DemoOffice & EnginesFace
  readonly #story: DemoStory
  readonly #world: EngineWorld

  constructor(office: DemoOffice & EnginesFace, story: DemoStory) {
    this.#office = office
    this.#story = story
    this.#world = { periods: new Periods(), isOut: (who) => story.isOut(who) }
  }

  readonly happens = [
    {
      weight: 45,
      act: async () => {
        const { chance } = this.#story
        const role = chance.pickBy(ENGINE_ROLES)
        await this.#produce(role, 1, chance.isOne(role.sickShare))
      },
    },
  ]

  readonly died = [
    {
      weight: 60,
      act: () => {
        const { chance } = this.#story
        const role = chance.pickBy(ENGINE_ROLES.filter(({ sickShare }) => sickShare > 0))
        return this.#die(role, chance.whole(1, 3))
      },
    },
  ]

  /** Unseen letters: some heal, some do not. */
  readonly lessons = [provisioning, billing].map((role) => () => this.#die(role, 2))

  readonly storm = {
    now: (count: number) => this.#produce(payments, count, true),
    past: (count: number) => this.#die(payments, count),
  }

  async rarity(): Promise<void> {
    const items = [{ payload: oldInvoice(this.#story) }]
    await this.#office.queues.produce({ queueName: billing.queue, items })
  }

  async wentWell(): Promise<void> {
    const { chance } = this.#story
    const role = chance.pickBy(ENGINE_ROLES)
    const count = chance.whole(3, 9)
    await this.#produce(role, count, false)
    await this.#complete(role, await leaseInPast(this.#office, role.queue, count))
  }

  async start(): Promise<void> {
    this.#world.periods.begin(this.#story.now)
    await Promise.all(ENGINE_ROLES.map((role) => this.#workerOf(role).start()))
  }

  #workerOf({ name, operation, maxAttempts, runMs, judge }: EngineRole): Engine {
    const { clock } = this.#office
    return this.#office.engine({
      name,
      operation,
      maxAttempts,
      backoff: { base: '2s', factor: 2, max: '10s', jitter: 0.3 },
      concurrency: 16,
      timeout: '30s',
      instanceId: instanceOf,
      handler: async (message, { attempt, signal }) => {
        await pause(clock, BigInt(this.#story.chance.whole(1, runMs)) * 1_000n, signal)
        const trouble = judge(message, this.#world)
        if (name === billing.name)
          this.#remember(String(message.invoice), trouble !== null, attempt === maxAttempts)
        if (trouble !== null) throw errorOf(trouble)
        return { ok: true, by: `${name}-worker`, attempt }
      },
    })
  }

  #remember(invoice: string, hasFailed: boolean, isLast: boolean): void {
    const { periods } = this.#world
    if (!hasFailed) periods.posted(invoice)
    else if (isLast) periods.died(invoice)
  }

  /** Messages that failed until they became letters, some at the first attempt. */
  async #die(role: EngineRole, count: number): Promise<PastGroup> {
    const maxAttempts = this.#story.chance.isOne(0.4) ? role.maxAttempts : 1
    await this.#produce(role, count, true)
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      await this.#fail(role, await leaseInPast(this.#office, role.queue, count), attempt === maxAttempts)
      if (attempt < maxAttempts) this.#story.passTime(1_000_000n)
    }
    const { items: letters } = await this.#office.letters.list({ engine: role.name }, { limit: count })
    return { letters, workOn: () => this.#takeBack(role, count) }
  }

  /** Retried messages succeed where that helps, else fail for good. */
  async #takeBack(role: EngineRole, count: number): Promise<void> {
    const items = await leaseInPast(this.#office, role.queue, count)
    if (role.heals) await this.#complete(role, items)
    else await this.#fail(role, items, true)
  }

  async #produce({ queue: queueName, message }: EngineRole, count: number, isSick: boolean): Promise<void> {
    const items = Array.from({ length: count }, () => ({ payload: message(this.#story, isSick) }))
    await this.#office.queues.produce({ queueName, items })
  }

  async #complete(role: EngineRole, items: readonly LeasedItem[]): Promise<void> {
    const runs = new Map(items.map((item) => [item.id, this.#run(role, item)]))
    const ids = items.map(({ id }) => id)
    await this.#office.queues.complete({ queueName: role.queue, partition: 0, ids, runs })
  }

  async #fail(role: EngineRole, items: readonly LeasedItem[], dead: boolean): Promise<void> {
    const failed = items.map((item): RetryItem => {
      const trouble = role.judge(messageIn(item), this.#world)
      if (trouble === null) throw new Error(`nothing is wrong with a message of ${role.name}`)
      const run: FailedRun = { ...this.#run(role, item), output: null, ...trouble }
      return { id: item.id, dead, run }
    })
    await this.#office.queues.retry({ queueName: role.queue, partition: 0, items: failed })
  }

  #run({ name, operation, runMs }: EngineRole, item: LeasedItem): Run {
    const { chance } = this.#story
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
}

/** The shop's instance, or else the customer. */
function instanceOf({ instanceId, customer }: EngineMessage): unknown {
  if (instanceId !== undefined) return instanceId
  return typeof customer === 'object' && customer !== null && 'email' in customer ? customer.email : customer
}

/** Roles make JSON. */
const messageIn = ({ payload }: LeasedItem): EngineMessage =>
  JSON.parse(Buffer.from(payload).toString()) as EngineMessage
