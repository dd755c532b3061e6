/**
 * Writes records to topics, and says for certain what became of each, or that it is not certain.
 *
 * The library's producer takes a new identity when brokers have forgotten the old one and sends again, so that a record can be written
 * twice; and it does not say whether anything was sent. So requests are made here: with an identity and a number that stay the same for
 * all tries of a record, a broker that has written it once does not write it again, and an answer that was lost comes with the next try.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connection } from '@platformatic/kafka'
import type { Log } from '../../../core/log.ts'
import {
  BrokerLink,
  type FoundTopic,
  isTrouble,
  type KafkaLibrary,
  lookUpTopics,
  troubleOf,
} from '../client.ts'
import type { OutgoingRecord } from '../event.ts'
import type { Publisher, PublishOutcome } from '../ports.ts'
import type { KafkaSettings } from '../settings.ts'

const PRODUCE = { key: 0, version: 8 } as const
const ACKS_ALL = -1
/** Tries before anything was sent; one that no broker answered costs more. What may have been sent is tried until the deadline. */
const MOST_TRIES = 20
const UNANSWERED_COST = 4
const PAUSE_MS = 200
/** Partitions are added seldom, and until then the place of a key is the same. */
const TOPIC_VALID_MS = 10_000

/** By this brokers tell a second try from a second record. */
interface Identity {
  readonly id: bigint
  readonly epoch: number
  /** The number of the next record of a partition. */
  readonly numbers: Map<string, number>
}

/** One record on its way. What was once chosen stays: a try with other values could write it twice. */
interface Delivery {
  readonly record: OutgoingRecord
  message: Message | null
  identity: Identity | null
  number: number
  connection: Connection | null
  /** Some try may have written it. */
  isDoubtful: boolean
  /** Nothing may be sent any more. */
  isOver: boolean
  /** Why the last try brought nothing. */
  trouble: string
  triesLeft: number
}

type Message = ReturnType<typeof messageOf>

/** Connects when the first record is published. */
export class TopicPublisher implements Publisher {
  readonly #settings: KafkaSettings
  readonly #log: Log
  #link: Promise<BrokerLink> | null = null
  #identity: Promise<Identity> | null = null
  readonly #topics = new Map<string, { readonly topic: FoundTopic; readonly validUntil: number }>()
  /** The last publish of each topic; the next one waits for it. */
  readonly #last = new Map<string, Promise<PublishOutcome>>()
  /** Call off what is under way. */
  readonly #onClose = new Set<() => void>()
  #isClosed = false

  constructor(settings: KafkaSettings, log: Log) {
    this.#settings = settings
    this.#log = log
  }

