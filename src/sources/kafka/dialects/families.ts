/**
 * Whose headers dead records carry: one entry for each tool, and a new tool is added here alone. Order decides between families that match
 * equally well.
 */
import { fits } from '../settings/settings.ts'

/** Of several headers that tell the same, the first with something to say counts. */
export type Field =
  | 'topic'
  | 'partition'
  | 'offset'
  | 'timestampMs'
  | 'consumerGroup'
  | 'destination'
  | 'failedAtMs'
  | 'class'
  | 'message'
  | 'stack'
  | 'causeClass'
  | 'causeMessage'
  | 'attempts'

/** Numbers in text are decimal. */
export type Encoding =
  | 'text'
  /** Big-endian, 4 bytes. */
  | 'i32'
  /** Big-endian, 8 bytes. */
  | 'i64'
  /** A Java BigInteger: big-endian two's complement, as short as it can be. */
  | 'big'
  /** One more than the attempts that failed: 4 bytes, or one. */
  | 'next attempt'
  | 'b64'
  /** Not to be read. */
  | 'bytes'
  | 'class: message'
  | 'class in source'

export interface FamilyHeader {
  readonly name: string
  readonly as: Encoding
  /** Null: it only shows whose headers these are. */
  readonly tells: Field | null
}

type Place = 'first' | 'last'

export interface Family {
  readonly name: string
  readonly headers: readonly FamilyHeader[]
  /** Without these its other names prove nothing. */
  readonly needs: readonly string[]
  /** Where the newest hop of several deaths stands. */
  readonly newest: Place
  readonly oldest: Place
}

const tells = (name: string, field: Field, as: Encoding = 'text'): FamilyHeader => ({
  name,
  as,
  tells: field,
})
const shows = (...names: readonly string[]): readonly FamilyHeader[] =>
  names.map((name) => ({ name, as: 'text', tells: null }))
const binary = (...names: readonly string[]): readonly FamilyHeader[] =>
  names.map((name) => ({ name, as: 'bytes', tells: null }))

const place = (prefix: string): readonly FamilyHeader[] => [
  tells(`${prefix}topic`, 'topic'),
  tells(`${prefix}partition`, 'partition'),
  tells(`${prefix}offset`, 'offset'),
]
const springFailure = (prefix: string): readonly FamilyHeader[] => [
  tells(`${prefix}fqcn`, 'class'),
  tells(`${prefix}message`, 'message'),
  tells(`${prefix}stacktrace`, 'stack'),
]
/** Spring writes these in binary. */
const spring = (original: string, exception: string): readonly FamilyHeader[] => [
  tells(`${original}topic`, 'topic'),
  tells(`${original}partition`, 'partition', 'i32'),
  tells(`${original}offset`, 'offset', 'i64'),
  tells(`${original}timestamp`, 'timestampMs', 'i64'),
  ...shows(`${original}timestamp-type`),
  ...springFailure(exception),
]

/** Most tools append. */
const family = (
  name: string,
  headers: readonly FamilyHeader[],
  rest: Partial<Pick<Family, 'needs' | 'newest' | 'oldest'>> = {},
): Family => ({ name, headers, needs: [], newest: 'last', oldest: 'first', ...rest })

export const HEXKIT = family(
  'hexkit',
  [
    tells('original_topic', 'topic'),
    tells('exc_class', 'class'),
    tells('exc_msg', 'message'),
    ...shows('service', 'original_event_id', 'event_id', 'correlation_id', 'type'),
  ],
  { needs: ['exc_class', 'original_topic'], oldest: 'last' },
)

/** Has no headers: its facts stand in the key (header-facts.ts). */
export const UBER = 'uber'

