import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Recount } from '../../../test/world/letter-recount.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { seededRandom } from '../../../test/world/random.ts'
import { retain } from '../../../test/world/retain.ts'
import { stores } from '../../../test/world/stores.ts'
import { type Instant, instant } from '../../core/clock.ts'
import { type Integer, sql } from '../../store/database.ts'
import { foldCounts } from '../../store/fold.ts'
import { verifyStore } from '../../verify/verify.ts'
import type { LetterStatus } from '../letter.ts'
import { forgetActivity, RANGES } from './activity.ts'
import { letterCounter } from './counts.ts'
import type { ActivityRange } from './shapes.ts'
import type { CountFilter } from './summary.ts'

const ACTS = 120
const MINUTE = 60_000_000n
const HOUR = 60n * MINUTE
const DAY = 24n * HOUR
const QUEUES = ['north', 'south'] as const
const ENGINES = ['hmac', 'tls'] as const
const ERRORS = ['connection refused', 'no such key', 'out of time'] as const
const ACTOR = 'tester'

const countRows = sql(
  'test.countActivity',
  `SELECT 0 AS grain, count(*) AS found FROM bartleby.letter_minutes UNION ALL SELECT 1, count(*) FROM bartleby.letter_hours`,
)

describe.each(stores)('activity on $name', (kind) => {
  let store: LetterStore
  let recount: Recount
  const random = seededRandom()
  const pick = <T>(list: readonly T[]): T => list[random.whole(0, list.length - 1)] as T // the list is not empty

  beforeAll(async () => {
    store = await LetterStore.open(kind)
    recount = new Recount(store)
    for (const queue of QUEUES) await store.createQueue(queue, 3)
  })
  afterAll(() => store?.close())

  const fold = async () => {
    if (store.db.dialect === 'sqlite') return
    const turn = { clock: store.clock, owner: 'tester' }
    await foldCounts(store.db, letterCounter, turn)
  }

  const capture = () =>
    store.captureMany(random.whole(1, 4), () => ({
      engine: pick(ENGINES),
      originalQueue: pick(QUEUES),
      errorMessage: pick(ERRORS),
      // However long ago it failed, it arrives now.
      lastFailureAt: instant(store.clock.now() - BigInt(random.whole(0, 20)) * DAY),
    }))

  /** Items are completed or die, those of letters among them. */
  const settle = async (queueName: string) => {
    await store.queues.produce({ queueName, items: [{ payload: 'x' }], requestTimeout: '1m' })
    const { partition, items } = await store.lease(queueName)
    const middle = random.whole(0, items.length)
    const [done, dead] = [items.slice(0, middle), items.slice(middle)]
    if (done.length > 0) await store.queues.complete({ queueName, partition, ids: done.map(({ id }) => id) })
    if (dead.length > 0)
      await store.queues.retry({ queueName, partition, items: dead.map(({ id }) => ({ id, dead: true })) })
  }

  const completeDead = async () => {
    const queueName = `${pick(QUEUES)}-dead`
    const lying = await store.queues.listItems({ queueName, partition: 0 })
    if (lying.length === 0) return
    const { partition, items } = await store.lease(queueName)
    const [first, ...others] = items.map(({ id }) => id)
    if (first !== undefined) await store.queues.complete({ queueName, partition, ids: [first] })
    const rejected = others.map((id) => ({ id, dead: true }))
    if (rejected.length > 0) await store.queues.retry({ queueName, partition, items: rejected })
  }

  const letterWith = async (status: LetterStatus) => {
    const { items } = await store.letters.list({ status }, { limit: 100 })
    return items.length === 0 ? null : pick(items)
  }
  const retry = async () => {
    const letter = await letterWith('Pending')
    if (letter !== null) await store.letters.retry(letter, { edit: null, notes: null, actor: ACTOR })
  }
  const change = async (from: LetterStatus, status: LetterStatus) => {
    const letter = await letterWith(from)
    if (letter !== null) await store.letters.change(letter, { status, notes: 'why not', actor: ACTOR })
  }
  const removeOld = async () => {
    await retain(store, { retentionDays: 2 })
  }

  async function act(): Promise<void> {
    const draw = random.whole(0, 99)
    if (draw < 15) await capture()
    else if (draw < 40) await retry()
    else if (draw < 65) await settle(pick(QUEUES))
    else if (draw < 72) await completeDead()
    else if (draw < 80) await change('Pending', 'Resolved')
    else if (draw < 86) await change('Pending', 'Expired')
    else if (draw < 92) await change('Resolved', 'Pending')
    else if (draw < 96) await store.letters.expireOlder({ olderThanDays: 15, engine: null, actor: ACTOR })
    else await removeOld()
    await recount.look(draw >= 86 && draw < 92)
  }

  async function compare(): Promise<void> {
    const { numbers } = store.letters
    const { items: groups } = await numbers.signatures()
    const filters: CountFilter[] = [
      {},
      { source: 'queues' },
      { engine: 'hmac' },
      { originalQueue: 'north' },
      { source: 'http', originalQueue: 'south' },
      ...groups.map(({ signature }) => ({ signature })),
      ...groups.map(({ signature }) => ({ signature, engine: 'tls' })),
      { originalQueue: 'elsewhere' },
    ]
    for (const range of Object.keys(RANGES) as ActivityRange[]) {
      for (const filter of filters) {
        const activity = await numbers.activity(range, filter)
        const told = `${range} ${JSON.stringify(filter)}, seed ${random.seed}`
        expect(activity.series, told).toEqual(recount.series(activity, filter))
      }
    }
    for (const { signature, trend } of groups) {
      const { series } = await numbers.activity('24h', { signature })
      expect(trend).toEqual(series.arrived)
      const { outcomes } = await numbers.signature(signature)
      for (const name of ['retried', 'confirmed', 'returned'] as const)
        expect(outcomes[name], `${name}, seed ${random.seed}`).toBe(recount.ever(name, signature))
      const { total } = await numbers.total({ signature, outcome: 'unconfirmed' })
      expect(outcomes.unconfirmed).toBe(total)
    }
    const unconfirmed = { total: recount.unconfirmed, exact: true }
    expect(await numbers.total({ outcome: 'unconfirmed' }), `seed ${random.seed}`).toEqual(unconfirmed)
    expect((await numbers.summary()).unconfirmed).toBe(recount.unconfirmed)
    expect((await numbers.overview()).unconfirmed).toBe(recount.unconfirmed)
    const { items } = await store.letters.list({ outcome: 'unconfirmed' }, { limit: 100 })
    expect(items).toHaveLength(Math.min(100, recount.unconfirmed))
  }

  it(`is what counting gives, throughout ${ACTS} acts at random`, async () => {
    for (let i = 1; i <= ACTS; i++) {
      store.clock.advance(
        random.chance(0.3) ? BigInt(random.whole(1, 3)) * HOUR : BigInt(random.whole(0, 300)) * 1_000_000n,
      )
      await act()
      if (random.chance(0.1)) await fold()
      if (i % 40 === 0) await compare()
    }
    const { clean, invariants } = await verifyStore(store.db, { clock: store.clock })
    expect(
      invariants.filter(({ broken }) => broken > 0),
      `seed ${random.seed}`,
    ).toEqual([])
    expect(clean).toBe(true)
  })

  it('by the minute is forgotten after a day, by the hour after a month, and never altogether', async () => {
    await fold()
    const rows = async () => {
      const found = await store.db.session('test', (session) =>
        session.rows<{ grain: Integer; found: Integer }>(countRows),
      )
      return Object.fromEntries(found.map(({ grain, found }) => [Number(grain), Number(found)]))
    }
    const before = await rows()
    const ever = async () => (await store.letters.numbers.officeGauges()).outcomes
    const told = await ever()
    const at = (us: bigint) => instant(store.clock.now() + us)
    const forget = (now: Instant, days: number, most: number) =>
      store.db.transaction('test', (tx) => forgetActivity(tx, now, days, most))
    expect(await forget(at(27n * HOUR), 2, 1)).toBe(true)
    while (await forget(at(27n * HOUR), 2, 500));
    expect(await rows()).toEqual({ 0: 0, 1: before[1] })
    while (await forget(at(32n * DAY), 90, 500));
    expect(await rows()).toEqual({ 0: 0, 1: before[1] })
    while (await forget(at(92n * DAY), 90, 500));
    expect(await rows()).toEqual({ 0: 0, 1: 0 })
    expect(await ever()).toEqual(told)
  })
})
