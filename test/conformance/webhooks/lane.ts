/** A producer, a channel and one consumer of it: what most promises about messages and jobs need, and the calls about them. */
import { expect } from 'vitest'
import type { Received } from '../../world/receiver.ts'
import { type Broker, expectStatus } from '../../world/webhooks/broker.ts'
import type { Headers, WebhookAnswer } from '../../world/webhooks/client.ts'

export interface QueuedJob {
  readonly ID: string
  readonly Priority: number
  readonly IncrementalTimeout: number
  readonly Message: {
    readonly MessageID: string
    readonly Payload: string
    readonly PayloadBase64?: string
    readonly Headers: Readonly<Record<string, string>>
    readonly ContentType: string
  }
}

export interface DeadJob {
  readonly ID: string
  readonly Status: string
  readonly StatusChangedAt: string
  readonly MessageURL: string
  readonly JobRequeueURL: string
  readonly RetryAttemptCount: number
  readonly Exhausted: boolean
  readonly LastError: string
}

export interface DeadPage {
  readonly DeadJobs: readonly DeadJob[]
  readonly Pages: { readonly next?: string; readonly previous?: string }
}

export interface DeadCounts {
  readonly consumers: readonly {
    readonly channelId: string
    readonly channelName: string
    readonly consumerId: string
    readonly consumerName: string
    readonly deadCount: number
  }[]
}

export const JOB_STATES = ['QUEUED', 'INFLIGHT', 'DELIVERED', 'DEAD'] as const
export type JobStateName = (typeof JOB_STATES)[number]

let counter = 0
/** An id that no other test uses. */
export const freshId = (prefix: string): string => `${prefix}-${process.pid}-${++counter}`

/** The id of the message that a broadcast was accepted as. */
export function idInLocation(answer: WebhookAnswer): string {
  const location = answer.header('location')
  return decodeURIComponent(location.slice(location.lastIndexOf('/') + 1))
}

export class Lane {
  readonly channel: string
  readonly consumer: string
  readonly producer: string
  /** `/channel/{c}` */
  readonly channelPath: string
  /** `/channel/{c}/consumer/{k}` */
  readonly path: string
  /** Where callbacks of the consumer go to. */
  readonly hook: string
  readonly broker: Broker

  private constructor(broker: Broker, channel: string, consumer: string, producer: string) {
    this.broker = broker
    this.channel = channel
    this.consumer = consumer
    this.producer = producer
    this.channelPath = `/channel/${channel}`
    this.path = `${this.channelPath}/consumer/${consumer}`
    this.hook = `/hook/${channel}/${consumer}`
  }

  /** A new channel with a consumer of this type, and a new producer. */
  static async open(broker: Broker, type: 'push' | 'pull', consumer = freshId('k')): Promise<Lane> {
    const lane = new Lane(broker, freshId('c'), consumer, freshId('p'))
    await expectStatus(200, broker.client.put(`/producer/${lane.producer}`, { token: lane.producerToken }))
    await expectStatus(200, broker.client.put(lane.channelPath, { token: lane.channelToken }))
    await lane.#register(type)
    return lane
  }

  /** One more consumer of the same channel. */
  async beside(type: 'push' | 'pull', consumer = freshId('k')): Promise<Lane> {
    const lane = new Lane(this.broker, this.channel, consumer, this.producer)
    await lane.#register(type)
    return lane
  }

  /** The same, at another server on the same store. */
  at(broker: Broker): Lane {
    return new Lane(broker, this.channel, this.consumer, this.producer)
  }

  get channelToken(): string {
    return `token-of-${this.channel}`
  }

  get producerToken(): string {
    return `token-of-${this.producer}`
  }

  get consumerToken(): string {
    return `token-of-${this.consumer}`
  }

  /** The tokens that the calls of a consumer need. */
  get tokens(): Headers {
    return { 'X-Broker-Channel-Token': this.channelToken, 'X-Broker-Consumer-Token': this.consumerToken }
  }

  /** What a broadcast needs. */
  get sender(): Headers {
    return {
      'X-Broker-Channel-Token': this.channelToken,
      'X-Broker-Producer-ID': this.producer,
      'X-Broker-Producer-Token': this.producerToken,
    }
  }

