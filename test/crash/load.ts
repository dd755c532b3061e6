/**
 * Clients that keep a server busy and keep the books: producers, consumers that complete, retry, bury and
 * forget, and a consumer of the dead queue. They end when they are told to, or when their server is gone.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { isLoss, leasedIn, ok } from '../world/clerk.ts'
import type { Path } from '../world/messages.ts'
import type { Random } from '../world/random.ts'
import { type Json, jsonCodec, type Wire } from '../world/wire.ts'
import type { Books, Outcome } from './books.ts'

export const QUEUE = 'work'
export const DEAD_QUEUE = 'dead'
export const MAX_ATTEMPTS = 4
export const PARTITIONS = 2

/** Short, so that what killed clients held comes back within a round. */
const LEASE_TIMEOUT = '300ms'

/** What a server that is neither overloaded nor failing may answer to these clients. */
const FINE = [
  /^request timeout; no items are in the queue/,
  /^invalid storage id; '\w+' does not exist/,
  /is not marked as leased/,
]

/** What it may answer while its store is away or while it stops, besides. */
export const TROUBLED = [/^internal error, try your request again/, /^Internal Error/, /is shutting down$/]

export interface LoadOptions {
  readonly books: Books
  readonly random: Random
  /** Unique among all loads of a test. */
  readonly name: string
  /** Messages of refusals that are expected beyond the ordinary. */
  readonly expected?: readonly RegExp[]
}

/** Creates the queue under load and its dead queue. */
export async function createQueues(wire: Wire): Promise<void> {
  const common = { lease_timeout: LEASE_TIMEOUT, expire_timeout: '1h' }
  await ok(wire, '/v1/queues.create', { ...common, queue_name: DEAD_QUEUE, requested_partitions: 1 })
  await ok(wire, '/v1/queues.create', {
    ...common,
    queue_name: QUEUE,
    dead_queue: DEAD_QUEUE,
    max_attempts: MAX_ATTEMPTS,
    requested_partitions: PARTITIONS,
  })
}

export class Load {
  readonly #wire: Wire
  readonly #options: LoadOptions
  readonly #tasks: Promise<void>[]
  #stopping = false
  #produced = 0
  #troubles = 0
  #successes = 0
  #clients = 0

  constructor(wire: Wire, options: LoadOptions) {
    this.#wire = wire
    this.#options = options
    const { name } = options
    this.#tasks = [
      this.#repeat(() => this.#produce()),
      this.#repeat(() => this.#produce()),
      this.#repeat(() => this.#consume(`${name}-a`)),
      this.#repeat(() => this.#consume(`${name}-b`)),
      this.#repeat(() => this.#consume(`${name}-c`)),
      this.#repeat(() => this.#consumeDead(`${name}-d`)),
    ]
    // A failure is told by `stop`; until then nobody listens.
    for (const task of this.#tasks) task.catch(() => {})
  }

  /** Refusals that were expected only because of some trouble. */
  get troubles(): number {
    return this.#troubles
  }

