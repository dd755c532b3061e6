/**
 * Everybody at once, on the same few letters: operators who retry, discard, expire and restore, consumers of the dead
 * queue, workers who complete, fail or lose what was sent back, leases that end, bulk expiry, retention. Two servers on
 * PostgreSQL. At the end every promise of the store holds.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { BartlebyError } from '../../src/core/errors.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import type { LetterSummary } from '../../src/letters/letter.ts'
import { Office } from '../../src/office.ts'
import type { FailedRun, LeasedBatch } from '../../src/queues/queue.ts'
import { openDatabase } from '../../src/store/open.ts'
import { verifyStore } from '../../src/verify/verify.ts'
import { type Random, seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'

const WORKERS = 8
const STEPS = 60
/** Few, so that everybody meets on them. */
const ITEMS = 24

const MINUTE_US = 60_000_000n
const DAY_US = 86_400_000_000n

const failedRun = (random: Random): FailedRun => ({
  engine: 'hmac',
  operation: 'rotate',
  instanceId: `instance-${random.whole(1, 3)}`,
  correlationId: `correlation-${random.whole(1, 3)}`,
  actor: 'worker',
  durationMs: 1,
  input: null,
  output: null,
  errorClass: 'Error',
  errorMessage: ['no key', 'no network', 'no time'][random.whole(0, 2)] ?? '',
  errorStack: null,
})

/** Refusals that are part of the game: somebody else was faster. */
const LOST = [
  'letter_status_wrong',
  'letter_leased',
  'letter_in_flight',
  'letter_unknown',
  'item_unknown',
  'complete_not_leased',
  'retry_not_leased',
  'extend_not_leased',
  'lease_timed_out',
]

/** One of those who act, at one of the servers. */
class Actor {
  readonly #office: Office
  readonly #clock: TestClock
  readonly #random: Random
  readonly #name: string

  constructor(office: Office, clock: TestClock, random: Random, name: string) {
    this.#office = office
    this.#clock = clock
    this.#random = random
    this.#name = name
  }

  async step(): Promise<void> {
    const draw = this.#random.whole(0, 99)
    if (draw < 50) return this.#operate()
    if (draw < 70) return this.#consume('jobs-dead')
    if (draw < 92) return this.#consume('jobs')
    if (draw < 96) return this.#passTime()
    if (draw < 98) return this.#expireOld()
    return this.#produce()
  }

  async #operate(): Promise<void> {
    const { letters } = this.#office
    const page = await letters.list({}, { limit: 10 })
    const letter = this.#pick<LetterSummary>(page.items)
    if (letter === undefined) return this.#produce()
    const actor = this.#name
    const act = this.#random.whole(0, 9)
    if (act < 5) await letters.retry(letter, { edit: null, notes: null, actor })
    else if (act < 8) await letters.change(letter, { status: 'Pending', notes: null, actor })
    else if (act < 9) await letters.change(letter, { status: 'Resolved', notes: 'enough', actor })
    else await letters.change(letter, { status: 'Expired', notes: null, actor })
  }

  async #consume(queueName: string): Promise<void> {
    const { queues } = this.#office
    const lease = { queueName, clientId: this.#name, batchSize: this.#random.whole(1, 6) }
    const leased: LeasedBatch = await queues.lease({ ...lease, requestTimeout: '20ms' })
    const { partition } = leased
    const ids = leased.items.map(({ id }) => id)
    const place = { queueName, partition }
    const dead = queueName.endsWith('-dead')
    const run = this.#random.chance(0.5) ? failedRun(this.#random) : undefined
    const failed = run === undefined ? {} : { run }
    switch (this.#random.whole(0, 6)) {
      case 0:
        return // Its lease ends by itself.
      case 1:
      case 2:
        return queues.complete({ ...place, ids })
      case 3:
        return queues.retry({ ...place, items: ids.map((id) => ({ id, dead: !dead, ...failed })) })
      case 4:
        return queues.retry({ ...place, items: ids.map((id) => ({ id, dead: true, ...failed })) })
      case 5: {
        const retryAt = instant(this.#clock.now() + 30_000n)
        return queues.retry({ ...place, items: ids.map((id) => ({ id, retryAt, ...failed })) })
      }
      default:
        await queues.extend({ ...place, ids, leaseTimeout: '2m' })
        return this.#random.chance(0.3)
          ? queues.deleteItems({ ...place, ids })
          : queues.retry({ ...place, items: ids.map((id) => ({ id, ...failed })) })
    }
  }

  async #produce(): Promise<void> {
    const items = Array.from({ length: 4 }, (_, n) => ({ payload: `${this.#name} ${n}` }))
    await this.#office.queues.produce({ queueName: 'jobs', items })
  }

  /** Leases end; sometimes letters come of age, for expiry and for retention. */
  async #passTime(): Promise<void> {
    this.#clock.advance(this.#random.chance(0.2) ? DAY_US : 3n * MINUTE_US)
  }

  async #expireOld(): Promise<void> {
    await this.#office.letters.expireOlder({ olderThanDays: 1, engine: null, actor: this.#name })
  }

  #pick<T>(list: readonly T[]): T | undefined {
    return list[this.#random.whole(0, list.length - 1)]
  }
}

describe.each(stores)('acts of everybody at once on $name', (store) => {
  it('leave every letter in one state, counted and recorded once', async () => {
    const random = seededRandom()
    const place = await store.fresh()
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    const offices: Office[] = []
    // The time goes on, so that leases which find nothing end.
    const ticking = setInterval(() => clock.advance(5_000n), 5)
    const db = openDatabase(place.url, { poolSize: 2 })
    try {
      const servers = store.name === 'postgres' ? 2 : 1
      for (let n = 0; n < servers; n++) {
        const engines = { tables: { retentionDays: 3 } }
        offices.push(await Office.open({ store: place.url, clock, engines }))
      }
      const [office = expect.fail('there is no server')] = offices
      const settings = { leaseTimeout: '1m', expireTimeout: '2400h', requestedPartitions: 2 }
      await office.queues.create({ ...settings, queueName: 'jobs-dead' })
      await office.queues.create({ ...settings, queueName: 'jobs', deadQueue: 'jobs-dead', maxAttempts: 3 })
      await office.queues.produce({
        queueName: 'jobs',
        items: Array.from({ length: ITEMS }, (_, n) => ({ payload: `item ${n}` })),
      })

      const broken: unknown[] = []
      await Promise.all(
        Array.from({ length: WORKERS }, async (_, n) => {
          const actor = new Actor(offices[n % servers] ?? office, clock, random, `actor-${n}`)
          for (let step = 0; step < STEPS && broken.length === 0; step++) {
            try {
              await actor.step()
            } catch (error) {
              if (!(error instanceof BartlebyError && LOST.includes(error.code))) broken.push(error)
            }
            if (step % 10 === 0) await pause(1)
          }
        }),
      )
      expect(broken, `BARTLEBY_TEST_SEED=${random.seed}`).toEqual([])
      await Promise.all(offices.splice(0).map((each) => each.close()))

      const { invariants } = await verifyStore(db, { clock })
      const violations = invariants.flatMap((each) => each.violations)
      expect(violations, `BARTLEBY_TEST_SEED=${random.seed}`).toEqual([])
    } finally {
      clearInterval(ticking)
      await Promise.all(offices.map((each) => each.close()))
      await db.close()
      await place.dispose()
    }
  })
})