  /** A broadcast, whatever comes of it. */
  post(body: string | Uint8Array, headers: Headers = {}): Promise<WebhookAnswer> {
    return this.broker.client.post(`${this.channelPath}/broadcast`, body, { ...this.sender, ...headers })
  }

  /** A broadcast that must be accepted; gives the id of the message. */
  async broadcast(body: string | Uint8Array, headers: Headers = {}): Promise<string> {
    return idInLocation(await expectStatus(201, this.post(body, headers)))
  }

  /** The callbacks that the consumer got so far, of one message or of all. */
  callbacks(messageId?: string): Received[] {
    return this.broker.receiver.at(this.hook, messageId)
  }

  /** The one callback of a message, once it is there. */
  async delivered(messageId: string): Promise<Received> {
    await this.broker.eventually(() => {
      expect(this.callbacks(messageId).length).toBeGreaterThan(0)
    })
    expect(this.callbacks(messageId)).toHaveLength(1)
    return this.callbacks(messageId)[0] ?? expect.fail('there is one')
  }

  /** What a pull consumer sees. */
  async queued(query = ''): Promise<readonly QueuedJob[]> {
    const answer = await this.broker.client.get(`${this.path}/queued-jobs${query}`, this.tokens)
    return answer.json<{ Result: readonly QueuedJob[] }>().Result
  }

  /** The one job that a pull consumer sees of this message. */
  async jobOf(messageId: string): Promise<string> {
    const jobs = (await this.queued('?limit=100')).filter((job) => job.Message.MessageID === messageId)
    expect(jobs).toHaveLength(1)
    return jobs[0]?.ID ?? ''
  }

  async state(job: string): Promise<string> {
    const answer = await this.broker.client.get(`${this.path}/job/${job}`, this.tokens)
    return answer.json<{ Status: string }>().Status
  }

  /** Asks for another state, with a body as given. */
  send(job: string, body: string): Promise<WebhookAnswer> {
    return this.broker.client.post(`${this.path}/job/${job}`, body, this.tokens)
  }

  /** Asks for another state. */
  move(job: string, NextState: string, IncrementalTimeout?: number): Promise<WebhookAnswer> {
    return this.send(job, JSON.stringify({ NextState, IncrementalTimeout }))
  }

  /** Broadcasts a message and brings its pull job into a state. */
  async jobIn(state: JobStateName): Promise<string> {
    const job = await this.jobOf(await this.broadcast(`to be ${state}`))
    if (state !== 'QUEUED') await expectStatus(202, this.move(job, 'INFLIGHT'))
    if (state === 'DELIVERED' || state === 'DEAD') await expectStatus(202, this.move(job, state))
    return job
  }

  async dead(query = ''): Promise<DeadPage> {
    return (await this.broker.client.get(`${this.path}/dlq${query}`)).json<DeadPage>()
  }

  /** The number in `/dlq-status`; null when the consumer is not listed. */
  async deadCount(): Promise<number | null> {
    const { consumers } = (await this.broker.client.get('/dlq-status')).json<DeadCounts>()
    const mine = consumers.filter(
      ({ channelId, consumerId }) => channelId === this.channel && consumerId === this.consumer,
    )
    return mine[0]?.deadCount ?? null
  }

  requeue(job: string): Promise<WebhookAnswer> {
    return this.broker.client.send('POST', `${this.path}/job/${job}/requeue-dead-job`, {
      headers: this.tokens,
    })
  }

  requeueAll(): Promise<WebhookAnswer> {
    return this.broker.client.send('POST', `${this.path}/dlq`, { form: { requeue: this.consumerToken } })
  }

  erase(job: string): Promise<WebhookAnswer> {
    return this.broker.client.delete(`${this.path}/job/${job}`, this.tokens)
  }

  purge(): Promise<WebhookAnswer> {
    return this.broker.client.delete(`${this.path}/dlq`, this.tokens)
  }

  async #register(type: 'push' | 'pull'): Promise<void> {
    const callbackUrl = `${this.broker.receiver.url}${this.hook}`
    await expectStatus(
      200,
      this.broker.client.put(this.path, { token: this.consumerToken, type, callbackUrl }),
    )
  }
}
