import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { wrapped } from '../../../../test/world/intercepted-database.ts'
import { PATIENCE_MS } from '../../../../test/world/limits.ts'
import { stores } from '../../../../test/world/stores.ts'
import { refusalOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import type { Xid } from '../../../core/xid.ts'
import { StoreUnavailable, sql } from '../../../store/database.ts'
import { verifyStore } from '../../../verify/verify.ts'
import type { PageRequest } from '../registry/pages.ts'
import { type Consumer, JOB } from '../webhook.ts'

const SMALL = { dlq: { batchSize: 4 } }
const VERBS = { requeueAll: 'run.webhook-requeue', purge: 'run.webhook-purge' } as const
const lose = sql('test.loseLetter', 'DELETE FROM bartleby.letters WHERE id = $1')

describe.each(stores)('all dead jobs of a consumer on $name', (kind) => {
  let office: WebhookWorld
  beforeAll(async () => {
    office = await WebhookWorld.open(kind)
  })
  afterAll(() => office?.close())

  const newConsumer = async (type: 'push' | 'pull' = 'push') =>
    office.consumer(await office.channel(), { type })
  const states = (jobs: readonly Xid[]) =>
    Promise.all(jobs.map(async (job) => (await office.job(job))?.state ?? null))
  const runsOf = async (consumer: Consumer) =>
    (await office.bulk().list(100)).filter((run) => run.consumer === consumer.number)

  it('are listed, newest first, with what they failed with', async () => {
    const consumer = await newConsumer()
    const jobs: Xid[] = []
    for (let i = 0; i < 3; i++) {
      // Many of the same moment.
      jobs.push(...(await office.deadJobs(consumer, 20)))
      office.pass(1)
    }
    const newest = jobs.toReversed()
    const page = async (request: Partial<PageRequest>) =>
      office.jobs.dead(consumer, { next: null, previous: null, ...request })
    const first = await page({})
    const second = await page({ next: first.last })
    const third = await page({ next: second.last })
    const all = [first, second, third].flatMap(({ items }) => items.map(({ id }) => id))
    expect(all).toEqual(newest)
    expect((await page({ previous: third.first })).items.map(({ id }) => id)).toEqual(newest.slice(25, 50))
    expect((await page({ next: third.last })).items).toEqual([])
    const [item] = first.items
    expect(item).toMatchObject({
      status: 'DEAD',
      listenerEndpoint: consumer.callbackUrl,
      listenerName: consumer.name,
      attempts: 5,
      exhausted: true,
      lastError: 'its consumer answered 500',
    })
    expect(item?.messageId).toBe((await office.letter(newest[0] as Xid)).reference)
    expect(await refusalOf(page({ next: first.last, previous: first.first }))).toBe('both_cursors')
  })

  it('show no more than the beginning of a long error', async () => {
    const consumer = await newConsumer()
    const job = await office.one(consumer)
    await office.take([job])
    await office.bury([job], { errorMessage: 'é'.repeat(5_000) })
    const { items } = await office.jobs.dead(consumer, { next: null, previous: null })
    expect(items[0]?.lastError).toBe('é'.repeat(200))
  })

  it.each(['push', 'pull'] as const)('are requeued, of a %s consumer and of no other', async (type) => {
    const [consumer, other] = [await newConsumer(type), await newConsumer(type)]
    const jobs = await office.deadJobs(consumer, 10)
    await office.deadJobs(other, 2)
    await office.bulk(SMALL).requeueAll(consumer, 'tester')
    expect(new Set(await states(jobs))).toEqual(new Set([JOB.ready]))
    expect(await office.job(jobs[0] as Xid)).toMatchObject({ attempts: 0, exhausted: false, dueAt: null })
    expect(await office.letter(jobs[9] as Xid)).toMatchObject({
      status: 'Resolved',
      resolution: 'retry',
      resolvedBy: 'tester',
      notes: 'Requeued',
      sentAs: jobs[9],
    })
    expect([await office.deadCount(consumer), await office.deadCount(other)]).toEqual([0, 2])
    expect(await office.counted(consumer)).toEqual({ queued: 10 })
    expect(office.woken.includes(consumer.number)).toBe(type === 'push')
    expect(await runsOf(consumer)).toMatchObject([
      { kind: 'requeue', actor: 'tester', expected: 10, done: 10, finishedAt: office.clock.now() },
    ])
    await office.expectVerified()
  })

  it('are requeued to an end when each dies again at once', async () => {
    const consumer = await newConsumer()
    const jobs = await office.deadJobs(consumer, 9)
    const db = wrapped(office.db, VERBS.requeueAll, async (_, go) => {
      const outcome = await go()
      const waiting: Xid[] = []
      for (const job of jobs) if ((await office.job(job))?.state === JOB.ready) waiting.push(job)
      await office.die(waiting, { attempts: 0 })
      return outcome
    })
    await office.bulk(SMALL, db).requeueAll(consumer, 'tester')
    await office.idle()
    expect(await office.deadCount(consumer)).toBe(9)
    expect((await runsOf(consumer))[0]).toMatchObject({ done: 9 })
    await office.expectVerified()
  })

  it.each(['requeueAll', 'purge'] as const)(
    'are never more than a %s expects, also when jobs die meanwhile',
    async (act) => {
      const consumer = await newConsumer()
      await office.deadJobs(consumer, 4)
      const slow: Xid[] = []
      for (let i = 0; i < 3; i++) slow.push(await office.one(consumer))
      await office.deadJobs(consumer, 4)
      const seen: (readonly [done: number, expected: number])[] = []
      const db = wrapped(office.db, VERBS[act], async (_, go) => {
        const outcome = await go()
        // Older than the newest that was dead at the start, and so in the way of the run.
        if (seen.length === 0) await office.die(slow)
        for (const { done, expected } of await runsOf(consumer)) seen.push([done, expected])
        return outcome
      })
      await office.bulk(SMALL, db)[act](consumer, 'tester')
      await office.idle()
      expect(seen).toEqual([
        [4, 8],
        [8, 8],
        [11, 11],
      ])
      await office.expectVerified()
    },
  )

  it('are purged where their attempts are used up, and one row of history says how many', async () => {
    const consumer = await newConsumer('pull')
    const jobs = await office.deadJobs(consumer, 9)
    const early = await office.one(consumer)
    await office.take([early], 1)
    await office.bury([early], { reason: 'rejected', exhausted: false })
    expect(await office.bulk(SMALL).purge(consumer, 'tester')).toBe(9)
    expect(await states([...jobs, early])).toEqual([...jobs.map(() => null), JOB.dead])
    expect(await office.deadCount(consumer)).toBe(1)
    const [run] = await runsOf(consumer)
    expect(run).toMatchObject({ kind: 'purge', expected: 10, done: 9 })
    expect(await office.removals(run?.id ?? '')).toEqual([{ letters: { webhooks: 9 } }])
    expect(await office.bulk(SMALL).purge(consumer, 'tester')).toBe(0)
    expect(await office.bulk({ ...SMALL, delivery: { maxRetry: 1 } }).purge(consumer, 'tester')).toBe(1)
    await office.expectVerified()
  })

  it('are done nothing to when there are none', async () => {
    const consumer = await newConsumer()
    await office.bulk().requeueAll(consumer, 'tester')
    expect(await office.bulk().purge(consumer, 'tester')).toBe(0)
    expect(await runsOf(consumer)).toEqual([])
  })

  it('are requeued and purged at the same time, each of them once', async () => {
    const consumer = await newConsumer()
    const jobs = await office.deadJobs(consumer, 40)
    const second = office.another()
    const [erased] = await Promise.all([
      office.bulk(SMALL).purge(consumer, 'one'),
      office.bulk(SMALL, second).requeueAll(consumer, 'two'),
      office.bulk(SMALL).purge(consumer, 'three'),
    ])
    await office.idle()
    expect(erased).toBeLessThanOrEqual(40)
    const runs = await runsOf(consumer)
    expect(runs.reduce((sum, { done }) => sum + done, 0)).toBe(40)
    expect(await office.deadCount(consumer, second)).toBe(0)
    const left = (await states(jobs)).filter((state) => state !== null)
    expect(await office.counted(consumer)).toEqual(left.length === 0 ? {} : { queued: left.length })
    await office.expectVerified()
  })

  it.each(['requeueAll', 'purge'] as const)(
    'are exact after every batch of an interrupted %s, which another server ends',
    async (act) => {
      const consumer = await newConsumer()
      const jobs = await office.deadJobs(consumer, 10)
      const db = wrapped(office.db, VERBS[act], async (_, go) => {
        const outcome = await go()
        void first.runs.stop()
        return outcome
      })
      const first = office.server(SMALL, db)
      const call = first.bulk[act](consumer, 'tester')
      if (act === 'purge') await expect(call).rejects.toMatchObject({ code: 'service_stopping' })
      else await call
      expect(await office.deadCount(consumer)).toBe(6)
      await office.expectVerified()
      office.server(SMALL, office.another()).runs.start()
      await office.idle()
      expect(await office.deadCount(consumer)).toBe(0)
      const [run] = await runsOf(consumer)
      expect(run).toMatchObject({ done: 10, expected: 10 })
      expect(run?.finishedAt).not.toBeNull()
      if (act === 'purge')
        expect(await office.removals(run?.id ?? '')).toEqual([{ letters: { webhooks: 10 } }])
      expect(new Set(await states(jobs))).toEqual(new Set([act === 'purge' ? null : JOB.ready]))
      await office.expectVerified()
    },
  )

  it('are purged by the limit of the server that was asked, whichever server goes on', async () => {
    const consumer = await newConsumer('pull')
    const jobs = (await office.send([consumer], 6)).flat()
    await office.take(jobs, 1)
    await office.bury(jobs, { reason: 'rejected', exhausted: false })
    const db = wrapped(office.db, VERBS.purge, async (_, go) => {
      const outcome = await go()
      void first.runs.stop()
      return outcome
    })
    const first = office.server({ ...SMALL, delivery: { maxRetry: 1 } }, db)
    await expect(first.bulk.purge(consumer, 'tester')).rejects.toMatchObject({ code: 'service_stopping' })
    expect(await office.deadCount(consumer)).toBe(2)
    office.server(SMALL, office.another()).runs.start()
    await office.idle()
    expect(await office.deadCount(consumer)).toBe(0)
    await office.expectVerified()
  })

  it('are left to who is at them, until the lease is over', async () => {
    const consumer = await newConsumer()
    await office.deadJobs(consumer, 10)
    const db = wrapped(office.db, VERBS.requeueAll, (batch, go) =>
      batch === 1 ? go() : Promise.reject(new StoreUnavailable('it was killed')),
    )
    const call = office.bulk(SMALL, db).requeueAll(consumer, 'tester')
    await vi.waitFor(async () => expect(await office.deadCount(consumer)).toBe(6), { timeout: PATIENCE_MS })
    const other = office.server(SMALL, office.another()).runs
    await other.settle()
    office.pass(2.9)
    await call
    await other.settle()
    expect(await office.deadCount(consumer)).toBe(6)
    office.pass(0.2)
    await other.settle()
    expect(await office.deadCount(consumer)).toBe(0)
    await office.expectVerified()
  })

  it('that are erased are told from those that are lost', async () => {
    const consumer = await newConsumer()
    const [job, erased] = (await office.deadJobs(consumer, 2)) as [Xid, Xid]
    await office.jobs.erase(consumer, erased)
    const { id } = await office.letter(job)
    await office.db.session('test', (session) => session.run(lose, id))
    const { invariants } = await verifyStore(office.db, { clock: office.clock })
    const found = invariants.find(({ invariant }) => invariant === 'I11')
    expect(found?.violations[0]?.what).toMatch(
      /letters of engine 'webhooks' are gone that were pending, and history says/,
    )
  })
})
