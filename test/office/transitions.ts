/** A writer that moves letters between all their states at random, alone or in batches, and counts what it moved. */
import { expect } from 'vitest'
import type { Clerk } from '../world/clerk.ts'
import type { Key, Listed } from '../world/office-api.ts'
import type { Random } from '../world/random.ts'
import type { Answer } from '../world/wire.ts'

/** Queues that all writers share, so that they meet. */
export const QUEUES = ['north', 'south', 'west'] as const
const ENGINES = ['hmac', 'tls', 'http'] as const
const ERRORS = ['connection refused', 'certificate lapsed', 'no such key', 'out of time'] as const
const BATCH = 100
/** Letters that a writer keeps in mind; older ones are left to the others. */
const REMEMBERED = 200

export class Mover {
  readonly #clerk: Clerk
  readonly #random: Random
  readonly #letters: Key[] = []
  /** Transitions that were acknowledged. */
  moved = 0
  #made = 0

  constructor(clerk: Clerk, random: Random) {
    this.#clerk = clerk
    this.#random = random
  }

  /** One act; most are a single transition, some are a hundred at once. */
  async turn(): Promise<void> {
    const letter = this.#letters[this.#random.whole(0, this.#letters.length)]
    const draw = this.#random.whole(0, 99)
    if (letter === undefined || draw < 12) return this.#capture()
    if (draw < 18) return this.#die()
    if (draw < 34) return this.#settle()
    if (draw < 40) return this.#completeDead()
    if (draw < 43) return this.#look()
    if (draw < 46) return this.#expireOld()
    if (draw < 68) return this.#count(await this.#clerk.retry(letter))
    if (draw < 78) return this.#count(await this.#clerk.change(letter, 'Resolved'))
    if (draw < 86) return this.#count(await this.#clerk.change(letter, 'Expired'))
    return this.#count(await this.#clerk.change(letter, 'Pending'))
  }

  #count(done: boolean): void {
    if (done) this.moved++
  }

  #remember(key: Key): void {
    if (this.#letters.push(key) > REMEMBERED) this.#letters.shift()
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.whole(0, list.length - 1)] ?? expect.fail('the list is not empty')
  }

  async #capture(): Promise<void> {
    // Some are old enough for a bulk expiry, none for retention.
    const old = this.#random.chance(0.3) ? { lastFailureAtUtc: daysAgo(60) } : {}
    const body = {
      engine: this.#pick(ENGINES),
      originalQueue: this.#pick(QUEUES),
      originalMessage: 'x',
      errorMessage: `${this.#pick(ERRORS)} after ${this.#random.whole(1, 9999)} ms`,
      sourceId: `${this.#clerk.name} ${this.#made++}`,
      ...old,
    }
    const { data } = await this.#clerk.expects([201], 'POST', '/api/dlq', { body })
    this.#remember(data as Listed) // the reply of a capture
    this.moved++
  }

  /** A batch of items dies in one call. */
  async #die(): Promise<void> {
    const queue = this.#pick(QUEUES)
    const size = this.#random.whole(1, BATCH)
    await this.#clerk.produce(
      queue,
      Array.from({ length: size }, (_, n) => `${this.#clerk.name} ${n}`),
    )
    const { items } = await this.#clerk.lease(queue, size)
    const ids = items.map(({ id }) => id)
    if (ids.length > 0) this.#batch(await this.#clerk.bury(queue, ids), ids.length)
  }

  /** Items on their way come to an end: completed, or dead again. */
  async #settle(): Promise<void> {
    const queue = this.#pick(QUEUES)
    const ids = (await this.#clerk.lease(queue, BATCH)).items.map(({ id }) => id)
    const middle = this.#random.whole(0, ids.length)
    const [done, dead] = [ids.slice(0, middle), ids.slice(middle)]
    if (done.length > 0) this.#batch(await this.#clerk.complete(queue, done), done.length)
    if (dead.length > 0) this.#batch(await this.#clerk.bury(queue, dead), dead.length)
  }

  /** A consumer of a dead queue takes letters and is done with them. */
  async #completeDead(): Promise<void> {
    const queue = `${this.#pick(QUEUES)}-dead`
    const ids = (await this.#clerk.lease(queue, this.#random.whole(1, BATCH))).items.map(({ id }) => id)
    if (ids.length > 0) this.#batch(await this.#clerk.complete(queue, ids), ids.length)
  }

  /** Finds letters of others to act on. */
  async #look(): Promise<void> {
    const { items } = await this.#clerk.page({
      originalQueue: this.#pick(QUEUES),
      status: this.#pick(['Pending', 'Resolved', 'Expired'] as const),
      limit: 20,
    })
    for (const letter of items) this.#remember(letter)
  }

  async #expireOld(): Promise<void> {
    const body = { olderThanDays: 30, engine: this.#pick(ENGINES) }
    const { data } = await this.#clerk.expects([200], 'POST', '/api/dlq/expire', { body })
    this.moved += (data as { expired: number }).expired // the reply of an expiry
  }

  /** The lease may be over by now on a slow machine: then all of the batch is refused. */
  #batch({ status, body }: Answer, size: number): void {
    if (status === 200) this.moved += size
    else expect(String(body.message)).toMatch(/does not exist|is not marked as leased/)
  }
}

const daysAgo = (days: number): string =>
  new Date(performance.timeOrigin + performance.now() - days * 86_400_000).toISOString()
