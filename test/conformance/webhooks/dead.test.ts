/** The dead jobs of a consumer: how they are listed, requeued and removed, and that they are counted exactly meanwhile. */
import { beforeEach, describe, expect, it } from 'vitest'
import { overlaid } from '../../world/server.ts'
import { Broker, QUICK } from '../../world/webhooks/broker.ts'
import { brokers, type DeadCounts, type DeadJob, expectRefusal, expectStatus, Lane } from './bed.ts'

/** All attempts of a job that fails every time, and the time they take at most. */
const MAX_RETRY = 1
const ATTEMPTS = MAX_RETRY + 1
const ROUND_SECONDS = 5

/** A push consumer that refuses everything, with so many messages that died of it. */
async function graveyard(broker: Broker, messages: number, attempts = ATTEMPTS): Promise<Lane> {
  const lane = await Lane.open(broker, 'push')
  broker.receiver.answer(lane.hook, { status: 500, body: 'not today' })
  for (let n = 0; n < messages; n++) await lane.broadcast(`message ${n}`)
  await broker.within(ROUND_SECONDS, async () => {
    expect(await lane.deadCount()).toBe(messages)
  })
  expect(lane.callbacks()).toHaveLength(messages * attempts)
  return lane
}

const only = (jobs: readonly DeadJob[]): DeadJob => {
  expect(jobs).toHaveLength(1)
  return jobs[0] ?? expect.fail('there is one')
}

/** The job id as clients find it. */
const idIn = (job: DeadJob): string => /\/job\/([^/]+)\/requeue-dead-job$/.exec(job.JobRequeueURL)?.[1] ?? ''

