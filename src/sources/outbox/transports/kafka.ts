/**
 * Delivers messages as records of a Kafka topic: the payload as the value, the rest as headers.
 *
 * The record's key is the ordering key, because order exists only within a partition: messages of a line stay in order
 * for consumers, and a compacted topic keeps the last of each. The tenant is no part of it, so producers that know no
 * tenants find the same partition. Without an ordering key it is the idempotency key, which spreads evenly.
 */
import type { Static } from 'typebox'
import { Batcher } from '../../../core/batcher.ts'
import { ConfigError } from '../../../core/settings/config-error.ts'
import { type Fixed, section } from '../../../core/settings/kinds.ts'
import { PermanentError } from '../../../core/thrown.ts'
import { untilAborted } from '../../../core/waiting.ts'
import { RECORD_REFUSED } from '../../../outgoing/kafka/answers.ts'
import {
  type ConnectionSettings,
  connectionOf,
  problemsOfConnection,
} from '../../../outgoing/kafka/connection.ts'
import type { ConnectionOptions } from '../../../outgoing/kafka/connection-keys.ts'
import { requireKafkaLibrary } from '../../../outgoing/kafka/library.ts'
import { type PublishOutcome, TopicProducer } from '../../../outgoing/kafka/producer.ts'
import {
  COMPRESSIONS,
  type Compression,
  isTopicName,
  type RecordBytes,
} from '../../../outgoing/kafka/record.ts'
import { checkNames, quoted, readOptions, refuse, refuseFor } from '../refusal.ts'
import type { OutboxMessage } from '../table/message.ts'
import { KAFKA_KEYS } from './keys.ts'
import type { Transport } from './transport.ts'

const KafkaTransportSchema = section('A transport to Kafka.', KAFKA_KEYS)

export type KafkaTransportOptions = Fixed<Static<typeof KafkaTransportSchema>>

/** Refuses wrong options by name. Files are relative to the working directory. */
export function kafkaTransport(options: KafkaTransportOptions): Transport {
  checkNames(options, Object.keys(KAFKA_KEYS))
  const { topic, compression = 'none', ...connection } = readOptions(KafkaTransportSchema, options)
  return kafkaTransportOn(readConnection(connection), { topic, compression })
}

export function kafkaTransportOn(
  connection: ConnectionSettings,
  { topic, compression = 'none' }: Pick<KafkaTransportOptions, 'topic' | 'compression'>,
): Transport {
  if (typeof topic !== 'string' || !isTopicName(topic))
    refuse('topic', `${quoted(topic)} is no name of a topic`)
  if (!COMPRESSIONS.includes(compression)) {
    refuse('compression', `${quoted(compression)} is none of ${COMPRESSIONS.join(', ')}`)
  }
  requireKafkaLibrary()
  const sender = new KafkaSender(connection, topic, compression)
  return {
    name: 'kafka',
    deliver: (message, signal) => sender.send(recordOf(message), signal),
    close: () => sender.close(),
  }
}

function readConnection(options: ConnectionOptions): ConnectionSettings {
  for (const problem of problemsOfConnection(options)) refuseFor(problem)
  try {
    return connectionOf(options, process.cwd(), '') ?? refuse('servers', 'it names none')
  } catch (error) {
    if (error instanceof ConfigError) refuseFor(error.problems[0] ?? '')
    throw error
  }
}

function recordOf(message: OutboxMessage): RecordBytes {
  const { payload, key, orderingKey, eventType, tenantId, correlationId } = message
  const about = new Map([
    ['idempotency-key', key],
    ['event-type', eventType],
    ['tenant-id', tenantId],
    ['correlation-id', correlationId],
  ])
  // The application cannot pass for another message.
  const own = Object.entries(message.headers).filter(([name]) => !about.has(name.toLowerCase()))
  const headers = [...about, ...own].flatMap(([name, value]) =>
    value === null ? [] : { name: Buffer.from(name), value: Buffer.from(value) },
  )
  return { key: Buffer.from(orderingKey ?? key), value: payload, headers }
}

/** The next try may succeed. */
export class KafkaDeliveryFailed extends Error {
  override readonly name = 'KafkaDeliveryFailed'
}

interface Sending {
  readonly record: RecordBytes
  readonly signal: AbortSignal
}

/** Half of the megabyte to which brokers bound a batch by default. */
const MOST_BYTES = 524_288
const MOST_RECORDS = 500
const FRAME_BYTES = 64

/** Less than a dispatcher waits, so that Kafka's own error is reported. */
const SEND_MS = 20_000

/**
 * Writes many records with one request: those that come while one is under way make the next. One batch at a time, so
 * that records of a key keep their order.
 */
class KafkaSender {
  readonly #topic: string
  readonly #producer: TopicProducer
  readonly #gather: Batcher<Sending, PublishOutcome | null>
  #isClosed = false

  constructor(connection: ConnectionSettings, topic: string, compression: Compression) {
    this.#topic = topic
    this.#producer = new TopicProducer({ connection, compression, publishTimeoutMs: SEND_MS })
    this.#gather = new Batcher((batch) => this.#write(batch), { most: MOST_RECORDS, mostWeight: MOST_BYTES })
  }

  /** Resolves when all in-sync replicas have the record. Given up, it may still be written. */
  async send(record: RecordBytes, signal: AbortSignal): Promise<void> {
    const outcome = await untilAborted(this.#gather.do({ record, signal }, weightOf(record)), signal)
    if (outcome !== null && outcome.outcome !== 'published') throw this.#failureOf(outcome)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#producer.close()
  }

  /** What was given up is delivered anew. */
  async #write(batch: readonly Sending[]): Promise<readonly (PublishOutcome | null)[]> {
    const wanted = batch.filter(({ signal }) => !signal.aborted)
    const outcomes = await this.#producer.publishAll(
      this.#topic,
      wanted.map(({ record }) => record),
    )
    const found = new Map(wanted.map((sending, index) => [sending, outcomes[index] ?? null]))
    return batch.map((sending) => found.get(sending) ?? null)
  }

  #failureOf(outcome: Exclude<PublishOutcome, { outcome: 'published' }>): Error {
    if (this.#isClosed) return new KafkaDeliveryFailed('the transport was closed')
    if (outcome.outcome === 'uncertain')
      return new KafkaDeliveryFailed(`Kafka did not say whether it took the message: ${outcome.message}`)
    const { why, message, code = message } = outcome
    const text = `Kafka did not take the message: ${code}`
    if (RECORD_REFUSED.includes(code)) return new PermanentError(text)
    if (why === 'not_authorized') {
      // Brokers say `CLUSTER_…` to a user who may not write to any topic.
      return new PermanentError(`${text}; its user needs Write and Describe on the topic '${this.#topic}'`)
    }
    return new KafkaDeliveryFailed(why === 'topic_missing' ? `${text}: Unknown topic ${this.#topic}.` : text)
  }
}

const weightOf = ({ key, value, headers }: RecordBytes): number => {
  let bytes = FRAME_BYTES + (key?.length ?? 0) + (value?.length ?? 0)
  for (const header of headers) bytes += header.name.length + (header.value?.length ?? 0)
  return bytes
}
