/**
 * A client that does what the integration client of existing users does, and is stricter: it counts every callback, and one too
 * many is as wrong as one too few. Whether time passes by itself or is moved is up to whoever runs it.
 */
import { createHmac } from 'node:crypto'
import { expect } from 'vitest'
import { parseXid } from '../../../src/core/xid.ts'
import type { Receiver } from '../../world/receiver.ts'
import { rfc3339 } from '../../world/time.ts'
import { expectStatus } from '../../world/webhooks/broker.ts'
import type { Headers, WebhookAnswer, WebhookClient } from '../../world/webhooks/client.ts'
import type { DeadCounts, DeadPage, QueuedJob } from './lane.ts'

/** How time passes. */
export interface Pace {
  wait(seconds: number): Promise<void>
  within(seconds: number, holds: () => void | Promise<void>): Promise<void>
}

const SENDERS = 50
const PUSH = ['push-0', 'push-1', 'push-2', 'push-3', 'push-4'] as const
/** Registered to see how types are read; they get what the others get. */
const TYPED = { 'type-empty': '', 'type-push': 'push', 'type-pull': 'pull' } as const
/** Who gets callbacks. */
const RECEIVING = [...PUSH, 'type-empty', 'type-push'] as const
const PULL = ['pull-0', 'pull-1'] as const
const PRODUCER = { id: 'profile-producer', token: 'profile-producer-token' }
const A = { id: 'profile-a', token: 'profile-a-token' }
const B = { id: 'profile-b', token: 'profile-b-token' }

const tokenOf = (consumer: string) => `${consumer}-token`
const consumerTokens = (channel: typeof A, consumer: string): Headers => ({
  'X-Broker-Channel-Token': channel.token,
  'X-Broker-Consumer-Token': tokenOf(consumer),
})

/** Whom it speaks to: two servers on one store, wherever they run. */
export interface ProfileParties {
  readonly main: WebhookClient
  readonly gateway: WebhookClient
  readonly receiver: Receiver
  /** The present by the servers' clock. */
  now(): bigint
}

export class ProfileClient {
  readonly #main: WebhookClient
  readonly #gateway: WebhookClient
  readonly #receiver: Receiver
  readonly #now: () => bigint
  readonly #pace: Pace
  /** How many callbacks each path must have had so far. */
  readonly #expected = new Map<string, number>()

  constructor({ main, gateway, receiver, now }: ProfileParties, pace: Pace) {
    this.#main = main
    this.#gateway = gateway
    this.#receiver = receiver
    this.#now = now
    this.#pace = pace
  }