brokers(
  'dead jobs',
  (ground) => {
    it('are listed with what they died of, and how often they were tried', async () => {
      const lane = await graveyard(ground(), 1)
      const job = only((await lane.dead()).DeadJobs)
      expect(job).toMatchObject({
        ID: idIn(job),
        Status: 'DEAD',
        ListenerEndpoint: `${ground().receiver.url}${lane.hook}`,
        RetryAttemptCount: ATTEMPTS - 1,
        Exhausted: true,
        LastError: expect.stringContaining('500'),
      })
      expect(await lane.state(job.ID)).toBe('DEAD')
      await ground().pass(10, 1)
      expect(lane.callbacks()).toHaveLength(ATTEMPTS)
    })

    describe('of a push consumer', () => {
      it('are sent again in a full new round when one of them is requeued', async () => {
        const lane = await graveyard(ground(), 1)
        const { ID } = only((await lane.dead()).DeadJobs)
        await expectStatus(202, lane.requeue(ID))
        expect(await lane.deadCount()).toBe(0)
        expect((await lane.dead()).DeadJobs).toEqual([])
        await expectRefusal(400, 'job could not be found', lane.requeue(ID))
        await ground().within(ROUND_SECONDS, async () => {
          expect(await lane.deadCount()).toBe(1)
        })
        expect(lane.callbacks()).toHaveLength(2 * ATTEMPTS)
        // The same job died twice, and is dead once.
        expect(only((await lane.dead()).DeadJobs).ID).toBe(ID)
        ground().receiver.answer(lane.hook, { status: 200 })
        await expectStatus(202, lane.requeue(ID))
        await ground().within(5, async () => {
          expect(await lane.state(ID)).toBe('DELIVERED')
        })
        expect(lane.callbacks()).toHaveLength(2 * ATTEMPTS + 1)
        expect(await lane.deadCount()).toBe(0)
        await expectRefusal(400, 'job could not be found', lane.requeue(ID))
        await expectRefusal(404, 'Request resource not found', lane.erase(ID))
      })

      it('are all sent again, once each, however many ask for it at the same time', async () => {
        const lane = await graveyard(ground(), 30)
        const bystander = await graveyard(ground(), 1)
        ground().receiver.answer(lane.hook, { status: 200 })
        const answers = await Promise.all([1, 2, 3].map(() => lane.requeueAll()))
        expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(Array(3).fill('202 '))
        await ground().within(10, () => {
          expect(lane.callbacks()).toHaveLength(30 * ATTEMPTS + 30)
        })
        await ground().pass(5, 1)
        expect(lane.callbacks()).toHaveLength(30 * ATTEMPTS + 30)
        expect([await lane.deadCount(), await bystander.deadCount()]).toEqual([0, 1])
      })

      it('are not requeued by those who do not know the token', async () => {
        const lane = await graveyard(ground(), 1)
        const { client } = ground()
        const path = `${lane.path}/dlq`
        const text = '`requeue` form param must match consumer token'
        await expectRefusal(
          415,
          'Media type not supported',
          client.post(path, `requeue=${lane.consumerToken}`),
        )
        const form = (requeue: string) => client.send('POST', path, { form: { requeue } })
        await expectRefusal(400, text, form('wrong'))
        await expectRefusal(400, text, form(''))
        await expectRefusal(400, text, client.send('POST', path, { form: {} }))
        // In the query it is not in the form.
        const query = `${path}?requeue=${lane.consumerToken}`
        await expectRefusal(400, text, client.send('POST', query, { form: {} }))
        const unknown = `${lane.channelPath}/consumer/none/dlq`
        await expectRefusal(404, 'Request resource not found', client.send('POST', unknown, { form: {} }))
        await expectRefusal(404, 'Request resource not found', client.get(unknown))
        expect(await lane.deadCount()).toBe(1)
      })

      it('are removed one by one or all together, their messages not', async () => {
        const lane = await graveyard(ground(), 3)
        const [one, two, three] = (await lane.dead()).DeadJobs
        const erased = await Promise.all([1, 2, 3].map(() => lane.erase(one?.ID ?? '')))
        expect(erased.map(({ status }) => status).sort()).toEqual([204, 404, 404])
        expect(await lane.deadCount()).toBe(2)
        expect((await lane.dead()).DeadJobs.map(({ ID }) => ID)).toEqual([two?.ID, three?.ID])
        const path = `${lane.path}/job/${one?.ID}`
        await expectRefusal(404, 'job could not be found', ground().client.get(path, lane.tokens))
        const message = await expectStatus(200, ground().client.get(one?.MessageURL ?? ''))
        expect(message.json()).toMatchObject({ Status: 'DISPATCHED', Jobs: [] })
        expect((await lane.purge()).text).toBe('{"deletedCount":2}\n')
        expect((await lane.purge()).text).toBe('{"deletedCount":0}\n')
        expect(await lane.deadCount()).toBe(0)
        expect((await ground().client.get(`${lane.path}/dlq`)).text).toBe('{"DeadJobs":[],"Pages":{}}\n')
        // Nothing is left in the way of its removal.
        const { headers } = await ground().client.get(lane.path)
        const since = { 'If-Unmodified-Since': headers['last-modified'] ?? '' }
        await expectStatus(204, ground().client.delete(lane.path, since))
        expect(await lane.deadCount()).toBe(null)
      })
    })

    describe('of a pull consumer', () => {
      let lane: Lane

      beforeEach(async () => {
        lane = await Lane.open(ground(), 'pull')
      })

      it('that gave them up early are requeued, but not removed', async () => {
        const [one, two] = [await lane.jobIn('DEAD'), await lane.jobIn('DEAD')]
        await expectRefusal(404, 'job is not dead or retry not exhausted', lane.erase(one))
        expect((await lane.purge()).text).toBe('{"deletedCount":0}\n')
        expect((await lane.dead()).DeadJobs).toMatchObject([
          { ID: two, Exhausted: false },
          { ID: one, Exhausted: false },
        ])
        await expectStatus(202, lane.requeue(one))
        expect(await lane.deadCount()).toBe(1)
        await expectStatus(202, lane.requeueAll())
        await ground().within(5, async () => {
          expect(await lane.deadCount()).toBe(0)
        })
        expect((await lane.queued()).map(({ ID }) => ID).sort()).toEqual([one, two].sort())
      })

      it('come to life when one is taken, and are counted again when they die again', async () => {
        const job = await lane.jobIn('DEAD')
        await expectRefusal(404, 'job is not dead or retry not exhausted', lane.erase(job))
        for (let n = 1; n <= MAX_RETRY + 1; n++) {
          await expectStatus(202, lane.move(job, 'INFLIGHT'))
          expect(await lane.deadCount()).toBe(0)
          await expectStatus(202, lane.move(job, 'DEAD'))
          expect(await lane.deadCount()).toBe(1)
          expect((await lane.dead()).DeadJobs).toMatchObject([{ ID: job, RetryAttemptCount: n }])
        }
        // Taken as often as it may be, it may be removed too.
        await expectStatus(204, lane.erase(job))
        expect(await lane.deadCount()).toBe(0)
      })

      it('are requeued with all attempts before them', async () => {
        const job = await lane.jobIn('DEAD')
        await expectStatus(202, lane.move(job, 'INFLIGHT'))
        await expectStatus(202, lane.move(job, 'DEAD'))
        await expectStatus(202, lane.requeue(job))
        await expectStatus(202, lane.move(job, 'INFLIGHT'))
        await expectStatus(202, lane.move(job, 'DEAD'))
        expect((await lane.dead()).DeadJobs).toMatchObject([{ ID: job, RetryAttemptCount: 0 }])
      })
    })

    it('stay removable when more retries are allowed later', async () => {
      const lane = await graveyard(ground(), 2)
      const early = await lane.beside('pull')
      const givenUp = await early.jobIn('DEAD')
      await ground().within(ROUND_SECONDS, async () => {
        expect(await lane.deadCount()).toBe(3)
      })
      const patient = await Broker.start(ground().kind, {
        beside: ground(),
        webhooks: overlaid(QUICK, { delivery: { maxRetry: 100 } }),
      })
      try {
        const [first] = (await lane.dead()).DeadJobs
        await expectStatus(204, lane.at(patient).erase(first?.ID ?? ''))
        expect((await lane.at(patient).purge()).text).toBe('{"deletedCount":2}\n')
        await expectRefusal(404, 'job is not dead or retry not exhausted', early.at(patient).erase(givenUp))
        expect([await lane.deadCount(), await early.at(patient).deadCount()]).toEqual([0, 1])
      } finally {
        await patient.stop()
      }
    })

    it('are counted by channel and consumer, in the order of the bytes of their ids', async () => {
      const first = await Lane.open(ground(), 'pull', '-')
      const ids = ['b', 'B', '_', 'Z', 'a', '~', '10', '9']
      const others = await Promise.all(ids.map((id) => first.beside('pull', id)))
      for (const lane of [first, ...others]) await lane.jobIn('DEAD')
      const { consumers } = (await ground().client.get('/dlq-status')).json<DeadCounts>()
      const mine = consumers.filter(({ channelId }) => channelId === first.channel)
      expect(mine.map(({ consumerId, deadCount }) => `${consumerId} ${deadCount}`)).toEqual(
        ['-', '10', '9', 'B', 'Z', '_', 'a', 'b', '~'].map((id) => `${id} 1`),
      )
      const channels = consumers.map(({ channelId }) => channelId)
      expect(channels).toEqual(channels.toSorted())
    })

    it('are counted the same by every part of the API', async () => {
      const lane = await graveyard(ground(), 2)
      const { client } = ground()
      const status = (await client.get('/job-status')).json<
        Record<string, Record<string, { status: number; count: number }[]>>
      >()
      const counts = Object.values(status[lane.channel] ?? {}).flat()
      expect(counts.filter((each) => each.status === 1004)).toMatchObject([{ count: 2 }])
      const sample = `dead_job_count{channel="${lane.channel}",consumer="${lane.consumer}"}`
      expect((await client.get('/metrics')).text).toContain(`${sample} 2\n`)
      await expectStatus(200, lane.purge())
      expect((await client.get('/metrics')).text).toContain(`${sample} 0\n`)
    })
  },
  { webhooks: { delivery: { maxRetry: MAX_RETRY } } },
)

brokers(
  'dead jobs without retries',
  (ground) => {
    it('die once more when all are requeued, and that ends', async () => {
      const lane = await graveyard(ground(), 50, 1)
      await expectStatus(202, lane.requeueAll())
      await ground().within(10, async () => {
        expect(lane.callbacks()).toHaveLength(100)
        expect(await lane.deadCount()).toBe(50)
      })
      await ground().pass(10, 1)
      expect(lane.callbacks()).toHaveLength(100)
      expect((await lane.purge()).text).toBe('{"deletedCount":50}\n')
    })
  },
  { webhooks: { delivery: { maxRetry: 0 }, dlq: { batchSize: 7 } } },
)
