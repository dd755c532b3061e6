/**
 * The one producer: writes records to topics and says for certain what became of each, or that it is uncertain.
 *
 * The library's producer takes a new identity when brokers have forgotten the old one and sends again, so a record can be written twice;
 * nor does it say whether anything was sent. Requests are made here instead. Identity and number stay the same for all tries: a broker
 * does not write records twice, and a lost answer comes with the next try.
 */
import type { Connection } from '@platformatic/kafka'
import { type Log, silentLog } from '../../core/log.ts'
import { aborted, sleep } from '../../core/waiting.ts'
import { type Meaning, meaningOf, RECORD_REFUSED, type RefusalReason, rightFor } from './answers.ts'
import { BrokerLink, lookUpTopics } from './brokers.ts'
import type { ConnectionSettings, FoundTopic } from './connection.ts'
import { isTrouble, type KafkaLibrary, type Message, messageOf, troubleOf } from './library.ts'
import type { Compression, OutgoingRecord, RecordBytes } from './record.ts'

/** Pinned: brokers from 2.7 to 4.x understand it, and its answers are known. */
const PRODUCE = { key: 0, version: 8 } as const
const ACKS_ALL = -1
/** Tries before anything was sent; an unanswered one costs more. What may have been sent is tried until the deadline. */
const MOST_TRIES = 20
const UNANSWERED_COST = 4
const PAUSE_MS = 200
/** Partitions are rarely added, and until then a key keeps its place. */
const TOPIC_VALID_MS = 10_000

export interface ProducerSettings {
  readonly connection: ConnectionSettings
  readonly compression: Compression
  /** Without an answer by then, a record is uncertain. */
  readonly publishTimeoutMs: number
}

export type PublishOutcome =
  | { readonly outcome: 'published'; readonly partition: number; readonly offset: bigint }
  | Unpublished

type Unpublished =
  /** Certainly not written. */
  | {
      readonly outcome: 'failed'
      readonly why: RefusalReason
      /** A broker's code; absent when none settles it. */
      readonly code?: string
      readonly message: string
    }
  /** May have been written, or may still be. */
  | { readonly outcome: 'uncertain'; readonly message: string }

/** By it brokers tell a second try from a second record. */
interface Identity {
  readonly id: bigint
  readonly epoch: number
  /** The next record's number, by partition. */
  readonly numbers: Map<string, number>
}

/** Records of one partition on their way, all or none. Choices stay: a try with other values could write them twice. */
interface Delivery {
  readonly topic: string
  readonly partition: number
  readonly messages: readonly Message[]
  identity: Identity | null
  number: number
  connection: Connection | null
  /** Some try may have written them. */
  isDoubtful: boolean
  /** Where the first of them is, or why none is. Once known, nothing more may be sent. */
  outcome: PublishOutcome | null
  trouble: string
  triesLeft: number
}

/** Connects on the first publish. Never throws. */
export class TopicProducer {
  readonly #settings: ProducerSettings
  readonly #log: Log
  #link: Promise<BrokerLink> | null = null
  #identity: Promise<Identity> | null = null
  readonly #topics = new Map<string, { readonly topic: FoundTopic; readonly validUntil: number }>()
  /** The last publish to each topic; the next one waits for it. */
  readonly #last = new Map<string, Promise<unknown>>()
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

