/** The pull and job API: who may ask, what moves where, and when a claim is over. */
import { beforeAll, describe, expect, it } from 'vitest'
import { brokers, expectRefusal, expectStatus, JOB_STATES, type JobStateName, Lane } from './bed.ts'

const INVALID = 'invalid transition request'
const MISPLACED = 'timeout provided with invalid state'

/** What asking for a state does to a job: the state that it has then, or null where that is refused. */
const TRANSITIONS: Readonly<Record<JobStateName, Readonly<Record<JobStateName, JobStateName | null>>>> = {
  QUEUED: { QUEUED: 'QUEUED', INFLIGHT: 'INFLIGHT', DELIVERED: null, DEAD: null },
  INFLIGHT: { QUEUED: null, INFLIGHT: 'INFLIGHT', DELIVERED: 'DELIVERED', DEAD: 'DEAD' },
  DELIVERED: { QUEUED: null, INFLIGHT: null, DELIVERED: 'DELIVERED', DEAD: null },
  DEAD: { QUEUED: null, INFLIGHT: 'INFLIGHT', DELIVERED: null, DEAD: 'DEAD' },
}
const CELLS = JOB_STATES.flatMap((from) => JOB_STATES.map((to) => [from, to] as const))

/** Ten seconds of the setting, a quarter, and one of grace. */
const CLAIM_SECONDS = 11.25

