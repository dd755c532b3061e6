/**
 * Servers, a receiver and the reference beside each other: every act is done by one of the servers and by the reference, and after each
 * all that can be asked about dead jobs is asked. A receiver decides what becomes of attempts, and tells the reference.
 */
import { expect } from 'vitest'
import { type Instant, later } from '../../../src/core/clock.ts'
import { BartlebyError } from '../../../src/core/errors.ts'
import { formatHttpDate } from '../../../src/core/timestamp.ts'
import type { Xid } from '../../../src/core/xid.ts'
import type { LetterStatus } from '../../../src/letters/letter.ts'
import type { Office } from '../../../src/office.ts'
import { Refused } from '../../../src/sources/webhooks/refusal.ts'
import { type Channel, type Consumer, statusOf } from '../../../src/sources/webhooks/webhook.ts'
import type { Database } from '../../../src/store/database.ts'
import { openDatabase } from '../../../src/store/open.ts'
import { expectVerified } from '../../world/store-world.ts'
import type { StoreKind } from '../../world/stores.ts'
import { Broker, type BrokerOptions } from '../../world/webhooks/broker.ts'
import { expectExact, foldAll } from '../../world/webhooks/office.ts'
import { jobsIn } from '../../world/webhooks/rows.ts'
import { told } from '../../world/webhooks/told.ts'
import { MAX_RETRY, type ModelJob, Reference } from './reference.ts'

const SETTINGS: BrokerOptions = {
  webhooks: {
    delivery: {
      maxRetry: MAX_RETRY,
      backoffSeconds: [1],
      rationalDelaySeconds: 1,
      timeoutSeconds: 10,
      breaker: { failures: 0 },
    },
    dlq: { batchSize: 2 },
  },
}

export const CHANNELS = ['c', 'd'] as const
/** The same id on two channels, and one that is called. */
export const CONSUMERS = ['c/k', 'c/push', 'd/k'] as const

const ACTOR = 'the test'
const NAMELESS = { name: null, token: 'ctok' }

/** Whether something was done; otherwise it was refused. */
export async function succeeds(act: Promise<unknown>): Promise<boolean> {
  try {
    await act
    return true
  } catch (error) {
    if (error instanceof Refused || error instanceof BartlebyError) return false
    throw error
  }
}

const OUTSIDE: Readonly<Record<ModelJob['state'], string>> = {
  queued: 'QUEUED',
  'in flight': 'INFLIGHT',
  delivered: 'DELIVERED',
  dead: 'DEAD',
  gone: '',
}

export class World {
  readonly reference = new Reference()
  readonly db: Database
  /** Whether the receiver accepts what it gets. */
  isAccepting = true
  readonly #brokers: Broker[]
  readonly #ids = new Map<string, Xid>()
  /** What the receiver answered and the reference does not know yet: the message, and whether it was accepted. */
  readonly #answers: (readonly [message: string, isAccepted: boolean])[] = []
  #messages = 0
  /** Messages that wait for their time, by channel. */
  readonly #scheduled: { readonly channel: string; readonly message: string; readonly at: Instant }[] = []

  private constructor(brokers: Broker[], url: string) {
    this.#brokers = brokers
    this.db = openDatabase(url, { poolSize: 2 })
    this.broker.receiver.answer('/push', ({ headers }) => {
      const { isAccepting } = this
      this.#answers.push([headers['x-broker-message-id'] ?? '', isAccepting])
      return { status: isAccepting ? 204 : 500 }
    })
  }

  static async open(kind: StoreKind, servers: number): Promise<World> {
    const first = await Broker.start(kind, SETTINGS)
    const brokers = [first]
    while (brokers.length < servers) brokers.push(await Broker.start(kind, { ...SETTINGS, beside: first }))
    const world = new World(brokers, first.place.url)
    for (const channel of CHANNELS) await world.office(0).webhooks.channels.put(channel, NAMELESS, null)
    for (const consumer of CONSUMERS) await world.register(consumer, 0)
    return world
  }

