/**
 * The one producer: writes records to topics, and says for certain what became of each, or that it is not certain.
 *
 * The library's producer takes a new identity when brokers have forgotten the old one and sends again, so that a record can be written
 * twice; and it does not say whether anything was sent. So requests are made here: with an identity and a number that stay the same for
 * all tries, a broker that has written records once does not write them again, and an answer that was lost comes with the next try.
 */
import type { Connection } from '@platformatic/kafka'
import { type Log, silentLog } from '../../core/log.ts'
import { aborted, sleep } from '../../core/waiting.ts'
import { type Meaning, meaningOf, RECORD_REFUSED, type RefusalReason, rightFor } from './answers.ts'
import { BrokerLink, type FoundTopic, lookUpTopics } from './brokers.ts'
import type { ConnectionSettings } from './connection.ts'
import { isTrouble, type KafkaLibrary, troubleOf } from './library.ts'
import type { Compression, OutgoingRecord, RecordBytes } from './record.ts'

/** Pinned: brokers from 2.7 to 4.x understand it, and what its answers mean is known. */
const PRODUCE = { key: 0, version: 8 } as const
const ACKS_ALL = -1
/** Tries before anything was sent; one that no broker answered costs more. What may have been sent is tried until the deadline. */
const MOST_TRIES = 20
const UNANSWERED_COST = 4
const PAUSE_MS = 200
/** Partitions are added seldom, and until then the place of a key is the same. */
const TOPIC_VALID_MS = 10_000

export interface ProducerSettings {
  readonly connection: ConnectionSettings
  readonly compression: Compression
  /** What has no answer by then is uncertain. */
  readonly publishTimeoutMs: number
}

/** What became of a record that was to be published. */
export type PublishOutcome =
  | { readonly outcome: 'published'; readonly partition: number; readonly offset: bigint }
  | Unpublished

type Unpublished =
  /** It is certain that it was not written. */
  | {
      readonly outcome: 'failed'
      readonly why: RefusalReason
      /** What a broker said; left out when none said anything that settles it. */
      readonly code?: string
      readonly message: string
    }
  /** It may have been written, or may still be. */
  | { readonly outcome: 'uncertain'; readonly message: string }

/** By this brokers tell a second try from a second record. */
interface Identity {
  readonly id: bigint
  readonly epoch: number
  /** The number of the next record of a partition. */
  readonly numbers: Map<string, number>
}

/** Records of one partition on their way, all or none. What was once chosen stays: a try with other values could write them twice. */
interface Delivery {
  readonly topic: string
  /** Empty while it is not known which partitions there are. */
  readonly messages: readonly Message[]
  identity: Identity | null
  number: number
  connection: Connection | null
  /** Some try may have written them. */
  isDoubtful: boolean
  /** Nothing may be sent any more. */
  isOver: boolean
  /** Why the last try brought nothing. */
  trouble: string
  triesLeft: number
}

type Message = ReturnType<typeof messageOf>

/** Connects when the first record is published. Never throws. */
export class TopicProducer {
  readonly #settings: ProducerSettings
  readonly #log: Log
  #link: Promise<BrokerLink> | null = null
  #identity: Promise<Identity> | null = null
  readonly #topics = new Map<string, { readonly topic: FoundTopic; readonly validUntil: number }>()
  /** The last publish to each topic; the next one waits for it. */
  readonly #last = new Map<string, Promise<unknown>>()
  /** Call off what is under way. */
  readonly #underWay = new Set<AbortController>()
  #isClosed = false

  constructor(settings: ProducerSettings, log: Log = silentLog) {
    this.#settings = settings
    this.#log = log
  }

  async publish(record: OutgoingRecord): Promise<PublishOutcome> {
    const [outcome] = await this.publishAll(record.topic, [record])
    if (outcome === undefined) throw new Error('a record has no outcome')
    if (outcome.outcome !== 'published')
      this.#log.warn({ topic: record.topic, ...outcome }, 'a record was not published to Kafka')
    return outcome
  }