export const FAMILIES: readonly Family[] = [
  HEXKIT,
  family('connect', [
    ...place('__connect.errors.'),
    tells('__connect.errors.exception.class.name', 'class'),
    tells('__connect.errors.exception.message', 'message'),
    tells('__connect.errors.exception.stacktrace', 'stack'),
    ...shows(
      '__connect.errors.connector.name',
      '__connect.errors.task.id',
      '__connect.errors.stage',
      '__connect.errors.class.name',
    ),
  ]),
  family('spring-dlt', [
    ...spring('kafka_dlt-original-', 'kafka_dlt-exception-'),
    tells('kafka_dlt-original-consumer-group', 'consumerGroup'),
    tells('kafka_dlt-exception-cause-fqcn', 'causeClass'),
    ...springFailure('kafka_dlt-key-exception-'),
  ]),
  family('spring-retryable', [
    ...spring('kafka_original-', 'kafka_exception-'),
    tells('kafka_dlt-original-consumer-group', 'consumerGroup'),
    tells('kafka_exception-cause-fqcn', 'causeClass'),
    ...springFailure('kafka_key-exception-'),
    tells('retry_topic-attempts', 'attempts', 'next attempt'),
    tells('retry_topic-original-timestamp', 'timestampMs', 'big'),
    ...binary('retry_topic-backoff-timestamp'),
  ]),
  family('spring-cloud-stream', spring('x-original-', 'x-exception-')),
  family(
    'smallrye',
    [
      ...place('dead-letter-'),
      tells('dead-letter-exception-class-name', 'class'),
      tells('dead-letter-reason', 'message'),
      tells('dead-letter-cause-class-name', 'causeClass'),
      tells('dead-letter-cause', 'causeMessage'),
      tells('deserialization-failure-reason', 'message'),
      tells('deserialization-failure-cause', 'causeMessage'),
      tells('deserialization-failure-topic', 'topic'),
      ...shows(
        'deserialization-failure-key',
        'deserialization-failure-deserializer',
        'deserialization-failure-dlq',
      ),
      ...binary(
        'deserialization-failure-data',
        'deserialization-failure-key-data',
        'deserialization-failure-value-data',
      ),
    ],
    { newest: 'first', oldest: 'last' },
  ),
  family(
    'smallrye-delayed',
    [
      ...place('delayed-retry-'),
      tells('delayed-retry-original-timestamp', 'timestampMs'),
      tells('delayed-retry-exception-class-name', 'class'),
      tells('delayed-retry-reason', 'message'),
      tells('delayed-retry-cause-class-name', 'causeClass'),
      tells('delayed-retry-cause', 'causeMessage'),
      tells('delayed-retry-count', 'attempts'),
      ...shows('delayed-retry-first-processing-timestamp'),
    ],
    { newest: 'first', oldest: 'last' },
  ),
  family('kafka-streams', [
    ...place('__streams.errors.'),
    tells('__streams.errors.message', 'message'),
    tells('__streams.errors.exception', 'class', 'class: message'),
    tells('__streams.errors.stacktrace', 'stack'),
  ]),
  family('kafka-share', [
    ...place('__dlq.errors.'),
    tells('__dlq.errors.group', 'consumerGroup'),
    tells('__dlq.errors.message', 'message'),
    tells('__dlq.errors.delivery.count', 'attempts'),
  ]),
  family(
    'wolverine',
    [
      tells('original-destination', 'destination'),
      tells('original-partition', 'partition'),
      tells('original-offset', 'offset'),
      tells('exception-type', 'class'),
      tells('exception-message', 'message'),
      tells('exception-stack', 'stack'),
      tells('failed-at', 'failedAtMs'),
    ],
    { needs: ['original-destination'] },
  ),
  family('silverback', [
    ...place('x-source-'),
    tells('x-source-consumer-group-id', 'consumerGroup'),
    tells('x-failure-reason', 'class', 'class in source'),
    tells('x-failed-attempts', 'attempts'),
    ...shows('x-source-timestamp'),
  ]),
  family('karafka', [
    ...place('source_'),
    tells('source_consumer_group', 'consumerGroup'),
    tells('source_attempts', 'attempts'),
    ...shows('source_trace_id'),
  ]),
  family('watermill', [
    tells('topic_poisoned', 'topic'),
    tells('reason_poisoned', 'message'),
    ...shows('handler_poisoned', 'subscriber_poisoned'),
  ]),
  // CloudEvents prefix their attributes in Kafka.
  family(
    'knative',
    ['', 'ce_'].flatMap((prefix) => [
      tells(`${prefix}knativeerrorcode`, 'class'),
      tells(`${prefix}knativeerrordata`, 'message', 'b64'),
      ...shows(`${prefix}knativeerrordest`),
    ]),
  ),
  family('masstransit', [
    tells('MT-Fault-InputAddress', 'destination'),
    tells('MT-Fault-ExceptionType', 'class'),
    tells('MT-Fault-Message', 'message'),
    tells('MT-Fault-StackTrace', 'stack'),
    tells('MT-Fault-RetryCount', 'attempts'),
    ...shows('MT-Fault-Timestamp', 'MT-Reason'),
  ]),
]

/** Prefixes of one tool alone; the last is of Java objects that Spring leaves where it could not read a record. */
const PREFIXES: readonly string[] = [
  '__connect.errors.',
  '__streams.errors.',
  '__dlq.errors.',
  'kafka_dlt-',
  'retry_topic-',
  'dead-letter-',
  'delayed-retry-',
  'deserialization-failure-',
  'MT-Fault-',
  'springDeserializerException',
]

const headersByName: ReadonlyMap<string, ReadonlyMap<string, FamilyHeader>> = new Map(
  FAMILIES.map(({ name, headers }) => [name, new Map(headers.map((header) => [header.name, header]))]),
)

export const headerOf = (familyName: string | null, name: string): FamilyHeader | undefined =>
  familyName === null ? undefined : headersByName.get(familyName)?.get(name)

/**
 * Whether a tool wrote this header on the way to the dead letters, so that it must not travel back. Prefixes are stripped whoever was
 * recognised: a record may have passed several tools, and a counter of attempts that stays would end the next one early.
 */
export const isStrippedHeader = (
  family: string | null,
  name: string,
  stripHeaders: readonly string[],
): boolean =>
  headerOf(family, name) !== undefined ||
  PREFIXES.some((prefix) => name.startsWith(prefix)) ||
  stripHeaders.some((pattern) => fits(pattern, name))
