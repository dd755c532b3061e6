import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { refusalOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import type { Xid } from '../../../core/xid.ts'
import { inOffice } from '../../../letters/work.ts'
import { sql } from '../../../store/database.ts'
import { type Consumer, JOB, JOB_STATUSES, type JobStatus } from '../webhook.ts'
import { readJob } from './job-sql.ts'
import { type MoveKind, moveJobs } from './pull-moves.ts'

const SECOND = 1_000_000n

const enlarge = sql(
  'test.enlarge',
  `UPDATE bartleby.webhook_messages SET payload = $2
   WHERE id = (SELECT message FROM bartleby.webhook_jobs AS job WHERE job.id = $1)`,
)

describe.each(stores)('jobs of consumers on $name', (kind) => {
  let office: WebhookWorld
  let consumer: Consumer
  beforeAll(async () => {
    office = await WebhookWorld.open(kind, {
      delivery: { timeoutSeconds: 10, rationalDelaySeconds: 1, maxRetry: 2 },
    })
    consumer = await office.consumer(await office.channel(), { type: 'pull' })
  })
  afterAll(() => office?.close())

  const move = (job: Xid, next: string, extraSeconds = 0) =>
    refusalOf(office.jobs.move(consumer, job, next, extraSeconds))
  const statusOf = async (job: Xid) => (await office.jobs.get(consumer, job)).status

  /** A job of this status. */
  async function jobThatIs(status: JobStatus): Promise<Xid> {
    const job = await office.one(consumer)
    if (status === 'QUEUED') return job
    expect(await move(job, 'INFLIGHT')).toBe('done')
    if (status !== 'INFLIGHT') expect(await move(job, status)).toBe('done')
    return job
  }

  describe('a job', () => {
    it('is shown to its consumer, and to no other', async () => {
      const channel = await office.channel()
      const [own, other] = [await office.consumer(channel), await office.consumer(channel)]
      const job = await office.one(own)
      const { id, ...shown } = await office.jobs.get(own, job)
      expect(id).toBe(job)
      expect(shown).toMatchObject({
        status: 'QUEUED',
        statusChangedAt: office.clock.now(),
        attempts: 0,
        exhausted: false,
        listenerEndpoint: own.callbackUrl,
        listenerName: own.name,
        messageId: expect.stringMatching(/^m\d+$/),
        producerId: '',
      })
      expect(await refusalOf(office.jobs.get(other, job))).toBe('job_of_another')
      for (const unknown of ['nope', '\0', office.xids.next()]) {
        expect(await refusalOf(office.jobs.get(own, unknown))).toBe('job_unknown')
      }
    })

    it('that waits is listed, due or not: the highest priority first, then the oldest', async () => {
      const puller = await office.consumer(await office.channel(), { type: 'pull' })
      const [low] = (await office.send([puller])).flat() as [Xid]
      office.pass(1)
      const [urgent, later, gone] = (await office.send([puller], 3, { priority: 7 })).flat() as [
        Xid,
        Xid,
        Xid,
      ]
      const [high] = (await office.send([puller], 1, { priority: 9 })).flat() as [Xid]
      await office.take([later, gone], 0)
      await office.move([later], JOB.later)
      const queued = await office.jobs.queued(puller, 25)
      expect(queued.map(({ id }) => id)).toEqual([high, urgent, later, low])
      expect(queued[0]).toMatchObject({
        priority: 9,
        extraSeconds: 0,
        contentType: 'application/json',
        headers: [['X-Foo', 'bar']],
      })
      expect((await office.jobs.queued(puller, 2)).map(({ id }) => id)).toEqual([high, urgent])
    })

    it('that is large leaves less room in the list, and none that waits is hidden behind it for ever', async () => {
      const puller = await office.consumer(await office.channel(), { type: 'pull' })
      const jobs = (await office.send([puller], 4)).flat()
      const payload = Buffer.alloc(4_100_000, 7)
      for (const job of jobs.slice(0, 3)) {
        await office.db.session('test', (session) => session.run(enlarge, job, payload))
      }
      const listed = await office.jobs.queued(puller, 25)
      expect(listed.map(({ id }) => id)).toEqual(jobs.slice(0, 2))
      expect(Buffer.from(listed[1]?.payload ?? []).equals(payload)).toBe(true)
      await office.take(jobs.slice(0, 2), 0)
      expect((await office.jobs.queued(puller, 25)).map(({ id }) => id)).toEqual(jobs.slice(2))
    })
  })

  describe('a pull consumer', () => {
    const ALLOWED: readonly string[] = [
      'QUEUED INFLIGHT',
      'INFLIGHT DELIVERED',
      'INFLIGHT DEAD',
      'DEAD INFLIGHT',
      ...JOB_STATUSES.map((status) => `${status} ${status}`),
    ]

    it('makes of a job what the table allows, and nothing else', async () => {
      for (const from of JOB_STATUSES) {
        const unmoved = await jobThatIs(from)
        expect(await move(unmoved, 'FOO')).toBe('transition_invalid')
        for (const next of [...JOB_STATUSES].filter((status) => status !== 'INFLIGHT')) {
          expect([from, next, await move(unmoved, next, 5)]).toEqual([from, next, 'timeout_misplaced'])
        }
        for (const next of JOB_STATUSES) {
          const job = await jobThatIs(from)
          const isAllowed = ALLOWED.includes(`${from} ${next}`)
          expect([from, next, await move(job, next)]).toEqual([
            from,
            next,
            isAllowed ? 'done' : 'transition_invalid',
          ])
          expect(await statusOf(job)).toBe(isAllowed ? next : from)
        }
      }
      const inFlight = await jobThatIs('INFLIGHT')
      expect(await move(inFlight, 'INFLIGHT', 5)).toBe('timeout_misplaced')
      expect(await move(inFlight, 'FOO', 5)).toBe('timeout_misplaced')
      expect(await move(await jobThatIs('DELIVERED'), 'INFLIGHT', 5)).toBe('transition_invalid')
      await office.deadCount(consumer)
      await office.expectVerified()
    })

    it('has a job for the time of an attempt, a grace and what it adds, which stays until it is replaced', async () => {
      const job = await office.one(consumer)
      const now = office.clock.now()
      await move(job, 'INFLIGHT', 10)
      const claimed = await office.job(job)
      expect(claimed).toMatchObject({ extraSeconds: 10, attempts: 0, changedAt: now })
      expect(claimed?.dueAt).toBe(now + 21n * SECOND + SECOND / 4n)
      await move(job, 'DEAD')
      await move(job, 'INFLIGHT')
      const taken = await office.job(job)
      expect(taken).toMatchObject({ extraSeconds: 10, attempts: 1, dueAt: claimed?.dueAt })
      expect(taken?.claim).not.toBe(claimed?.claim)
      await move(job, 'DEAD')
      await move(job, 'INFLIGHT', 3)
      expect(await office.job(job)).toMatchObject({ extraSeconds: 3, attempts: 2 })
    })

    it('loses to whoever was faster', async () => {
      const job = await office.one(consumer)
      const { registers, db } = office
      const seen = () => db.session('test', (session) => readJob(session, job))
      const moves = async (...kinds: readonly MoveKind[]) => {
        const record = await seen()
        if (record === null) throw new Error('the job is gone')
        const go = (some: readonly MoveKind[]) =>
          inOffice(db, office.clock, 'test.move', (work) =>
            moveJobs(
              work,
              { registers, maxRetry: 2, claimUs: SECOND },
              some.map((kind) => ({ kind, job: record, extraSeconds: 0 })),
            ),
          )
        // In one transaction, and then in another by who saw the same.
        return [...(await go(kinds)), ...(await go(kinds.slice(0, 1)))]
      }
      expect(await moves('claim', 'claim')).toEqual([true, false, false])
      expect(await moves('give up', 'deliver')).toEqual([true, false, false])
      expect(await moves('take', 'take')).toEqual([true, false, false])
      expect(await moves('deliver', 'give up')).toEqual([true, false, false])
      expect(await office.letter(job)).toMatchObject({ version: 3, dequeueCount: 1 })
      await office.expectVerified()
    })

    it('declares a job dead, takes it up again and declares it dead once more: one letter, counted once', async () => {
      const puller = await office.consumer(await office.channel(), { type: 'pull' })
      const job = await office.one(puller)
      const go = (next: string) => office.jobs.move(puller, job, next, 0)
      await go('INFLIGHT')
      await go('DEAD')
      expect(await office.letter(job)).toMatchObject({
        reason: 'rejected',
        errorClass: 'Rejected',
        dequeueCount: 1,
      })
      expect(await office.job(job)).toMatchObject({ exhausted: false, attempts: 0 })
      expect(await office.deadCount(puller)).toBe(1)
      await go('INFLIGHT')
      expect(await office.deadCount(puller)).toBe(0)
      expect(await office.letter(job)).toMatchObject({
        status: 'Resolved',
        resolution: 'retry',
        resolvedBy: `consumer ${(await office.letter(job)).originalQueue}`,
        sentAs: job,
      })
      await go('DEAD')
      expect(await office.deadCount(puller)).toBe(1)
      expect(await office.letter(job)).toMatchObject({ status: 'Pending', dequeueCount: 2 })
      await go('INFLIGHT')
      await go('DELIVERED')
      expect(await office.letter(job)).toMatchObject({
        status: 'Resolved',
        confirmedAt: office.clock.now(),
      })
      expect(await office.counted(puller)).toEqual({ delivered: 1 })
      await office.expectVerified()
    })

    it('settles many jobs at once', async () => {
      const puller = await office.consumer(await office.channel(), { type: 'pull' })
      const jobs = (await office.send([puller], 60)).flat()
      const all = (next: string, some = jobs) =>
        Promise.all(some.map((job) => office.jobs.move(puller, job, next, 0)))
      await all('INFLIGHT')
      await Promise.all([all('DELIVERED', jobs.slice(0, 20)), all('DEAD', jobs.slice(20))])
      await Promise.all([all('INFLIGHT', jobs.slice(40)), all('DEAD', jobs.slice(20, 40))])
      expect(await office.deadCount(puller)).toBe(20)
      expect(await office.counted(puller)).toEqual({ delivered: 20, inFlight: 20 })
      await office.expectVerified()
    })
  })

  describe('a dead job', () => {
    it.each(['push', 'pull'] as const)('of a %s consumer starts over', async (type) => {
      const own = await office.consumer(await office.channel(), { type })
      const other = await office.consumer(await office.channel(), { type })
      const [job] = (await office.deadJobs(own, 1)) as [Xid]
      expect(await refusalOf(office.jobs.requeue(other, job))).toBe('job_of_another')
      expect(await refusalOf(office.jobs.requeue(own, 'nope'))).toBe('job_unknown')
      expect(await office.deadCount(own)).toBe(1)
      const [first, second] = await Promise.all([1, 2].map(() => refusalOf(office.jobs.requeue(own, job))))
      expect([first, second].sort()).toEqual(['done', 'job_not_dead'])
      expect(await office.job(job)).toMatchObject({ state: JOB.ready, attempts: 0, exhausted: false })
      expect(await office.deadCount(own)).toBe(0)
      expect(office.woken.includes(own.number)).toBe(type === 'push')
      await office.expectVerified()
    })

    it('is erased with its letter when its attempts are used up, and leaves one row of history', async () => {
      const channel = await office.channel()
      const [own, other] = [await office.consumer(channel), await office.consumer(channel)]
      const [job, ready] = (await office.send([own], 2)).flat() as [Xid, Xid]
      await office.die([job])
      const letter = await office.letter(job)
      expect(await refusalOf(office.jobs.erase(other, job))).toBe('resource_unknown')
      expect(await refusalOf(office.jobs.erase(own, ready))).toBe('resource_unknown')
      expect(await refusalOf(office.jobs.erase(own, 'nope'))).toBe('resource_unknown')
      expect(await office.deadCount(own)).toBe(1)
      const ends = await Promise.all([1, 2].map(() => refusalOf(office.jobs.erase(own, job))))
      expect(ends.sort()).toEqual(['done', 'resource_unknown'])
      expect(await office.job(job)).toBeNull()
      await expect(office.letters.get(letter)).rejects.toMatchObject({ code: 'letter_unknown' })
      expect(await office.deadCount(own)).toBe(0)
      expect(await office.removals(letter.correlationId)).toEqual([{ letters: { webhooks: 1 } }])
      await office.expectVerified()
    })

    it('is erased only when its attempts were used up, then or by the present limit', async () => {
      const own = await office.consumer(await office.channel(), { type: 'pull' })
      const [early, once] = (await office.send([own], 2)).flat() as [Xid, Xid]
      await office.take([early], 1)
      await office.bury([early], { reason: 'rejected', exhausted: false })
      expect(await refusalOf(office.jobs.erase(own, early))).toBe('not_exhausted')
      // It died when the limit was lower.
      await office.take([once], 0)
      await office.bury([once])
      expect(await refusalOf(office.jobs.erase(own, once))).toBe('done')
      await office.jobs.requeue(own, early)
      await office.take([early], 2)
      await office.bury([early], { exhausted: false })
      expect(await refusalOf(office.jobs.erase(own, early))).toBe('done')
      await office.expectVerified()
    })

    it('is there with its letter and its count, or none of them is, when erasing fails', async () => {
      const own = await office.consumer(await office.channel())
      const [job] = (await office.deadJobs(own, 1)) as [Xid]
      await office.place.refuseWrites()
      await expect(office.jobs.erase(own, job)).rejects.toThrow()
      await expect(office.jobs.requeue(own, job)).rejects.toThrow()
      await office.place.acceptWrites()
      expect(await office.job(job)).toMatchObject({ state: JOB.dead })
      expect(await office.deadCount(own)).toBe(1)
      await office.expectVerified()
    })
  })
})