  async setUp(): Promise<void> {
    await this.#create(`/producer/${PRODUCER.id}`, { token: PRODUCER.token })
    for (const { id, token } of [A, B]) await this.#create(`/channel/${id}`, { token })
    for (const consumer of PUSH) await this.#create(...this.#consumer(A, consumer, 'push'))
    for (const consumer of PULL) await this.#create(...this.#consumer(B, consumer, 'pull'))
    for (const [consumer, type] of Object.entries(TYPED)) {
      const [path, form] = this.#consumer(A, consumer, type)
      const made = await expectStatus(200, this.#main.put(path, form))
      expect(made.json()).toMatchObject({ Type: type === '' ? 'push' : type })
    }
    const [path, form] = this.#consumer(A, 'type-wrong', 'wrongType')
    await expectStatus(400, this.#main.put(path, form))
  }

  /** So many messages; the first two callbacks are refused, and everything arrives all the same. */
  async load(step: number): Promise<void> {
    const bodies = Array.from({ length: step }, (_, n) =>
      JSON.stringify({ step, n, text: 'é'.repeat(n % 7) }),
    )
    let refused = 0
    for (const consumer of PUSH) {
      this.#receiver.answer(`/${consumer}`, () => {
        if (refused === 2) return { status: 204 }
        refused += 1
        this.#expectMore(consumer, 1)
        return { status: 404 }
      })
    }
    const before = this.#receiver.requests.length
    const headers = { 'Content-Type': 'application/json' }
    const queue = bodies.values()
    const senders = Array.from({ length: step > 10 ? SENDERS : 1 }, async () => {
      for (const body of queue) await expectStatus(201, this.#broadcast(A, body, headers))
    })
    await Promise.all(senders)
    this.#everyoneExpects(step)
    await this.#pace.within(2 * step + 8, () => {
      expect(refused).toBe(2)
      this.expectNothingElse()
    })
    const got = this.#receiver.requests.slice(before)
    expect(new Set(got.map((callback) => callback.headers['content-type']))).toEqual(
      new Set(['application/json']),
    )
    for (const consumer of RECEIVING) {
      const mine = got.filter(({ path }) => path === `/${consumer}`).map(({ body }) => body.toString())
      expect([...new Set(mine)].sort()).toEqual(bodies.toSorted())
    }
  }

  async pull(): Promise<void> {
    const [one, other] = PULL
    for (let n = 0; n < 40; n++) await expectStatus(201, this.#broadcast(B, `pull ${n}`))
    await this.#pace.wait(5)
    const jobs = await this.#queued(one, 25)
    expect([jobs.length, (await this.#queued(other, 25)).length]).toEqual([25, 25])
    for (const { ID } of jobs) expect(parseXid(ID), ID).not.toBe(null)
    for (const { ID } of jobs) await expectStatus(202, this.#move(one, ID, 'INFLIGHT', 10))
    await this.#pace.wait(3)
    expect((await this.#queued(other, 25)).length).toBe(25)
    expect((await this.#queued(one, 25)).length).toBe(15)
    const done = jobs[0]?.ID ?? ''
    await expectStatus(202, this.#move(one, done, 'DELIVERED'))
    await this.#pace.wait(3)
    await expectStatus(400, this.#move(one, done, 'INFLIGHT', 10))
    await this.#pace.wait(7)
    expect((await this.#queued(one, 40)).length).toBe(15)
    await this.#pace.wait(15)
    expect((await this.#queued(one, 40)).length).toBe(39)
  }

  /** A consumer that refuses everything, until its dead job is requeued. */
  async deadLetters(): Promise<void> {
    const client = this.#main
    const { path, consumer } = await this.#letOneDie()
    expect((await client.get(`${path}/dlq`)).json<DeadPage>().DeadJobs).toHaveLength(1)
    await this.#pace.within(18, async () => {
      const { consumers } = (await client.get('/dlq-status')).json<DeadCounts>()
      expect(consumers).toContainEqual(
        expect.objectContaining({ channelId: A.id, consumerId: consumer, deadCount: 1 }),
      )
    })
    const sample = `dead_job_count{channel="${A.id}",consumer="${consumer}"} 1`
    expect((await client.get('/metrics')).text).toContain(sample)
    expect((await this.#gateway.get('/metrics')).text).toContain(sample)
    this.#receiver.answer(`/${consumer}`, { status: 204 })
    const form = { requeue: tokenOf(consumer) }
    await expectStatus(202, client.send('POST', `${path}/dlq`, { form }))
    this.#expectMore(consumer, 1)
    await this.#pace.within(35, () => this.expectNothingElse())
    expect((await client.get(`${path}/dlq`)).json<DeadPage>().DeadJobs).toEqual([])
  }

  async scheduled(): Promise<void> {
    const client = this.#main
    const path = `/channel/${A.id}`
    const schedule = (minutes: number) =>
      this.#broadcast(A, `in ${minutes} minutes`, { 'X-Broker-Scheduled-For': this.#local(minutes) })
    await expectStatus(400, this.#broadcast(A, 'x', { 'X-Broker-Scheduled-For': '2025/12/31 23:59:59' }))
    await expectStatus(412, schedule(1))
    const { headers } = await expectStatus(201, schedule(3))
    const list = (await client.get(`${path}/scheduled-messages`)).json<{ result: readonly string[] }>()
    expect(list.result).toEqual([headers.location])
    expect((await this.#messageCounts()).SCHEDULED_SCHEDULED).toBe(1)
    this.#everyoneExpects(1)
    await this.#pace.within(300, () => this.expectNothingElse())
    await this.#pace.wait(2)
    expect((await client.get(headers.location ?? '')).json()).toMatchObject({ status: 'DISPATCHED' })
    for (const minutes of [2.5, 3, 3.5, 4, 4.5]) await expectStatus(201, schedule(minutes))
    this.#everyoneExpects(5)
    await this.#pace.within(360, () => this.expectNothingElse())
    const counts = await this.#messageCounts()
    expect([counts.SCHEDULED_SCHEDULED, counts.SCHEDULED_DISPATCHED]).toEqual([undefined, 6])
  }

  async removal(): Promise<void> {
    const client = this.#main
    const dead = await this.#letOneDie()
    const tokens = consumerTokens(A, dead.consumer)
    const [job] = (await client.get(`${dead.path}/dlq`)).json<DeadPage>().DeadJobs
    const id = /\/job\/([^/]+)/.exec(job?.JobRequeueURL ?? '')?.[1]
    await expectStatus(204, client.delete(`${dead.path}/job/${id}`, tokens))
    expect((await client.delete(`${dead.path}/dlq`, tokens)).text).toBe('{"deletedCount":0}\n')
    this.#receiver.answer(`/${dead.consumer}`, { status: 204 })
  }

  /** Signed requests, to the server that wants them. */
  async gateway(secret: string): Promise<void> {
    const client = this.#gateway
    const body = '{"test":"hello world"}'
    const post = (signature: string | null) =>
      client.post('/channel/hmac-test-channel/broadcast', body, {
        'X-Broker-Channel-Token': 'hmac-test-channel-token',
        'X-Broker-Producer-ID': 'hmac-test-producer',
        'X-Broker-Producer-Token': 'hmac-test-producer-token',
        ...(signature === null ? {} : { 'X-Broker-Signature': signature }),
      })
    const sign = (ageSeconds: number) => {
      const t = Number(this.#now() / 1_000_000n) - ageSeconds
      const mac = createHmac('sha256', Buffer.from(secret, 'base64')).update(`${t}.${body}`)
      return `t=${t},v1=${mac.digest('hex')}`
    }
    await expectStatus(200, client.get('/_status'))
    await expectStatus(401, post(null))
    await expectStatus(403, post(`${sign(0).split(',')[0]},v1=${'deadbeef'.repeat(4)}`))
    await expectStatus(403, post(sign(600)))
    await expectStatus(201, post(sign(0)))
    await expectStatus(201, post(sign(0)))
    // Both servers are on one database.
    await expectStatus(200, this.#main.get('/channel/hmac-test-channel'))
  }

  /** Every consumer got what it was to get, and nothing else came. */
  expectNothingElse(): void {
    const counts = Object.groupBy(this.#receiver.requests, ({ path }) => path)
    const found = Object.entries(counts).map(([path, all]) => [path, all?.length] as const)
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(this.#expected))
  }

  /** Creates it, then changes it under the condition that it got. */
  async #create(path: string, form: Record<string, string>): Promise<void> {
    const client = this.#main
    const made = await expectStatus(200, client.put(path, form))
    const got = await expectStatus(200, client.get(path))
    const since = got.header('last-modified')
    expect(made.header('last-modified')).toBe(since)
    const changed = await expectStatus(
      200,
      client.put(path, { ...form, name: 'Named' }, { 'If-Unmodified-Since': since }),
    )
    const { ChangedAt } = changed.json<{ ChangedAt: string }>()
    expect(new Date(ChangedAt).toUTCString()).toBe(changed.header('last-modified'))
  }

  #consumer(channel: typeof A, id: string, type: string): [path: string, form: Record<string, string>] {
    const callbackUrl = `${this.#receiver.url}/${id}`
    return [`/channel/${channel.id}/consumer/${id}`, { token: tokenOf(id), callbackUrl, type }]
  }

  #broadcast(channel: typeof A, body: string, headers: Headers = {}): Promise<WebhookAnswer> {
    return this.#main.post(`/channel/${channel.id}/broadcast`, body, {
      'X-Broker-Channel-Token': channel.token,
      'X-Broker-Producer-ID': PRODUCER.id,
      'X-Broker-Producer-Token': PRODUCER.token,
      ...headers,
    })
  }

  async #queued(consumer: string, limit: number): Promise<readonly QueuedJob[]> {
    const path = `/channel/${B.id}/consumer/${consumer}/queued-jobs?limit=${limit}`
    const answer = await this.#main.get(path, consumerTokens(B, consumer))
    return answer.json<{ Result: readonly QueuedJob[] }>().Result
  }

  #move(consumer: string, job: string, NextState: string, IncrementalTimeout?: number) {
    const path = `/channel/${B.id}/consumer/${consumer}/job/${job}`
    const body = JSON.stringify({ NextState, IncrementalTimeout })
    return this.#main.post(path, body, consumerTokens(B, consumer))
  }

  /** A message that the first push consumer refuses six times. */
  async #letOneDie(): Promise<{ path: string; consumer: string }> {
    const [consumer] = PUSH
    this.#everyoneExpects(1)
    this.#expectMore(consumer, 5)
    for (const other of PUSH.slice(1)) this.#receiver.answer(`/${other}`, { status: 204 })
    this.#receiver.answer(`/${consumer}`, { status: 404 })
    await expectStatus(201, this.#broadcast(A, 'refused'))
    await this.#pace.within(35, () => this.expectNothingElse())
    // Counted when it is received; half a second later it must be dead.
    await new Promise((resolve) => setTimeout(resolve, 500))
    return { path: `/channel/${A.id}/consumer/${consumer}`, consumer }
  }

  async #messageCounts(): Promise<Readonly<Record<string, number>>> {
    const answer = await this.#main.get(`/channel/${A.id}/messages-status`)
    const { counts } = answer.json<{ counts: Record<string, { Count: number }> }>()
    return Object.fromEntries(Object.entries(counts).map(([name, { Count }]) => [name, Count]))
  }

  /** So many minutes from now, as a clock in another zone shows it. */
  #local(minutes: number): string {
    const offset = 330n * 60_000_000n
    const there = this.#now() + BigInt(minutes * 60) * 1_000_000n + offset
    return rfc3339(there).replace('Z', '+05:30')
  }

  #expectMore(consumer: string, count: number): void {
    this.#expected.set(`/${consumer}`, (this.#expected.get(`/${consumer}`) ?? 0) + count)
  }

  #everyoneExpects(count: number): void {
    for (const consumer of RECEIVING) this.#expectMore(consumer, count)
  }
}