  /** Publishes records to a topic, each partition's in their order, with one request for each; gives an outcome for each. */
  async publishAll(topic: string, records: readonly RecordBytes[]): Promise<readonly PublishOutcome[]> {
    if (records.length === 0) return []
    const mine = Promise.resolve(this.#last.get(topic)).then(() => this.#inTime(topic, records))
    this.#last.set(topic, mine)
    const outcomes = await mine
    if (this.#last.get(topic) === mine) this.#last.delete(topic)
    return outcomes
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const calledOff of this.#underWay) calledOff.abort()
    await Promise.all(this.#last.values())
    const link = await this.#link?.catch(() => null)
    link?.close()
  }

  async #inTime(topic: string, records: readonly RecordBytes[]): Promise<readonly PublishOutcome[]> {
    const calledOff = new AbortController()
    const timer = setTimeout(() => calledOff.abort(), this.#settings.publishTimeoutMs)
    this.#underWay.add(calledOff)
    if (this.#isClosed) calledOff.abort()
    try {
      return await this.#deliverAll(topic, records, calledOff.signal)
    } finally {
      clearTimeout(timer)
      this.#underWay.delete(calledOff)
    }
  }

  async #deliverAll(
    topic: string,
    records: readonly RecordBytes[],
    deadline: AbortSignal,
  ): Promise<readonly PublishOutcome[]> {
    const placed = await this.#insist(newDelivery(topic, []), deadline, async ({ library }, { leaders }) =>
      records.map((record) => messageOf(library, topic, record, leaders.length)),
    )
    if ('outcome' in placed) return records.map(() => placed)
    const outcomes = new Map<Message, PublishOutcome>()
    const groups = Map.groupBy(placed, ({ partition }) => partition)
    await Promise.all(
      [...groups.values()].map(async (messages) => {
        const first = await this.#deliver(topic, messages, deadline)
        // One of them may be to blame: the others must not fail with it.
        const isOfOne = messages.length > 1 && 'code' in first && RECORD_REFUSED.includes(first.code ?? '')
        for (const [index, message] of messages.entries())
          outcomes.set(message, isOfOne ? await this.#deliver(topic, [message], deadline) : nth(first, index))
      }),
    )
    return placed.map((message) => outcomes.get(message) ?? NOT_TRIED)
  }

  /** Messages of one partition; where they were published, the outcome is that of the first. */
  #deliver(topic: string, messages: readonly Message[], deadline: AbortSignal): Promise<PublishOutcome> {
    const delivery = newDelivery(topic, messages)
    return this.#insist<PublishOutcome>(delivery, deadline, (link, found) =>
      this.#send(delivery, link, found),
    )
  }

  /** Takes a step until it brings something, or the deadline. */
  async #insist<T>(delivery: Delivery, deadline: AbortSignal, step: Step<T>): Promise<T | Unpublished> {
    const tooLate = aborted(deadline).then(() => null)
    while (!deadline.aborted) {
      const done = await Promise.race([this.#tryOnce(delivery, step), tooLate])
      if (done !== null) return done
      if (delivery.triesLeft <= 0 && !delivery.isDoubtful) break
      await sleep(PAUSE_MS, deadline)
    }
    return this.#giveUp(delivery)
  }

  /** One try. null: another one may bring more. */
  async #tryOnce<T>(delivery: Delivery, step: Step<T>): Promise<T | Unpublished | null> {
    try {
      const link = await this.#open()
      const topic = await this.#find(link, delivery.topic)
      if (typeof topic === 'string') return this.#onAnswer(delivery, topic, delivery.isDoubtful)
      return await step(link, topic)
    } catch (error) {
      const { code, message } = troubleOf(error)
      if (meaningOf(code).is === 'refused') return this.#onAnswer(delivery, code, delivery.isDoubtful)
      delivery.trouble = code === message ? code : `${code}: ${message}`
      delivery.triesLeft -= isTrouble(error, 'PLT_KFK_NETWORK') ? UNANSWERED_COST : 1
      this.#topics.delete(delivery.topic)
      return code === 'SASL_AUTHENTICATION_FAILED' ? this.#giveUp(delivery) : null
    }
  }

  async #send(delivery: Delivery, link: BrokerLink, { leaders }: FoundTopic): Promise<PublishOutcome | null> {
    const { topic, messages } = delivery
    const partition = messages[0]?.partition ?? -1
    const connection = await link.to(leaders[partition] ?? -1)
    const identity = delivery.identity ?? (await this.#identify(link))
    const place = `${topic}:${partition}`
    const number = delivery.isDoubtful ? delivery.number : (identity.numbers.get(place) ?? 0)
    const { compression, publishTimeoutMs } = this.#settings
    const request = link.library.produceV8.createRequest(ACKS_ALL, publishTimeoutMs, [...messages], {
      compression,
      producerId: identity.id,
      producerEpoch: identity.epoch,
      sequences: new link.library.NumericMap([[place, number]]),
    })
    if (delivery.isOver) return null
    const wasDoubtful = delivery.isDoubtful
    // From here on a try without an answer proves nothing.
    Object.assign(delivery, { connection, identity, number, isDoubtful: true })
    const { code, offset } = await send(link, connection, request)
    const { is } = meaningOf(code)
    const isWritten = is === 'written' || (is === 'number_taken' && wasDoubtful)
    if (!isWritten) return this.#onAnswer(delivery, code, wasDoubtful)
    identity.numbers.set(place, number + messages.length)
    return { outcome: 'published', partition, offset }
  }

  /** `wasDoubtful`: some try before the one that was answered may have written it. */
  #onAnswer(delivery: Delivery, code: string, wasDoubtful: boolean): Unpublished | null {
    const meaning: Meaning = meaningOf(code)
    delivery.trouble = code
    delivery.triesLeft -= 1
    delivery.isDoubtful = wasDoubtful || meaning.is === 'doubtful'
    this.#topics.delete(delivery.topic)
    if (meaning.is === 'stranger' || meaning.is === 'number_taken') {
      this.#identity = null
      if (delivery.isDoubtful) return this.#giveUp(delivery)
      delivery.identity = null
    }
    if (meaning.is !== 'refused') return null
    if (delivery.isDoubtful) return this.#giveUp(delivery)
    delivery.isOver = true
    return { outcome: 'failed', why: meaning.why, code, message: `${code}${rightFor(code, delivery.topic)}` }
  }

