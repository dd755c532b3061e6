/**
 * Delivers messages as records of a Kafka topic: the payload unchanged as the value, what else is known of the message as headers.
 *
 * The key of a record decides about its partition, and only within a partition is there an order. So it is the ordering key: messages of
 * one line, which are delivered one after the other, lie one after the other for consumers too, and a topic that is compacted keeps the last
 * of each. The tenant is no part of it: other producers of the same topic, who know nothing of tenants, then find the same partition for
 * the same key. A message without an ordering key has its idempotency key there, which spreads them evenly.
 */
import { ConfigError } from '../../config/config-error.ts'
import { isServer, problemsOfConnection } from '../../config/kafka-connection-rules.ts'
import { type ConnectionOptions, connectionOf } from '../../kafka/connection-options.ts'
import { isTopicName } from '../../kafka/names.ts'
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
import { type KafkaRecord, KafkaSender } from './kafka-sender.ts'

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