brokers('a pull job', (ground) => {
  let lane: Lane

  beforeAll(async () => {
    lane = await Lane.open(ground(), 'pull')
  })

  describe.each(CELLS)('that is %s and is to be %s', (from, to) => {
    const after = TRANSITIONS[from][to]

    it(after === null ? 'stays what it is' : `is ${after} then`, async () => {
      const job = await lane.jobIn(from)
      const dead = (await lane.deadCount()) ?? 0
      if (after === null) await expectRefusal(400, INVALID, lane.move(job, to))
      else {
        const { text, headers } = await expectStatus(202, lane.move(job, to))
        expect([text, headers['content-length']]).toEqual(['', '0'])
      }
      expect(await lane.state(job)).toBe(after ?? from)
      const difference = ((after ?? from) === 'DEAD' ? 1 : 0) - (from === 'DEAD' ? 1 : 0)
      expect(((await lane.deadCount()) ?? 0) - dead).toBe(difference)
    })

    const mayHaveMore = to === 'INFLIGHT' && from !== 'INFLIGHT'
    it(`may ${mayHaveMore ? '' : 'not '}be given more time`, async () => {
      const job = await lane.jobIn(from)
      if (mayHaveMore) {
        expect((await lane.move(job, to, 5)).status).toBe(after === null ? 400 : 202)
        return
      }
      await expectRefusal(400, MISPLACED, lane.move(job, to, 5))
      expect(await lane.state(job)).toBe(from)
      // No more time is none.
      expect((await lane.move(job, to, 0)).status).toBe(after === null ? 400 : 202)
    })
  })

  it('is asked for with a body that says what it is to be', async () => {
    const job = await lane.jobIn('QUEUED')
    const bodies = [
      '',
      'notjson',
      '[]',
      '"INFLIGHT"',
      'null',
      '{"NextState":"INFLIGHT","IncrementalTimeout":-1}',
      '{"NextState":"INFLIGHT","IncrementalTimeout":1.5}',
      '{"NextState":"INFLIGHT","IncrementalTimeout":"5"}',
      '{"NextState":"INFLIGHT","IncrementalTimeout":1e300}',
      '{"NextState":5}',
    ]
    for (const body of bodies) {
      const { status, text } = await lane.send(job, body)
      // A body of the right form that says nothing asks for no state there is.
      expect([400, body, ['invalid request body', INVALID].includes(text)]).toEqual([status, body, true])
    }
    for (const body of ['notjson', '{"NextState":"INFLIGHT","IncrementalTimeout":-1}']) {
      await expectRefusal(400, 'invalid request body', lane.send(job, body))
    }
    for (const state of ['FOO', '', 'inflight', 'ACKNOWLEDGED']) {
      await expectRefusal(400, INVALID, lane.move(job, state))
      await expectRefusal(400, MISPLACED, lane.move(job, state, 1))
    }
    expect(await lane.state(job)).toBe('QUEUED')
    await expectStatus(202, lane.send(job, '{"NEXTSTATE":"INFLIGHT","incrementaltimeout":7}'))
    expect(await lane.state(job)).toBe('INFLIGHT')
  })

  it('is taken by one of many who ask at the same time', async () => {
    // Taking twice what is taken already is allowed and does nothing; what ends it can be done once only.
    const job = await lane.jobIn('INFLIGHT')
    const ends = await Promise.all(
      Array.from({ length: 10 }, (_, n) => lane.move(job, n % 2 === 0 ? 'DELIVERED' : 'DEAD')),
    )
    const end = await lane.state(job)
    const granted = ends.filter(({ status }) => status === 202).length
    expect(ends.filter(({ text }) => text === INVALID)).toHaveLength(10 - granted)
    expect(['DELIVERED', 'DEAD']).toContain(end)
    expect(granted).toBeLessThanOrEqual(5)
  })

  describe('that was claimed', () => {
    it('is queued again when its time is over, and not before', async () => {
      const own = await Lane.open(ground(), 'pull')
      const job = await own.jobIn('INFLIGHT')
      await ground().pass(CLAIM_SECONDS - 0.25, 1)
      expect(await own.state(job)).toBe('INFLIGHT')
      expect(await own.queued()).toEqual([])
      await ground().within(2.5, async () => {
        expect(await own.state(job)).toBe('QUEUED')
      })
      expect(await own.queued()).toMatchObject([{ ID: job }])
      await expectRefusal(400, INVALID, own.move(job, 'DELIVERED'))
      expect(await own.state(job)).toBe('QUEUED')
    })

    it('has as much more time as was asked for', async () => {
      const own = await Lane.open(ground(), 'pull')
      const job = await own.jobIn('QUEUED')
      await expectStatus(202, own.move(job, 'INFLIGHT', 10))
      // Asking again changes nothing.
      await ground().pass(5, 1)
      await expectStatus(202, own.move(job, 'INFLIGHT'))
      await ground().pass(CLAIM_SECONDS + 10 - 5 - 0.25, 1)
      expect(await own.state(job)).toBe('INFLIGHT')
      await ground().within(2.5, async () => {
        expect(await own.state(job)).toBe('QUEUED')
      })
      expect(await own.queued()).toMatchObject([{ ID: job, IncrementalTimeout: 10 }])
    })

    it('in vain for the last time is dead, and may be erased', async () => {
      const own = await Lane.open(ground(), 'pull')
      const job = await own.jobIn('QUEUED')
      for (let claim = 1; claim <= 6; claim++) {
        await expectStatus(202, own.move(job, 'INFLIGHT'))
        await ground().jump(CLAIM_SECONDS)
        await ground().within(2.5, async () => {
          expect(await own.state(job)).toBe(claim === 6 ? 'DEAD' : 'QUEUED')
        })
      }
      expect(await own.deadCount()).toBe(1)
      expect((await own.dead()).DeadJobs).toMatchObject([{ ID: job, RetryAttemptCount: 5, Exhausted: true }])
      await expectStatus(204, own.erase(job))
      expect(await own.deadCount()).toBe(0)
    })
  })

  describe('that waits', () => {
    it('comes after those of higher priority, and after older ones', async () => {
      const own = await Lane.open(ground(), 'pull')
      for (const [n, priority] of [0, 5, 0, 9, 5, 0].entries()) {
        if (n === 3) await ground().jump(1)
        await own.broadcast(`${priority}/${n}`, { 'X-Broker-Message-Priority': String(priority) })
      }
      const payloads = (await own.queued()).map((job) => job.Message.Payload)
      expect(payloads).toEqual(['9/3', '5/1', '5/4', '0/0', '0/2', '0/5'])
    })

    it('is shown with as many others as asked for', async () => {
      const own = await Lane.open(ground(), 'pull')
      for (let n = 0; n < 5; n++) await Promise.all(Array.from({ length: 21 }, () => own.broadcast('x')))
      const shown = async (query: string) => (await own.queued(query)).length
      expect(await shown('')).toBe(25)
      expect(await shown('?limit=1')).toBe(1)
      expect(await shown('?limit=100')).toBe(100)
      expect(await shown('?limit=101')).toBe(100)
      expect(await shown('?limit=99999999999999999999')).toBe(100)
      expect(await shown('?limit=0')).toBe(0)
      for (const limit of ['-1', 'abc', '12abc', '1.5', '0x10', '1e1', '%20']) {
        await expectRefusal(
          400,
          'invalid query parameter',
          ground().client.get(`${own.path}/queued-jobs?limit=${limit}`, own.tokens),
        )
      }
    })
  })

  describe('may be asked about', () => {
    const wrong = (lane: Lane, which: 'Channel' | 'Consumer') => ({
      ...lane.tokens,
      [`X-Broker-${which}-Token`]: 'wrong',
    })

    it.each([
      ['GET', '/queued-jobs', 401],
      ['GET', '/job/JOB', 401],
      ['POST', '/job/JOB', 401],
      ['DELETE', '/job/JOB', 404],
      ['POST', '/job/JOB/requeue-dead-job', 401],
      ['DELETE', '/dlq', 404],
    ] as const)('by those who have the tokens: %s %s', async (method, path, unknownConsumer) => {
      const { client } = ground()
      const end = path.replace('JOB', await lane.jobIn('QUEUED'))
      const at = (base: string, headers = lane.tokens) => client.send(method, base + end, { headers })
      await expectRefusal(404, 'Request resource not found', at('/channel/none/consumer/none', {}))
      const unknown = `${lane.channelPath}/consumer/none`
      await expectRefusal(403, 'channel token does not match', at(unknown, wrong(lane, 'Channel')))
      const text = unknownConsumer === 401 ? 'consumer could not be found' : 'Request resource not found'
      await expectRefusal(unknownConsumer, text, at(unknown))
      await expectRefusal(403, 'consumer token does not match', at(lane.path, wrong(lane, 'Consumer')))
    })

    it('by its own consumer only', async () => {
      const { client } = ground()
      const job = await lane.jobIn('DEAD')
      // One on the same channel, and one with the same id on another.
      for (const other of [await lane.beside('pull'), await Lane.open(ground(), 'pull', lane.consumer)]) {
        const at = `${other.path}/job/${job}`
        await expectRefusal(401, 'job could not be found', client.get(at, other.tokens))
        await expectRefusal(401, 'job could not be found', other.move(job, 'INFLIGHT'))
        await expectRefusal(401, 'job could not be found', other.requeue(job))
        await expectRefusal(404, 'Request resource not found', other.erase(job))
      }
      for (const unknown of ['nope', 'dbsggslqmd2qb0aabo3g', '%', 'x'.repeat(300)]) {
        const id = encodeURIComponent(unknown)
        await expectRefusal(404, 'job could not be found', client.get(`${lane.path}/job/${id}`, lane.tokens))
        await expectRefusal(404, 'job could not be found', lane.move(id, 'INFLIGHT'))
        await expectRefusal(404, 'job could not be found', lane.requeue(id))
        await expectRefusal(404, 'Request resource not found', lane.erase(id))
      }
      expect(await lane.state(job)).toBe('DEAD')
    })

    it('of a push consumer, but not taken', async () => {
      const { client } = ground()
      const push = await Lane.open(ground(), 'push')
      await push.delivered(await push.broadcast('x'))
      await expectRefusal(412, 'consumer not pull based', client.get(`${push.path}/queued-jobs`, push.tokens))
      // Before the job is looked for.
      await expectRefusal(412, 'consumer not pull based', push.move('nope', 'INFLIGHT'))
      await expectRefusal(404, 'job could not be found', client.get(`${push.path}/job/nope`, push.tokens))
    })
  })
})

brokers(
  'a pull job that may be claimed once',
  (ground) => {
    it('waits for ever to be claimed, and is dead after that', async () => {
      const lane = await Lane.open(ground(), 'pull')
      const job = await lane.jobIn('QUEUED')
      await ground().jump(3600)
      await ground().pass(2)
      expect(await lane.state(job)).toBe('QUEUED')
      await expectStatus(202, lane.move(job, 'INFLIGHT'))
      await ground().jump(CLAIM_SECONDS)
      await ground().within(2.5, async () => {
        expect(await lane.state(job)).toBe('DEAD')
      })
      expect((await lane.dead()).DeadJobs).toMatchObject([{ RetryAttemptCount: 0, Exhausted: true }])
    })
  },
  { webhooks: { delivery: { maxRetry: 0 } } },
)

brokers(
  'a claim on a server that recovers nothing',
  (ground) => {
    it('never ends by itself', async () => {
      const lane = await Lane.open(ground(), 'pull')
      const job = await lane.jobIn('INFLIGHT')
      await ground().jump(3600)
      await ground().pass(2)
      expect(await lane.state(job)).toBe('INFLIGHT')
    })
  },
  { webhooks: { recovery: { enabled: false } } },
)