  async close(): Promise<void> {
    await this.db.close()
    for (const broker of this.#brokers) await broker.stop()
  }

  get broker(): Broker {
    return this.#brokers[0] ?? expect.fail('there is no server')
  }

  /** One of the offices. */
  office(by: number): Office {
    return (this.#brokers[by % this.#brokers.length] ?? this.broker).office
  }

  /** Another server takes the place of one. */
  async restart(by: number): Promise<void> {
    const place = by % this.#brokers.length
    const fresh = await Broker.start(this.broker.kind, { ...SETTINGS, beside: this.broker })
    const [old] = this.#brokers.splice(place, 1, fresh)
    await old?.stop()
  }

  async register(consumer: string, by: number): Promise<void> {
    const { channel, consumerId } = await this.#channelOf(consumer)
    const type = consumerId === 'push' ? 'push' : 'pull'
    const callbackUrl = `${this.broker.receiver.url}/${consumerId}`
    const request = { name: null, token: 'ktok', callbackUrl, type }
    await this.office(by).webhooks.consumers.put(channel, consumerId, request, null)
    this.reference.register(consumer, type === 'pull')
  }

  async unregister(consumer: string, by: number): Promise<void> {
    const found = await this.consumer(consumer)
    const { channel, consumerId } = await this.#channelOf(consumer)
    const condition = formatHttpDate(found.updatedAt)
    const done = await succeeds(this.office(by).webhooks.consumers.delete(channel, consumerId, condition))
    expect(done).toBe(this.reference.unregister(consumer))
  }

  /** A message, at once or after so many seconds. */
  async broadcast(channelId: string, by: number, afterSeconds: number | null): Promise<void> {
    const channel = await this.#channel(channelId)
    const message = `m${++this.#messages}`
    const content = { payload: Buffer.from(message), contentType: 'text/plain', priority: 0, headers: [] }
    const sender = { channel: channel.number, channelId, producer: channel.id }
    const at = afterSeconds === null ? null : later(this.broker.now, BigInt(afterSeconds) * 1_000_000n)
    const draft = { messageId: message, content, scheduledFor: at }
    await this.office(by).webhooks.broadcasts.accept(sender, draft)
    if (at === null) this.reference.dispatch(channelId, message)
    else this.#scheduled.push({ channel: channelId, message, at })
  }

  /** Lets time pass: claims lapse, retries are made, scheduled messages are dispatched. */
  async pass(seconds: number): Promise<void> {
    await this.broker.settle()
    this.#absorb()
    for (const job of this.reference.find('in flight', true)) this.reference.failed(job)
    await this.broker.jump(seconds)
    for (const due of this.#scheduled.filter(({ at }) => at <= this.broker.now)) {
      this.#scheduled.splice(this.#scheduled.indexOf(due), 1)
      this.reference.dispatch(due.channel, due.message)
    }
  }

  fold(): Promise<void> {
    return foldAll(this.db, this.broker.clock)
  }

  /** The consumer as it is registered now. */
  async consumer(name: string): Promise<Consumer> {
    const { channel, consumerId } = await this.#channelOf(name)
    const found = await this.office(0).webhooks.consumers.get(channel, consumerId)
    return found ?? expect.fail(`there is no consumer ${name}`)
  }

  idOf({ message, consumer }: ModelJob): Xid {
    return this.#ids.get(`${message} ${consumer}`) ?? expect.fail(`there is no job of ${message}`)
  }

  /** Retries the letter of a job, or gives it another status. */
  async act(job: ModelJob, by: number, act: 'retry' | LetterStatus): Promise<void> {
    const { letters } = this.office(by)
    const { items } = await letters.list({ engine: 'webhooks', correlationId: job.message }, { limit: 20 })
    const letter = items.find(({ sourceId }) => sourceId === this.idOf(job))
    if (letter === undefined) expect.fail(`the job of ${job.message} has no letter`)
    else if (act === 'retry') await letters.retry(letter, { edit: null, notes: null, actor: ACTOR })
    else await letters.change(letter, { status: act, notes: ACTOR, actor: ACTOR })
  }

  /** How often and how far a job came, as its consumer is told: what a job that was made anew begins with. */
  async refresh(job: ModelJob): Promise<void> {
    const { attempts, exhausted } = await this.office(0).webhooks.jobs.get(
      await this.consumer(job.consumer),
      this.idOf(job),
    )
    Object.assign(job, { attempts, exhausted })
  }

  /** Everybody says what the reference says, at once. */
  async check(): Promise<void> {
    await expectExact(this.db)
    await this.broker.eventually(async () => {
      this.#absorb()
      await this.#expectSameJobs()
    })
    await expectExact(this.db)
    const dead = this.reference.dead()
    for (const { client } of this.#brokers) expect(await told(client)).toEqual({ status: dead, gauge: dead })
  }

  verify(): Promise<void> {
    return expectVerified({ db: this.db, clock: this.broker.clock })
  }

  /** Tells the reference what the receiver answered. */
  #absorb(): void {
    for (const [message, isAccepted] of this.#answers.splice(0)) {
      const job = this.reference.jobs.get(`${message} c/push`)
      if (job?.state !== 'queued') expect.fail(`${message} was delivered although it is ${job?.state}`)
      else if (isAccepted) this.reference.delivered(job)
      else this.reference.failed(job)
    }
  }

  async #expectSameJobs(): Promise<void> {
    const found = (await jobsIn(this.db)).map(({ id, state, messageId, channelId, consumerId }) => {
      const key = `${messageId} ${channelId}/${consumerId}`
      this.#ids.set(key, id)
      return [key, statusOf(state)] as const
    })
    const expected = [...this.reference.jobs].map(([key, { state }]) => [key, OUTSIDE[state]] as const)
    expect(Object.fromEntries(found)).toEqual(
      Object.fromEntries(expected.filter(([, status]) => status !== '')),
    )
  }

  async #channel(channelId: string): Promise<Channel> {
    return (await this.office(0).webhooks.channels.get(channelId)) ?? expect.fail(`there is no ${channelId}`)
  }

  async #channelOf(consumer: string): Promise<{ readonly channel: Channel; readonly consumerId: string }> {
    const [channelId = '', consumerId = ''] = consumer.split('/')
    return { channel: await this.#channel(channelId), consumerId }
  }
}
