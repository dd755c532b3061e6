/**
 * Writes records to a topic, many with one request: those that come while a request is under way make the next one. There is one request
 * at a time, so that records of one key lie in the topic in the order in which they were given.
 */
import type { Producer } from '@platformatic/kafka'
import { Gather } from '../../core/gather.ts'
import { PermanentError } from '../../core/thrown.ts'
import {
  breakConnections,
  calm,
  clientOptions,
  isTrouble,
  loadKafkaLibrary,
  troubleOf,
} from '../../kafka/client.ts'
import type { Compression, ConnectionSettings } from '../../kafka/settings.ts'
import { untilAborted } from '../../outgoing/waiting.ts'

/** Delivery to Kafka failed; the next try may succeed. */
export class KafkaDeliveryFailed extends Error {
  override readonly name = 'KafkaDeliveryFailed'
}

/** A record to write; a key is never left out. */
export interface KafkaRecord {
  readonly key: Buffer
  readonly value: Buffer
  readonly headers: Map<Buffer, Buffer>
}

interface Errand {
  readonly record: KafkaRecord
  readonly signal: AbortSignal
}

type RecordProducer = Producer<Buffer, Buffer, Buffer, Buffer>

/** Brokers bound a batch as they bound a single record, by one megabyte unless they are told otherwise. */
const MOST_BYTES = 524_288
const MOST_RECORDS = 500
/** What a record takes beside its bytes, at most. */
const FRAME_BYTES = 64

/** Less than a dispatcher waits for a delivery, so that what is wrong is told by the one who knows it. */
const SEND_MS = 20_000
/** The library takes fewer than two for without end. */
const RETRIES = 2
const RETRY_DELAY_MS = 250

/** Broker errors that a record meets every time, and others do not. */
const RECORD_REFUSED = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD'] as const
/** Those that every record on the topic meets. */
const TOPIC_REFUSED = ['TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED'] as const

export class KafkaSender {
  readonly #connection: ConnectionSettings
  readonly #topic: string
  readonly #compression: Compression
  readonly #gather: Gather<Errand, undefined>
  #producer: Promise<RecordProducer> | null = null
  #isClosed = false

  constructor(connection: ConnectionSettings, topic: string, compression: Compression) {
    this.#connection = connection
    this.#topic = topic
    this.#compression = compression
    this.#gather = new Gather((batch) => this.#send(batch), {
      most: MOST_RECORDS,
      mostWeight: MOST_BYTES,
      // One that is too large is found by sending each alone; some are then there twice, with the same key.
      meetsAll: (error) => !(error instanceof RecordRefused),
    })
  }

  /** Resolves when all replicas that are in sync have the record. Given up, it may still be written. */
  async send(record: KafkaRecord, signal: AbortSignal): Promise<void> {
    await untilAborted(this.#gather.do({ record, signal }, weightOf(record)), signal)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const producer = await this.#producer?.catch(() => null)
    if (producer) await ended(producer)
  }

  async #send(batch: readonly Errand[]): Promise<readonly undefined[]> {
    // Nobody waits for what was given up; it will be delivered anew.
    const wanted = batch.filter(({ signal }) => !signal.aborted)
    if (wanted.length > 0) await this.#write(wanted.map(({ record }) => record))
    return batch.map(() => undefined)
  }

  async #write(records: readonly KafkaRecord[]): Promise<void> {
    if (this.#isClosed) throw new KafkaDeliveryFailed('the transport was closed')
    this.#producer ??= this.#open()
    const opened = this.#producer
    try {
      const producer = await opened
      const messages = records.map((record) => ({ topic: this.#topic, ...record }))
      await withinTime(producer.send({ messages }))
    } catch (error) {
      const failure = failureOf(error, this.#topic)
      // What became of the records is not known: the numbers that this producer gave them are spent.
      if (!(failure instanceof PermanentError)) await this.#abandon(opened)
      throw failure
    }
  }

  async #open(): Promise<RecordProducer> {
    const { Producer, compatibilityPartitioner } = await loadKafkaLibrary()
    return calm(
      new Producer<Buffer, Buffer, Buffer, Buffer>({
        ...clientOptions(this.#connection),
        idempotent: true,
        partitioner: compatibilityPartitioner,
        retries: RETRIES,
        retryDelay: RETRY_DELAY_MS,
        compression: this.#compression,
      }),
    )
  }

  async #abandon(opened: Promise<RecordProducer>): Promise<void> {
    if (this.#producer === opened) this.#producer = null
    const producer = await opened.catch(() => null)
    if (producer) void ended(producer)
  }
}

/** A broker does not take this one record. */
class RecordRefused extends PermanentError {}

function failureOf(error: unknown, topic: string): Error {
  const { code, message } = troubleOf(error)
  const text = `Kafka did not take the message: ${code === message ? code : `${code}: ${message}`}`
  if (isTrouble(error, ...RECORD_REFUSED)) return new RecordRefused(text)
  if (isTrouble(error, ...TOPIC_REFUSED)) {
    // Brokers say `CLUSTER_…` to a user who may not write to any topic.
    return new PermanentError(`${text}; its user needs Write and Describe on the topic '${topic}'`)
  }
  return error instanceof KafkaDeliveryFailed ? error : new KafkaDeliveryFailed(text)
}

const weightOf = ({ key, value, headers }: KafkaRecord): number => {
  let bytes = FRAME_BYTES + key.length + value.length
  for (const [name, text] of headers) bytes += name.length + text.length
  return bytes
}

/** A broker that answers nothing would otherwise hold up everything for minutes. */
async function withinTime<T>(work: Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(SEND_MS)
  try {
    return await untilAborted(work, late)
  } catch (error) {
    if (error !== late.reason) throw error
    throw new KafkaDeliveryFailed(`Kafka did not answer within ${SEND_MS / 1_000} seconds`)
  }
}

/** Closes a producer without waiting for answers that may never come. */
async function ended(producer: RecordProducer): Promise<void> {
  // Before it is closed: then it knows no connections any more.
  breakConnections(producer.connections)
  // What it says about its end is of no use to anybody.
  await producer.close(true).catch(() => {})
}
