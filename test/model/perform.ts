/** Performs a random program on an office, with all clients at the same time, and writes down what they saw. */
import { later } from '../../src/core/clock.ts'
import type { Office } from '../../src/office.ts'
import type { QueueDepth, StoredItem } from '../../src/queues/queue.ts'
import type { Queues } from '../../src/queues/queues.ts'
import type { Step } from '../world/model.ts'
import { type Deed, type Ending, type History, Recorder } from './history.ts'
import type { Program } from './program.ts'

const usOf = (ms: number): bigint => BigInt(ms) * 1_000n

/** Runs `program` on a queue of its own. The clients are spread over `offices`, which share one frozen clock. */
export async function perform(offices: readonly Office[], name: string, program: Program): Promise<History> {
  const [first] = offices
  if (first === undefined) throw new Error('a program needs an office')
  const deadQueue = program.hasDeadQueue ? `${name}-dead` : ''
  const timeouts = { leaseTimeout: `${program.leaseMs}ms`, expireTimeout: `${program.expireMs}ms` }
  if (deadQueue !== '') {
    await first.queues.create({ queueName: deadQueue, ...timeouts, requestedPartitions: 1 })
  }
  await first.queues.create({
    queueName: name,
    ...timeouts,
    maxAttempts: program.maxAttempts,
    deadQueue,
    requestedPartitions: 1,
  })

  const recorder = new Recorder(() => first.clock.now())
  /** Every lease seen so far, by any client: whoever knows an id may act on it. */
  const seenIds: string[] = []
  await Promise.all([
    ...program.clients.map((steps, i) =>
      new Client(offices[i % offices.length] ?? first, name, `c${i}`, recorder, seenIds).run(steps),
    ),
    new Client(first, name, 'clock', recorder, seenIds).run(program.clock),
  ])
  for (const office of offices) await office.queues.settle()
  const ending = await endingOf(first, name, deadQueue)
  await first.queues.delete({ queueName: name })
  if (deadQueue !== '') await first.queues.delete({ queueName: deadQueue })
  return {
    rules: {
      leaseUs: usOf(program.leaseMs),
      expireUs: usOf(program.expireMs),
      maxAttempts: program.maxAttempts,
      hasDeadQueue: program.hasDeadQueue,
      servers: offices.length,
    },
    calls: recorder.calls,
    ending,
  }
}

/** One client, which takes its steps one after the other. */
export class Client {
  readonly #office: Office
  readonly #queues: Queues
  readonly #queueName: string
  readonly #name: string
  readonly #recorder: Recorder
  readonly #seenIds: string[]
  #produced = 0

  constructor(office: Office, queueName: string, name: string, recorder: Recorder, seenIds: string[]) {
    this.#office = office
    this.#queues = office.queues
    this.#queueName = queueName
    this.#name = name
    this.#recorder = recorder
    this.#seenIds = seenIds
  }

  async run(steps: readonly Step<Client>[]): Promise<void> {
    for (const step of steps) await step.perform(this)
  }

  rest(many: number): Promise<void> {
    return turns(many)
  }

  advance(ms: number): Promise<void> {
    return this.#office.advanceClock(usOf(ms))
  }

  async produce(delaysMs: readonly number[]): Promise<void> {
    const now = this.#office.clock.now()
    const items = delaysMs.map((delayMs) => ({
      payload: `${this.#name}/${this.#produced++}`,
      ...(delayMs === 0 ? {} : { enqueueAt: later(now, usOf(delayMs)) }),
    }))
    await this.#recorder.record(
      () => this.#queues.produce({ queueName: this.#queueName, items }),
      (receipt) => ({
        verb: 'produce',
        items: items.map((item, i) => {
          const outcome = receipt?.items[i]
          const scheduled = outcome?.outcome === 'scheduled' && 'enqueueAt' in item
          return {
            label: item.payload,
            id: outcome?.id ?? '',
            enqueueAt: scheduled ? (item.enqueueAt ?? null) : null,
          }
        }),
      }),
    )
  }

  /** Gives up after `patience` turns of the event loop. */
  async lease(batchSize: number, patience: number): Promise<void> {
    const gone = new AbortController()
    let answered = false
    const leasing = this.#recorder
      .record(
        () =>
          this.#queues.lease({ queueName: this.#queueName, clientId: this.#name, batchSize }, gone.signal),
        (batch) => ({ verb: 'lease', batchSize, items: batch?.items ?? [] }),
      )
      .finally(() => {
        answered = true
      })
    for (let turn = 0; turn < patience && !answered; turn++) await turns(1)
    gone.abort()
    const batch = await leasing
    for (const { id } of batch?.items ?? []) this.#seenIds.push(id)
  }

  complete(picks: readonly number[]): Promise<void> {
    return this.#about(
      picks,
      (ids) => this.#queues.complete({ queueName: this.#queueName, ids }),
      (ids) => ({ verb: 'complete', ids }),
    )
  }

  delete(picks: readonly number[]): Promise<void> {
    return this.#about(
      picks,
      (ids) => this.#queues.deleteItems({ queueName: this.#queueName, ids }),
      (ids) => ({ verb: 'delete', ids }),
    )
  }

  retry(picks: readonly number[], inMs: number | null, dead: boolean): Promise<void> {
    const retryAt = inMs === null ? null : later(this.#office.clock.now(), usOf(inMs))
    const item = retryAt === null ? { dead } : { dead, retryAt }
    return this.#about(
      picks,
      (ids) => this.#queues.retry({ queueName: this.#queueName, items: ids.map((id) => ({ id, ...item })) }),
      (ids) => ({ verb: 'retry', ids, retryAt, dead }),
    )
  }

  extend(picks: readonly number[], byMs: number): Promise<void> {
    return this.#about(
      picks,
      (ids) => this.#queues.extend({ queueName: this.#queueName, ids, leaseTimeout: `${byMs}ms` }),
      (ids, deadline) => ({ verb: 'extend', ids, deadline: deadline ?? null }),
    )
  }

  /** Acts on some of the latest leases; does nothing while there are none. */
  async #about<T>(
    picks: readonly number[],
    call: (ids: readonly string[]) => Promise<T>,
    deed: (ids: readonly string[], answer: T | undefined) => Deed,
  ): Promise<void> {
    const seen = picks.flatMap(
      (pick) => this.#seenIds.at(-1 - (pick % Math.max(1, this.#seenIds.length))) ?? [],
    )
    const ids = [...new Set(seen)]
    if (ids.length === 0) return
    await this.#recorder.record(
      () => call(ids),
      (answer) => deed(ids, answer),
    )
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

async function endingOf({ queues, clock }: Office, queueName: string, deadQueue: string): Promise<Ending> {
  const depths = await queues.depths()
  const depthOf = (name: string): QueueDepth | null =>
    depths.find((depth) => depth.queueName === name) ?? null
  const depth = depthOf(queueName)
  if (depth === null) throw new Error(`no depth for '${queueName}'`)
  const list = (name: string): Promise<readonly StoredItem[]> =>
    queues.listItems({ queueName: name, limit: 10_000 })
  return {
    now: clock.now(),
    queued: await list(queueName),
    scheduled: await queues.listScheduled({ queueName, limit: 10_000 }),
    dead: deadQueue === '' ? [] : await list(deadQueue),
    stats: await queues.stats(queueName),
    depth,
    deadDepth: deadQueue === '' ? null : depthOf(deadQueue),
  }
}