  async publish(record: OutgoingRecord): Promise<PublishOutcome> {
    const { topic } = record
    const mine = Promise.resolve(this.#last.get(topic)).then(() => this.#deliver(record))
    this.#last.set(topic, mine)
    const outcome = await mine
    if (this.#last.get(topic) === mine) this.#last.delete(topic)
    if (outcome.outcome !== 'published')
      this.#log.warn({ topic, ...outcome }, 'a record was not published to Kafka')
    return outcome
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const callOff of this.#onClose) callOff()
    await Promise.all(this.#last.values())
    const link = await this.#link
    link?.close()
  }

  /** Tries until there is an outcome, or the deadline. */
  async #deliver(record: OutgoingRecord): Promise<PublishOutcome> {
    const delivery: Delivery = {
      record,
      message: null,
      identity: null,
      number: 0,
      connection: null,
      isDoubtful: false,
      isOver: false,
      trouble: 'no broker answered',
      triesLeft: MOST_TRIES,
    }
    const { promise: tooLate, resolve } = Promise.withResolvers<null>()
    const calledOff = new AbortController()
    const callOff = () => {
      calledOff.abort()
      resolve(null)
    }
    const timer = setTimeout(callOff, this.#settings.publishTimeoutMs)
    this.#onClose.add(callOff)
    try {
      while (!calledOff.signal.aborted && !this.#isClosed) {
        const outcome = await Promise.race([this.#tryOnce(delivery), tooLate])
        if (outcome !== null) return outcome
        if (delivery.triesLeft <= 0 && !delivery.isDoubtful) break
        await sleep(PAUSE_MS, undefined, { signal: calledOff.signal }).catch(() => {})
      }
      return this.#giveUp(delivery)
    } finally {
      clearTimeout(timer)
      this.#onClose.delete(callOff)
    }
  }

  /** One try. null: another one may bring more. */
  async #tryOnce(delivery: Delivery): Promise<PublishOutcome | null> {
    try {
      const link = await this.#open()
      const topic = await this.#find(link, delivery.record.topic)
      if (typeof topic === 'string') return this.#onAnswer(delivery, topic, delivery.isDoubtful)
      const message = delivery.message ?? messageOf(link.library, delivery.record, topic.leaders.length)
      const connection = await link.to(topic.leaders[message.partition] ?? -1)
      const identity = delivery.identity ?? (await this.#identify(link))
      const place = `${message.topic}:${message.partition}`
      const number = delivery.isDoubtful ? delivery.number : (identity.numbers.get(place) ?? 0)
      const { compression, publishTimeoutMs } = this.#settings
      const request = link.library.produceV8.createRequest(ACKS_ALL, publishTimeoutMs, [message], {
        compression,
        producerId: identity.id,
        producerEpoch: identity.epoch,
        sequences: new link.library.NumericMap([[place, number]]),
      })
      if (delivery.isOver) return null
      const wasDoubtful = delivery.isDoubtful
      // From here on a try without an answer proves nothing.
      Object.assign(delivery, { message, connection, identity, number, isDoubtful: true })
      const { code, offset } = await send(link, connection, request)
      const { is } = meaningOf(code)
      const isWritten = is === 'written' || (is === 'number_taken' && wasDoubtful)
      if (!isWritten) return this.#onAnswer(delivery, code, wasDoubtful)
      identity.numbers.set(place, number + 1)
      return { outcome: 'published', partition: message.partition, offset }
    } catch (error) {
      const { code, message } = troubleOf(error)
      if (meaningOf(code).is === 'refused') return this.#onAnswer(delivery, code, delivery.isDoubtful)
      delivery.trouble = code === message ? code : `${code}: ${message}`
      delivery.triesLeft -= isTrouble(error, 'PLT_KFK_NETWORK') ? UNANSWERED_COST : 1
      this.#topics.delete(delivery.record.topic)
      return code === 'SASL_AUTHENTICATION_FAILED' ? this.#giveUp(delivery) : null
    }
  }

  /** `wasDoubtful`: some try before the one that was answered may have written it. */
  #onAnswer(delivery: Delivery, code: string, wasDoubtful: boolean): PublishOutcome | null {
    const meaning: Meaning = meaningOf(code)
    delivery.trouble = code
    delivery.triesLeft -= 1
    delivery.isDoubtful = wasDoubtful || meaning.is === 'doubtful'
    this.#topics.delete(delivery.record.topic)
    if (meaning.is === 'stranger' || meaning.is === 'number_taken') {
      this.#identity = null
      if (delivery.isDoubtful) return this.#giveUp(delivery)
      delivery.identity = null
    }
    if (meaning.is !== 'refused') return null
    if (delivery.isDoubtful) return this.#giveUp(delivery)
    delivery.isOver = true
    return { outcome: 'failed', why: meaning.why, message: `${code}${rightFor(code, delivery.record.topic)}` }
  }

  /** No further try. What may be under way is cut off, and its identity is not used again: a late try must not overtake others. */
  #giveUp(delivery: Delivery): PublishOutcome {
    delivery.isOver = true
    if (!delivery.isDoubtful) return { outcome: 'failed', why: 'unavailable', message: delivery.trouble }
    delivery.connection?.socket?.destroy()
    this.#identity = null
    return { outcome: 'uncertain', message: delivery.trouble }
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

const rightFor = (code: string, topic: string): string => {
  if (code === 'TOPIC_AUTHORIZATION_FAILED') return `; grant Write and Describe on topic ${topic}`
  // Brokers before 2.8; later ones ask for Write on any topic.
  return code === 'CLUSTER_AUTHORIZATION_FAILED'
    ? '; grant Write on the topic, or IdempotentWrite on the cluster'
    : ''
}

/** The record as the library takes it. Keys go where Java's clients put them; without a key, any partition is as good as another. */
function messageOf(
  library: KafkaLibrary,
  { topic, key, value, headers }: OutgoingRecord,
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

type FailureWhy = Extract<PublishOutcome, { outcome: 'failed' }>['why']

/** What the answer of a broker to a record proves. */
type Meaning =
  | { readonly is: 'written' }
  /** The broker has a record with this number, and has forgotten where. It is ours when an earlier try may have written it. */
  | { readonly is: 'number_taken' }
  /** It was not written, and will not be. */
  | { readonly is: 'refused'; readonly why: FailureWhy }
  /** It was not written, but may be when it is sent again. */
  | { readonly is: 'not_now' }
  /** It was not written: the broker knows nothing of the sender, or not of the records before this one. */
  | { readonly is: 'stranger' }
  /** It may have been written before this went wrong. */
  | { readonly is: 'doubtful' }

const MEANINGS: readonly (readonly [Meaning, ...codes: readonly string[]])[] = [
  [{ is: 'written' }, ''],
  [{ is: 'number_taken' }, 'DUPLICATE_SEQUENCE_NUMBER'],
  [{ is: 'refused', why: 'too_large' }, 'MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'],
  [{ is: 'refused', why: 'topic_missing' }, 'UNKNOWN_TOPIC_OR_PARTITION', 'INVALID_TOPIC_EXCEPTION'],
  [{ is: 'refused', why: 'not_authorized' }, 'TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED'],
  [
    { is: 'refused', why: 'unavailable' },
    ...[
      'INVALID_RECORD',
      'INVALID_TIMESTAMP',
      'CORRUPT_MESSAGE',
      'INVALID_REQUIRED_ACKS',
      'POLICY_VIOLATION',
    ],
    ...['UNSUPPORTED_COMPRESSION_TYPE', 'UNSUPPORTED_FOR_MESSAGE_FORMAT'],
  ],
  [
    { is: 'not_now' },
    ...['NOT_LEADER_OR_FOLLOWER', 'LEADER_NOT_AVAILABLE', 'FENCED_LEADER_EPOCH', 'NOT_ENOUGH_REPLICAS'],
    'THROTTLING_QUOTA_EXCEEDED',
  ],
  [
    { is: 'stranger' },
    ...['UNKNOWN_PRODUCER_ID', 'OUT_OF_ORDER_SEQUENCE_NUMBER', 'INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'],
    'INVALID_PRODUCER_ID_MAPPING',
  ],
]

/** What a code means; one that is not in the table proves nothing. */
const meaningOf = (code: string): Meaning =>
  MEANINGS.find(([, ...codes]) => codes.includes(code))?.[0] ?? { is: 'doubtful' }
