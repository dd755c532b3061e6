/**
 * Books of dead jobs to which a story can be told: those of the office, and those that are kept by checkpoints. Jobs and consumers go
 * by the names that the story gives them; a consumer is `<channel>/<consumer>`.
 */
import type { Xid } from '../../../src/core/xid.ts'
import { Refused } from '../../../src/sources/webhooks/refusal.ts'
import type { Channel, Consumer } from '../../../src/sources/webhooks/webhook.ts'
import type { CountedOffice } from '../../world/webhooks/office.ts'
import { NaiveInstance, type NaiveOptions, NaiveStore } from './naive.ts'

export const K = 'c/k'

/** What is told, and what is there. */
export interface Reading {
  readonly counted: number
  readonly actual: number
}

export interface Books {
  /** Lets microseconds pass. */
  pass(us: number): Promise<void>
  /** A job dies: a new one, or one that was requeued or taken. */
  die(job: string, consumer?: string): Promise<void>
  requeue(job: string): Promise<void>
  requeueAll(consumer?: string): Promise<void>
  /** The consumer takes a dead job. */
  take(job: string): Promise<void>
  /** Deletes a dead job in the name of a consumer, who may not have the right to. */
  erase(job: string, consumer?: string): Promise<void>
  purge(consumer?: string): Promise<void>
  /** Brings the totals up to date. */
  fold(): Promise<void>
  /** Reads the number of dead jobs. */
  read(consumer?: string): Promise<void>
  /** What was read, in turn. */
  readonly readings: readonly Reading[]
}

export type Story = (books: Books) => Promise<void>

const SECOND = 1_000_000

/** The books of the office. */
export class OfficeBooks implements Books {
  readonly readings: Reading[] = []
  readonly #house: CountedOffice
  readonly #prefix: string
  readonly #channels = new Map<string, Channel>()
  readonly #consumers = new Map<string, Consumer>()
  readonly #jobs = new Map<string, { readonly id: Xid; readonly consumer: string }>()

  /** `name` keeps them apart from other books of the same office. */
  constructor(house: CountedOffice, name: string) {
    this.#house = house
    this.#prefix = name
  }

  pass(us: number): Promise<void> {
    return this.#house.pass(BigInt(us))
  }

  async die(name: string, consumerName = K): Promise<void> {
    const { channel, consumer } = await this.#find(consumerName)
    const known = this.#jobs.get(name)
    if (known === undefined) {
      const id = await this.#house.dead(channel, consumer)
      this.#jobs.set(name, { id, consumer: consumerName })
      return
    }
    const { jobs } = this.#house.office.webhooks
    const { status } = await jobs.get(consumer, known.id)
    if (status === 'QUEUED') await jobs.move(consumer, known.id, 'INFLIGHT', 0)
    await jobs.move(consumer, known.id, 'DEAD', 0)
  }

  async requeue(name: string): Promise<void> {
    const { id, consumer } = await this.#job(name)
    await this.#house.office.webhooks.jobs.requeue(consumer, id)
  }

  async requeueAll(consumerName = K): Promise<void> {
    await this.#house.office.webhooks.bulk.requeueAll((await this.#find(consumerName)).consumer, 'the test')
  }

  async take(name: string): Promise<void> {
    const { id, consumer } = await this.#job(name)
    await this.#house.office.webhooks.jobs.move(consumer, id, 'INFLIGHT', 0)
  }

  async erase(name: string, consumerName = K): Promise<void> {
    const { id } = await this.#job(name)
    const { consumer } = await this.#find(consumerName)
    try {
      await this.#house.office.webhooks.jobs.erase(consumer, id)
    } catch (error) {
      if (!(error instanceof Refused)) throw error
    }
  }

  async purge(consumerName = K): Promise<void> {
    await this.#house.office.webhooks.bulk.purge((await this.#find(consumerName)).consumer, 'the test')
  }

  fold(): Promise<void> {
    return this.#house.fold()
  }

  async read(consumerName = K): Promise<void> {
    const { channel, consumer } = await this.#find(consumerName)
    const { counted, jobs } = await this.#house.sheet(channel, consumer)
    this.readings.push({ counted: counted ?? 0, actual: jobs })
  }

  async #job(name: string): Promise<{ readonly id: Xid; readonly consumer: Consumer }> {
    const known = this.#jobs.get(name)
    if (known === undefined) throw new Error(`there is no job ${name}`)
    return { id: known.id, consumer: (await this.#find(known.consumer)).consumer }
  }

  async #find(name: string): Promise<{ readonly channel: Channel; readonly consumer: Consumer }> {
    const [channelId = '', consumerId = ''] = name.split('/')
    let channel = this.#channels.get(channelId)
    channel ??= await this.#house.channel(`${this.#prefix} ${channelId}`)
    this.#channels.set(channelId, channel)
    let consumer = this.#consumers.get(name)
    consumer ??= await this.#house.consumer(channel, consumerId)
    this.#consumers.set(name, consumer)
    return { channel, consumer }
  }
}

/** Books that are kept by checkpoints. */
export class NaiveBooks implements Books {
  readonly readings: Reading[] = []
  readonly store: NaiveStore
  readonly instance: NaiveInstance
  now = 1_000 * SECOND
  readonly #consumers = new Set<string>()

  constructor(options: NaiveOptions = {}) {
    this.store = new NaiveStore(options)
    this.instance = new NaiveInstance(this.store)
  }

  async pass(us: number): Promise<void> {
    this.now += us
  }

  async die(job: string, consumer = K): Promise<void> {
    if (!this.#consumers.has(consumer)) {
      const [channel = '', publicId = ''] = consumer.split('/')
      this.store.consumer(consumer, { channel, publicId })
      this.#consumers.add(consumer)
    }
    this.store.die(job, consumer, this.now)
  }

  async requeue(job: string): Promise<void> {
    this.instance.requeue(job)
  }

  async requeueAll(consumer = K): Promise<void> {
    this.instance.requeueAll(consumer)
  }

  async take(job: string): Promise<void> {
    this.instance.take(job)
  }

  async erase(job: string, consumer = K): Promise<void> {
    this.instance.remove(job, consumer)
  }

  async purge(consumer = K): Promise<void> {
    this.instance.purge(consumer)
  }

  async fold(): Promise<void> {
    this.instance.checkpoint(this.now)
  }

  async read(consumer = K): Promise<void> {
    this.readings.push({ counted: this.store.counted(consumer), actual: this.store.actual(consumer) })
  }
}
