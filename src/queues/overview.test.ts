import { createHash } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterStore } from '../../test/world/letter-store.ts'
import { stores } from '../../test/world/stores.ts'
import { later } from '../core/clock.ts'
import { gate } from '../http/gate.ts'
import type { Session } from '../store/database.ts'
import { readOverview } from './overview.ts'
import { queueOverviewRoutes } from './overview-routes.ts'
import { checkListQueues } from './validate.ts'

const SECOND = 1_000_000n
const TOKENS = [
  { name: 'look', role: 'viewer', sha256: createHash('sha256').update('look').digest('hex') },
] as const

describe.each(stores)('the overview of queues on $name', (store) => {
  let place: LetterStore
  let app: FastifyInstance

  beforeAll(async () => {
    place = await LetterStore.open(store)
    const { clock, queues, letters } = place
    app = Fastify({ exposeHeadRoutes: false })
    app.addHook('onRequest', gate(TOKENS, clock))
    await app.register(queueOverviewRoutes, {
      queues,
      numbers: letters.numbers,
      clock,
      stopping: () => false,
    })
    await place.createQueue('orders', 3)
    const wide = { queueName: 'wide', leaseTimeout: '90s', expireTimeout: '24h', requestedPartitions: 3 }
    await queues.create(wide)
    // Two letters in the dead queue of orders, then an item of its own; of the rest one is leased and one waits for its time.
    await queues.produce({ queueName: 'orders', items: [{ payload: 'a' }, { payload: 'b' }] })
    const dying = (await place.lease('orders')).items
    await queues.retry({ queueName: 'orders', items: dying.map(({ id }) => ({ id, dead: true })) })
    clock.advance(SECOND)
    await queues.produce({ queueName: 'orders-dead', items: [{ payload: 'by hand' }] })
    clock.advance(SECOND)
    await queues.produce({ queueName: 'orders', items: [{ payload: 'held' }] })
    await place.lease('orders')
    clock.advance(SECOND)
    const enqueueAt = later(clock.now(), 3_600n * SECOND)
    await queues.produce({ queueName: 'orders', items: [{ payload: 'c' }, { payload: 'later', enqueueAt }] })
    for (const payload of ['1', '2', '3', '4'])
      await queues.produce({ queueName: 'wide', items: [{ payload }] })
  })

  afterAll(async () => {
    await app?.close()
    await place?.close()
  })

  const call = async (url: string, as = 'look') => {
    const reply = await app.inject({ method: 'GET', url, headers: { authorization: `Bearer ${as}` } })
    return { ...reply.json(), code: reply.statusCode }
  }
  const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name)

  it('shows depths, the oldest item, settings, and the letters that came from each', async () => {
    const { code, data } = await call('/api/queues')
    expect(code).toBe(200)
    expect(data.continuationToken).toBeNull()
    expect(names(data.items)).toEqual(['orders', 'orders-dead', 'wide'])
    expect(data.items[0]).toEqual({
      name: 'orders',
      deadQueue: 'orders-dead',
      onDeath: 'letter',
      partitions: 1,
      ready: 1,
      leased: 1,
      scheduled: 1,
      held: 0,
      dead: 0,
      oldestAtUtc: '2027-01-15T08:00:02.000000Z',
      letters: 2,
      maxAttempts: 3,
      leaseTimeout: '1m0s',
      deadTimeout: '240h0m0s',
    })
    expect(data.items[2]).toMatchObject({
      deadQueue: null,
      partitions: 3,
      ready: 4,
      oldestAtUtc: '2027-01-15T08:00:03.000000Z',
      letters: 0,
      maxAttempts: 0,
      leaseTimeout: '1m30s',
    })
  })

  it('counts letters and items of a dead queue as one line', async () => {
    const { data } = await call('/api/queues')
    expect(data.items[1]).toMatchObject({
      ready: 3,
      dead: 2,
      letters: 0,
      oldestAtUtc: '2027-01-15T08:00:00.000000Z',
    })
  })

  it('agrees with the depths that metrics show', async () => {
    const depths = await place.queues.depths()
    const overview = await place.queues.overview()
    expect(overview).toEqual(depths.map((depth) => expect.objectContaining(depth)))
  })

  it('comes in pages', async () => {
    const first = (await call('/api/queues?limit=2')).data
    expect(names(first.items)).toEqual(['orders', 'orders-dead'])
    const second = (await call(`/api/queues?limit=2&continuationToken=${first.continuationToken}`)).data
    expect(names(second.items)).toEqual(['wide'])
    expect(second.continuationToken).toBeNull()
  })

  it('refuses what it does not understand, by name', async () => {
    for (const [query, named] of [
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['namespace=x', 'namespace'],
      ['continuationToken=nonsense', 'continuationToken'],
    ] as const) {
      const { code, error } = await call(`/api/queues?${query}`)
      expect([code, error.message]).toEqual([400, expect.stringMatching(new RegExp(named, 'i'))])
    }
    expect((await call('/api/queues', 'nobody')).code).toBe(401)
  })

  it('takes as many statements for many queues as for few', async () => {
    const statementsFor = (limit: number) =>
      place.db.session('test.overview', async (session) => {
        let statements = 0
        const counting: Session = {
          dialect: session.dialect,
          rows: (statement, ...values) => {
            statements++
            return session.rows(statement, ...values)
          },
          run: (statement, ...values) => session.run(statement, ...values),
          runEach: (statement, rows) => session.runEach(statement, rows),
        }
        const queues = await readOverview(counting, checkListQueues({ limit }))
        return { queues: queues.length, statements }
      })
    expect(await statementsFor(2)).toEqual({ queues: 2, statements: 5 })
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      await place.createQueue(name)
      await place.queues.produce({ queueName: name, items: [{ payload: name }] })
    }
    expect(await statementsFor(100)).toEqual({ queues: 8, statements: 5 })
  })
})