  /** Resolves when so many more calls have succeeded, however busy the machine is. */
  async underway(calls: number): Promise<void> {
    const enough = this.#successes + calls
    while (this.#successes < enough && this.#clients > 0) await pause(5)
  }

  /** Ends the clients after their present call; rejects when one of them saw something unexpected. */
  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all(this.#tasks)
  }

  async #repeat(turn: () => Promise<'gone' | undefined>): Promise<void> {
    this.#clients++
    try {
      while (!this.#stopping && (await turn()) !== 'gone') {
        // Room to breathe for the servers, which share the processors with these clients.
        await pause(this.#options.random.whole(1, 6))
      }
    } finally {
      this.#clients--
    }
  }

  async #produce(): Promise<'gone' | undefined> {
    const { books, random, name } = this.#options
    const items = Array.from({ length: random.whole(1, 8) }, () => ({
      utf8: `${name}-${this.#produced++}`,
      ...(random.chance(0.1) ? { enqueue_at: soon(random.whole(120, 400)) } : {}),
    }))
    const account = books.producing(items.map(({ utf8 }) => utf8))
    const { outcome, gone } = await this.#call('/v1/queue.produce', {
      queue_name: QUEUE,
      request_timeout: '1m',
      items,
    })
    account.done(outcome)
    return gone
  }

  async #consume(clientId: string): Promise<'gone' | undefined> {
    const { books, random } = this.#options
    const leased = await this.#lease(QUEUE, clientId, random.whole(1, 40))
    for (const item of leased.items) books.delivered(item.payload, item)
    if (leased.gone || leased.items.length === 0) return leased.gone
    const address = { queue_name: QUEUE, partition: leased.partition }
    const done = leased.items.filter(() => random.chance(0.7))
    const rest = leased.items.filter((item) => !done.includes(item))
    // What is neither completed nor retried is forgotten: its lease runs out.
    const retried = rest.filter(() => random.chance(0.6))
    if (done.length > 0) {
      const ids = done.map(({ id }) => id)
      const { outcome, gone } = await this.#call('/v1/queue.complete', {
        ...address,
        request_timeout: '1m',
        ids,
      })
      for (const item of done) books.completed(item.payload, item, outcome)
      if (gone) return gone
    }
    if (retried.length === 0) return undefined
    const items = retried.map(({ id }) => ({
      id,
      ...(random.chance(0.3)
        ? { dead: true }
        : random.chance(0.3)
          ? { retry_at: soon(random.whole(120, 400)) }
          : {}),
    }))
    const { outcome, gone } = await this.#call('/v1/queue.retry', { ...address, items })
    for (const [i, item] of retried.entries()) {
      const dead = items[i] !== undefined && 'dead' in items[i]
      if (outcome === 'applied' && dead) books.buried(item.payload, item)
    }
    return gone
  }

  async #consumeDead(clientId: string): Promise<'gone' | undefined> {
    const { books, random } = this.#options
    const leased = await this.#lease(DEAD_QUEUE, clientId, 3)
    for (const item of leased.items) books.letterDelivered(item.payload, item)
    if (leased.gone || leased.items.length === 0 || random.chance(0.5)) return leased.gone
    const { outcome, gone } = await this.#call('/v1/queue.complete', {
      queue_name: DEAD_QUEUE,
      request_timeout: '1m',
      ids: leased.items.map(({ id }) => id),
    })
    for (const item of leased.items) books.letterCompleted(item.payload, outcome)
    return gone
  }

  async #lease(queue: string, clientId: string, batchSize: number) {
    const request = {
      queue_name: queue,
      client_id: clientId,
      batch_size: batchSize,
      request_timeout: '100ms',
    }
    const { body, gone } = await this.#call('/v1/queue.lease', request)
    return { gone, ...leasedIn(body) }
  }

  async #call(path: Path, request: Json): Promise<{ outcome: Outcome; body?: Json; gone?: 'gone' }> {
    let answer: Awaited<ReturnType<Wire['call']>>
    try {
      answer = await this.#wire.call(jsonCodec, path, request)
    } catch (error) {
      if (isLoss(error)) return { outcome: 'unknown', gone: 'gone' }
      throw error
    }
    if (answer.status === 200) {
      this.#successes++
      return { outcome: 'applied', body: answer.body }
    }
    const message = String(answer.body.message)
    if (FINE.some((pattern) => pattern.test(message))) return { outcome: 'refused' }
    this.#troubles++
    const expected = this.#options.expected ?? []
    if (!expected.some((pattern) => pattern.test(message))) {
      expect.fail(`${path} was answered ${answer.status} '${message}'`)
    }
    // A commit whose confirmation was lost is answered with an error and may have happened.
    return { outcome: message.includes('shutting down') ? 'refused' : 'unknown' }
  }
}

const soon = (inMs: number): string =>
  new Date(performance.timeOrigin + performance.now() + inMs).toISOString()