  /** No further try. What may be under way is cut off, and its identity is not used again: a late try must not overtake others. */
  #giveUp(delivery: Delivery): Unpublished {
    const { trouble: message } = delivery
    delivery.isOver = true
    if (!delivery.isDoubtful) return { outcome: 'failed', why: 'unavailable', message }
    delivery.connection?.socket?.destroy()
    this.#identity = null
    return { outcome: 'uncertain', message }
  }

  #open(): Promise<BrokerLink> {
    this.#link ??= BrokerLink.open(this.#settings.connection)
    return this.#link
  }

  /** The topic, or the code of why it cannot be written to. */
  async #find(link: BrokerLink, name: string): Promise<FoundTopic | string> {
    const known = this.#topics.get(name)
    if (known !== undefined && known.validUntil > performance.now()) return known.topic
    const { found, forbidden } = await lookUpTopics(link, [name])
    const topic = found.get(name)
    if (topic === undefined) {
      return forbidden.includes(name) ? 'TOPIC_AUTHORIZATION_FAILED' : 'UNKNOWN_TOPIC_OR_PARTITION'
    }
    this.#topics.set(name, { topic, validUntil: performance.now() + TOPIC_VALID_MS })
    return topic
  }

  #identify(link: BrokerLink): Promise<Identity> {
    this.#identity ??= newIdentity(link).catch((error) => {
      this.#identity = null
      throw error
    })
    return this.#identity
  }
}

/** The producer as those see it who publish one record at a time. */
export type Publisher = Pick<TopicProducer, 'publish' | 'close'>

type Step<T> = (link: BrokerLink, topic: FoundTopic) => Promise<T | null>

const NOT_TRIED: Unpublished = { outcome: 'failed', why: 'unavailable', message: 'it was not tried' }

const newDelivery = (topic: string, messages: readonly Message[]): Delivery => ({
  topic,
  messages,
  identity: null,
  number: 0,
  connection: null,
  isDoubtful: false,
  isOver: false,
  trouble: 'no broker answered',
  triesLeft: MOST_TRIES,
})

/** The outcome of a message so many behind the first. */
const nth = (first: PublishOutcome, index: number): PublishOutcome =>
  first.outcome === 'published' ? { ...first, offset: first.offset + BigInt(index) } : first

async function newIdentity(link: BrokerLink): Promise<Identity> {
  const { api } = link.library.initProducerIdV3
  const { producerId, producerEpoch } = await api.async(await link.any(), null, 0, -1n, -1)
  return { id: producerId, epoch: producerEpoch, numbers: new Map() }
}

type ProduceAnswer = ReturnType<KafkaLibrary['produceV8']['parseResponse']>
type ProduceRequest = ReturnType<KafkaLibrary['produceV8']['createRequest']>

async function send(
  link: BrokerLink,
  connection: Connection,
  request: ProduceRequest,
): Promise<{ readonly code: string; readonly offset: bigint }> {
  const { promise, resolve, reject } = Promise.withResolvers<ProduceAnswer>()
  connection.send<ProduceAnswer>(
    PRODUCE.key,
    PRODUCE.version,
    () => request,
    link.library.produceV8.parseResponse,
    false,
    false,
    (error, answer) => (error || answer === undefined ? reject(error) : resolve(answer)),
  )
  const answer = await link.answered(promise)
  const partition = answer.responses[0]?.partitionResponses[0]
  if (partition === undefined) throw new Error('the broker said nothing about the record')
  return { code: link.code(partition.errorCode), offset: partition.baseOffset }
}

/** The record as the library takes it. Keys go where Java's clients put them; without a key, any partition is as good as another. */
function messageOf(
  library: KafkaLibrary,
  topic: string,
  { key, value, headers }: RecordBytes,
  partitions: number,
) {
  const keyBytes = key === null ? undefined : toBuffer(key)
  const spot =
    keyBytes === undefined
      ? Math.floor(Math.random() * partitions)
      : library.compatibilityPartitioner({ topic }, keyBytes)
  return {
    topic,
    partition: spot % partitions,
    // Names stay bytes: as texts, those that repeat would become one. The wire knows null, which these types do not.
    headers: new Map(
      headers.map((header) => [toBuffer(header.name), header.value && toBuffer(header.value)]),
    ) as Map<Buffer, Buffer>,
    ...(keyBytes === undefined ? {} : { key: keyBytes }),
    value: (value === null ? null : toBuffer(value)) as Buffer,
  }
}

/** A view of its own each time: names are keys of a map by what they are, not by what they say. */
const toBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