  /** Publishes records to a topic in the order of each partition; gives an outcome for each. */
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
    let placed: readonly Message[] = []
    const looked = newDelivery(topic, -1, [])
    await this.#insist([looked], deadline, async ({ library }, { leaders }) => {
      placed = records.map((record) => messageOf(library, topic, record, leaders.length))
      looked.outcome = FOUND
    })
    const { outcome } = looked
    if (outcome !== null && outcome !== FOUND) return records.map(() => outcome)
    const groups = [...Map.groupBy(placed, ({ partition }) => partition)]
    const all = groups.map(([partition, messages]) => newDelivery(topic, partition, messages))
    await this.#deliver(all, deadline)
    // One record of a partition may be to blame for all: each is sent alone.
    const alone = all
      .filter(isOfOne)
      .flatMap(({ partition, messages }) =>
        messages.map((message) => newDelivery(topic, partition, [message])),
      )
    for (const one of alone) await this.#deliver([one], deadline)
    const outcomes = new Map([...all, ...alone].flatMap(outcomesOf))
    return placed.map((message) => outcomes.get(message) ?? NOT_TRIED)
  }

  #deliver(all: readonly Delivery[], deadline: AbortSignal): Promise<void> {
    return this.#insist(all, deadline, (link, topic, open) => this.#sendAll(link, topic, open))
  }

  /** Repeats a step with all open deliveries until none is open, or the deadline. */
  async #insist(all: readonly Delivery[], deadline: AbortSignal, step: Step): Promise<void> {
    const tooLate = aborted(deadline)
    while (!deadline.aborted) {
      await Promise.race([this.#tryOnce(open(all), step), tooLate])
      for (const delivery of open(all))
        if (delivery.triesLeft <= 0 && !delivery.isDoubtful) this.#giveUp(delivery)
      if (open(all).length === 0) return
      await sleep(PAUSE_MS, deadline)
    }
    for (const delivery of open(all)) this.#giveUp(delivery)
  }

  /** One try; deliveries still open afterwards may be tried again. */
  async #tryOnce(deliveries: readonly Delivery[], step: Step): Promise<void> {
    try {
      const link = await this.#open()
      const topic = await this.#find(link, deliveries[0]?.topic ?? '')
      if (typeof topic !== 'string') await step(link, topic, deliveries)
      else for (const delivery of deliveries) this.#onAnswer(delivery, topic, delivery.isDoubtful)
    } catch (error) {
      for (const delivery of open(deliveries)) this.#onTrouble(delivery, error)
    }
  }

  async #sendAll(link: BrokerLink, { leaders }: FoundTopic, deliveries: readonly Delivery[]): Promise<void> {
    for (const delivery of deliveries) delivery.identity ??= await this.#identify(link)
    const requests = Map.groupBy(deliveries, ({ partition, identity }) =>
      // Nearly always the same: an earlier one only for what may have been written under it.
      [leaders[partition] ?? -1, identity?.id].join(),
    )
    await Promise.all(
      [...requests.values()].map((some) =>
        this.#send(link, leaders[some[0]?.partition ?? -1] ?? -1, some).catch((error: unknown) => {
          for (const delivery of open(some)) this.#onTrouble(delivery, error)
        }),
      ),
    )
  }

  /** Deliveries of one identity to one broker. */
  async #send(link: BrokerLink, leader: number, deliveries: readonly Delivery[]): Promise<void> {
    const connection = await link.to(leader)
    const [{ identity } = { identity: null }] = deliveries
    if (identity === null) return
    const { compression, publishTimeoutMs } = this.#settings
    const sending = open(deliveries).map((delivery) => {
      const { isDoubtful: wasDoubtful, topic, partition } = delivery
      const place = `${topic}:${partition}`
      const number = wasDoubtful ? delivery.number : (identity.numbers.get(place) ?? 0)
      return { delivery, wasDoubtful, place, number }
    })
    const request = link.library.produceV8.createRequest(
      ACKS_ALL,
      publishTimeoutMs,
      sending.flatMap(({ delivery }) => delivery.messages),
      {
        compression,
        producerId: identity.id,
        producerEpoch: identity.epoch,
        sequences: new link.library.NumericMap(sending.map(({ place, number }) => [place, number])),
      },
    )
    if (sending.length === 0) return
    // From here on a try without an answer proves nothing.
    for (const { delivery, number } of sending)
      Object.assign(delivery, { connection, number, isDoubtful: true })
    const answers = await send(link, connection, request)
    for (const { delivery, wasDoubtful, place, number } of sending) {
      const { partition, messages } = delivery
      const answer = answers.get(partition)
      if (answer === undefined) throw new Error('the broker said nothing about the record')
      const { is } = meaningOf(answer.code)
      if (is === 'written' || (is === 'number_taken' && wasDoubtful)) {
        identity.numbers.set(place, number + messages.length)
        delivery.outcome ??= { outcome: 'published', partition, offset: answer.offset }
      } else this.#onAnswer(delivery, answer.code, wasDoubtful)
    }
  }

  #onTrouble(delivery: Delivery, error: unknown): void {
    const { code, message } = troubleOf(error)
    if (meaningOf(code).is === 'refused') {
      this.#onAnswer(delivery, code, delivery.isDoubtful)
      return
    }
    delivery.trouble = code === message ? code : `${code}: ${message}`
    delivery.triesLeft -= isTrouble(error, 'PLT_KFK_NETWORK') ? UNANSWERED_COST : 1
    this.#topics.delete(delivery.topic)
    if (code === 'SASL_AUTHENTICATION_FAILED') this.#giveUp(delivery)
  }

  /** `wasDoubtful`: a try before the answered one may have written it. */
  #onAnswer(delivery: Delivery, code: string, wasDoubtful: boolean): void {
    if (delivery.outcome !== null) return
    const meaning: Meaning = meaningOf(code)
    delivery.trouble = code
    delivery.triesLeft -= 1
    delivery.isDoubtful = wasDoubtful || meaning.is === 'doubtful'
    this.#topics.delete(delivery.topic)
    const isForgotten = meaning.is === 'stranger' || meaning.is === 'number_taken'
    if (isForgotten) this.#identity = null
    if (isForgotten && !delivery.isDoubtful) delivery.identity = null
    if (delivery.isDoubtful && (isForgotten || meaning.is === 'refused')) this.#giveUp(delivery)
    else if (meaning.is === 'refused') {
      const message = `${code}${rightFor(code, delivery.topic)}`
      delivery.outcome = { outcome: 'failed', why: meaning.why, code, message }
    }
  }

  /** No further try. The connection is cut and the identity dropped: a late try must not overtake others. */
  #giveUp(delivery: Delivery): void {
    const { trouble: message, isDoubtful } = delivery
    delivery.outcome ??= isDoubtful
      ? { outcome: 'uncertain', message }
      : { outcome: 'failed', why: 'unavailable', message }
    if (!isDoubtful) return
    delivery.connection?.socket?.destroy()
    this.#identity = null
  }

  #open(): Promise<BrokerLink> {
    this.#link ??= BrokerLink.open(this.#settings.connection)
    return this.#link
  }

  /** The topic, or the code that says why it cannot be written to. */
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

