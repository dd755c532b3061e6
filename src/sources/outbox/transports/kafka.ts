/**
 * Delivers messages as records of a Kafka topic: the payload unchanged as the value, what else is known of the message as headers.
 *
 * The key of a record decides about its partition, and only within a partition is there an order. So it is the ordering key: messages of
 * one line, which are delivered one after the other, lie one after the other for consumers too, and a topic that is compacted keeps the last
 * of each. The tenant is no part of it: other producers of the same topic, who know nothing of tenants, then find the same partition for
 * the same key. A message without an ordering key has its idempotency key there, which spreads them evenly.
 */
import type { Producer } from '@platformatic/kafka'
import { Gather } from '../../../core/gather.ts'
import { ConfigError } from '../../../core/settings/config-error.ts'
import { PermanentError } from '../../../core/thrown.ts'
import { untilAborted } from '../../../core/waiting.ts'
import {
  breakConnections,
  calm,
  clientOptions,
  isTrouble,
  loadKafkaLibrary,
  troubleOf,
} from '../../kafka/client.ts'
import { type ConnectionOptions, connectionOf } from '../../kafka/connection-options.ts'
import { isTopicName } from '../../kafka/names.ts'
import { isServer, problemsOfConnection } from '../../kafka/settings/connection-rules.ts'
import {
  COMPRESSIONS,
  type Compression,
  type ConnectionSettings,
  SASL_MECHANISMS,
  SECURITY_PROTOCOLS,
} from '../../kafka/settings.ts'
import type { OutboxMessage } from '../message.ts'
import { checkNames, refuse, shown } from '../refusal.ts'
import type { Transport } from '../transport.ts'

/** The keys of a connection are those of the section `kafka` in a configuration. */
export interface KafkaTransportOptions extends ConnectionOptions {
  /** It must exist: topics are never made. */
  readonly topic: string
  /** Default `none`. */
  readonly compression?: Compression
}

type Kind = 'text' | 'boolean' | readonly string[]

const CONNECTION: Readonly<Record<Exclude<keyof ConnectionOptions, 'servers'>, Kind>> = {
  client_id: 'text',
  security_protocol: SECURITY_PROTOCOLS,
  ssl_cafile: 'text',
  ssl_certfile: 'text',
  ssl_keyfile: 'text',
  ssl_password: 'text',
  ssl_password_file: 'text',
  ssl_check_hostname: 'boolean',
  sasl_mechanism: SASL_MECHANISMS,
  sasl_username: 'text',
  sasl_password: 'text',
  sasl_password_file: 'text',
  sasl_token: 'text',
  sasl_token_file: 'text',
}

/** A transport to a topic. What is wrong with the options is refused by name. Files in them are relative to the working directory. */
export function kafkaTransport(options: KafkaTransportOptions): Transport {
  checkNames(options, ['topic', 'compression', 'servers', ...Object.keys(CONNECTION)])
  const { topic, compression = 'none', ...connection } = options
  return kafkaTransportOn(readConnection(connection), { topic, compression })
}

/** The same on a connection that was read already. */
export function kafkaTransportOn(
  connection: ConnectionSettings,
  { topic, compression = 'none' }: Pick<KafkaTransportOptions, 'topic' | 'compression'>,
): Transport {
  if (typeof topic !== 'string' || !isTopicName(topic))
    refuse('topic', `${shown(topic)} is no name of a topic`)
  if (!COMPRESSIONS.includes(compression)) {
    refuse('compression', `${shown(compression)} is none of ${COMPRESSIONS.join(', ')}`)
  }
  const sender = new KafkaSender(connection, topic, compression)
  return {
    name: 'kafka',
    deliver: (message, signal) => sender.send(recordOf(message), signal),
    close: () => sender.close(),
  }
}

function readConnection(options: ConnectionOptions): ConnectionSettings {
  const { servers } = options
  if (!Array.isArray(servers) || servers.length === 0) refuse('servers', 'it is no list of HOST:PORT')
  for (const [index, server] of servers.entries()) {
    if (typeof server !== 'string' || !isServer(server)) refuse(`servers.${index}`, 'it is no HOST:PORT')
  }
  for (const [name, kind] of Object.entries(CONNECTION)) checkKind(name, Reflect.get(options, name), kind)
  for (const problem of problemsOfConnection(options)) refuseFor(problem)
  try {
    return connectionOf(options, process.cwd(), '') ?? refuse('servers', 'it names none')
  } catch (error) {
    if (error instanceof ConfigError) refuseFor(error.problems[0] ?? '')
    throw error
  }
}

/** The values may be secrets, and are not repeated. */
function checkKind(name: string, value: unknown, kind: Kind): void {
  if (value === undefined) return
  if (kind === 'boolean') {
    if (typeof value !== 'boolean') refuse(name, 'it is neither true nor false')
  } else if (typeof value !== 'string' || value === '') refuse(name, 'it is not a text')
  else if (kind !== 'text' && !kind.includes(value)) refuse(name, `it is none of ${kind.join(', ')}`)
}

/** A problem opens with the option that has it. */
function refuseFor(problem: string): never {
  const end = problem.indexOf(': ')
  return refuse(problem.slice(0, end), problem.slice(end + 2))
}

function recordOf(message: OutboxMessage): KafkaRecord {
  const { payload, key, orderingKey, eventType, tenantId, correlationId } = message
  const about = new Map([
    ['idempotency-key', key],
    ['event-type', eventType],
    ['tenant-id', tenantId],
    ['correlation-id', correlationId],
  ])
  // The application cannot pretend that it is another message.
  const own = Object.entries(message.headers).filter(([name]) => !about.has(name.toLowerCase()))
  const headers = [...about, ...own].flatMap(([name, value]): [Buffer, Buffer][] =>
    value === null ? [] : [[Buffer.from(name), Buffer.from(value)]],
  )
  return {
    key: Buffer.from(orderingKey ?? key),
    value: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
    headers: new Map(headers),
  }
}

/** Delivery to Kafka failed; the next try may succeed. */
export class KafkaDeliveryFailed extends Error {
  override readonly name = 'KafkaDeliveryFailed'
}

/** A record to write; a key is never left out. */
interface KafkaRecord {
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

/**
 * Writes records to a topic, many with one request: those that come while a request is under way make the next one. There is one request
 * at a time, so that records of one key lie in the topic in the order in which they were given.
 */
class KafkaSender {
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