/** For those who publish one record at a time. */
export type Publisher = Pick<TopicProducer, 'publish' | 'close'>

type Step = (link: BrokerLink, topic: FoundTopic, open: readonly Delivery[]) => Promise<void>

const NOT_TRIED: Unpublished = { outcome: 'failed', why: 'unavailable', message: 'it was not tried' }

/** Of a delivery of nothing: its topic is known. */
const FOUND: PublishOutcome = { outcome: 'published', partition: -1, offset: -1n }

const newDelivery = (topic: string, partition: number, messages: readonly Message[]): Delivery => ({
  topic,
  partition,
  messages,
  identity: null,
  number: 0,
  connection: null,
  isDoubtful: false,
  outcome: null,
  trouble: 'no broker answered',
  triesLeft: MOST_TRIES,
})

const open = (deliveries: readonly Delivery[]): readonly Delivery[] =>
  deliveries.filter(({ outcome }) => outcome === null)

/** Whether one record of several is to blame for the refusal of all. */
const isOfOne = ({ messages, outcome }: Delivery): boolean =>
  messages.length > 1 && outcome?.outcome === 'failed' && RECORD_REFUSED.includes(outcome.code ?? '')

/** Published messages have consecutive offsets. */
const outcomesOf = ({ messages, outcome }: Delivery): readonly (readonly [Message, PublishOutcome])[] =>
  messages.map((message, index) => [
    message,
    outcome?.outcome === 'published'
      ? { ...outcome, offset: outcome.offset + BigInt(index) }
      : (outcome ?? NOT_TRIED),
  ])

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
): Promise<ReadonlyMap<number, { readonly code: string; readonly offset: bigint }>> {
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
  return new Map(
    answer.responses
      .flatMap(({ partitionResponses }) => partitionResponses)
      .map(({ index, errorCode, baseOffset }) => [index, { code: link.code(errorCode), offset: baseOffset }]),
  )
}
