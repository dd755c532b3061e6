/** The keys of the section `kafka`, as its users know them: in snake_case. What several keys decide is in rules.ts. */
import Type, { type Static } from 'typebox'
import {
  type Fixed,
  file,
  type Given,
  list,
  named,
  oneOf,
  optional,
  section,
  text,
  wholeNumber,
  yesOrNo,
} from '../../../core/settings/kinds.ts'
import { withDefaults } from '../../../core/settings/read.ts'
import { CONNECTION_KEYS, nameKey, TOPIC_FORM, topicKey } from '../../../outgoing/kafka/connection-keys.ts'
import { COMPRESSIONS, isTopicName } from '../../../outgoing/kafka/record.ts'

/** The value of `retry_topic` that stands for the topic a record came from originally. */
export const ORIGINAL = '$original'

export const PROFILES = ['hexkit', 'generic'] as const

const bytes = (description: string, byDefault: number) =>
  wholeNumber(description, { from: 1, to: 2_147_483_647, default: byDefault })
const milliseconds = (description: string, from: number, byDefault: number) =>
  wholeNumber(description, { from, to: 3_600_000, default: byDefault })

/** Names, or beginnings of names with a star behind them. */
const patterns = (description: string, pattern: RegExp, allowed: string) =>
  list(description, text('A name.', { pattern, allowed }), { default: [], allowed: 'a list of names' })

const SERVICE_FORM = "a mapping with dlq_topic, or the short form '[dlq_topic, retry_topic]'"

const retryTopic = text('Topic that its events are sent back to.', {
  allowed: `${TOPIC_FORM}, or '${ORIGINAL}'; left out: 'retry-SERVICE' (hexkit 4.x reads 'SERVICE-retry')`,
  otherwise: '`retry-SERVICE`, which hexkit 5 reads; 4.x reads `SERVICE-retry`',
  is: (topic) => topic === ORIGINAL || isTopicName(topic),
})

/** What a service has unless it is told otherwise. */
const ServiceSchema = section('What may be left out of a service.', {
  profile: oneOf(
    'How its events go back: as records of hexkit, or key, value and headers byte for byte.',
    PROFILES,
    {
      default: 'hexkit',
    },
  ),
  aliases: list('Other names of it, such as its consumer group.', nameKey('A name.'), {
    default: [],
    allowed: 'a list of names',
  }),
  original_topics: patterns(
    'Topics that its events may come from, and go back to with `$original`; without any, all.',
    /^(?:[A-Za-z0-9._-]{1,249}|[A-Za-z0-9._-]{0,248}\*)$/,
    `${TOPIC_FORM}, or 'PREFIX*'`,
  ),
  types: patterns(
    'Types that its events may have; without any, all.',
    /^(?=.)[^\p{Cc}*]{0,255}\*?$/u,
    "1 to 255 characters without '*', or 'PREFIX*'",
  ),
  strip_headers: patterns(
    'Headers that are left out of what goes back.',
    /^(?=.)[^*]{0,255}\*?$/s,
    "1 to 255 characters without '*', or 'PREFIX*'",
  ),
  key_format: oneOf(
    "How keys of its dead records are read: as they are, or as Uber's client writes them, with the original one inside.",
    ['plain', 'uber'],
    {
      default: 'plain',
    },
  ),
})

const ServiceEntrySchema = section(
  'A service in full.',
  {
    dlq_topic: topicKey('Topic that its dead events are read from.'),
    retry_topic: Type.Optional(retryTopic),
    ...optional(ServiceSchema.properties),
  },
  SERVICE_FORM,
)

const matching = (description: string) =>
  Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description,
      allowed: 'a text or a list of texts',
      otherwise: 'any',
    }),
  )

const ProcessorSchema = section(
  "Users' code that changes events before they are published.",
  {
    match: Type.Optional(
      section(
        'Events that it is for.',
        {
          service: matching('Their services.'),
          topic: matching('Their topics.'),
          type: matching('Their types.'),
        },
        'a mapping with service, topic and type',
      ),
    ),
    module: file('Its module.', {
      pattern: /^(?![A-Za-z][A-Za-z\d+.-]+:)[^\0]*[^\0/\\]\.(?:js|mjs|cjs|ts)$/,
      allowed: 'the path of a .js, .mjs, .cjs or .ts file, relative to the configuration file; no URL',
    }),
    export: Type.Optional(
      text('Its export.', { pattern: /./s, allowed: 'the name of an export', otherwise: '`default`' }),
    ),
  },
  'a mapping with module, match and export',
)

export const KafkaSchema = section('Dead events of DLQ topics, and their way back.', {
  enabled: yesOrNo('Whether topics are read and `/kafka` is served.', { default: false }),
  ...CONNECTION_KEYS,
  group_id: nameKey('Consumer group; a new one reads every record again that the topics still have.', {
    default: 'bartleby',
  }),
  token_hashes: list(
    'SHA-256 of tokens that may use `/kafka` and act on letters of Kafka, beside those of the server.',
    text('A hash.', { pattern: /^[\da-fA-F]{64}$/, allowed: '64 hexadecimal digits', secret: true }),
    { default: [], allowed: 'a list of SHA-256 hashes in hexadecimal digits' },
  ),
  preview_limit: Type.Optional(
    wholeNumber('Events that one preview shows at most.', { from: 1, to: 10_000, otherwise: '`100`' }),
  ),
  preview_max: Type.Optional(
    wholeNumber('The same as `preview_limit`.', { from: 1, to: 10_000, otherwise: '`preview_limit`' }),
  ),
  preview_max_bytes: bytes('Bytes of payloads that one preview shows at most.', 5_242_880),
  services: named(
    'Services whose events are taken in and sent back, by name.',
    Type.Union([Type.Tuple([ServiceEntrySchema.properties.dlq_topic, retryTopic]), ServiceEntrySchema], {
      description: 'A service; short: `[dlq_topic, retry_topic]`.',
      allowed: SERVICE_FORM,
    }),
    {
      default: {},
      allowed: 'a mapping of names to services',
    },
  ),
  dlq_topics: list('Further topics to read, owned by no listed service.', topicKey('A topic.'), {
    default: [],
    allowed: 'a list of topics',
  }),
  accept_unlisted_services: yesOrNo(
    'Whether the `service` header of a record makes a service with the retry topic `retry-SERVICE`.',
    { default: false },
  ),
  processors: list('Code of yours that changes events before they are published.', ProcessorSchema, {
    default: [],
    allowed: 'a list of processors',
  }),
  processor_timeout_ms: milliseconds('How long a processor may take.', 1, 5_000),
  publish_timeout_ms: milliseconds('After that the outcome of a publish is uncertain.', 1, 30_000),
  busy_wait_ms: milliseconds('How long a call waits for its turn.', 0, 10_000),
  on_uncertain: oneOf('What becomes of an event whose publish is uncertain.', ['hold', 'resend'], {
    default: 'hold',
  }),
  on_later_same_key: oneOf(
    'What is done where a later event of the same key was sent already.',
    ['warn', 'refuse'],
    {
      default: 'warn',
    },
  ),
  max_message_bytes: bytes('Largest record that is published.', 1_048_576),
  compression: oneOf('How records are compressed.', COMPRESSIONS, { default: 'none' }),
  fetch_max_bytes: bytes('Bytes of three fetches, of which each gets a third and at most 8 MB.', 52_428_800),
  topic_refresh_ms: milliseconds('How often missing topics and new partitions are looked for.', 10, 30_000),
  generate_correlation_id: yesOrNo(
    'Whether a call without an `X-Request-Id` that is a UUID v4 is given one.',
    {
      default: true,
    },
  ),
  session_timeout_ms: milliseconds('How long the group waits for a server that vanished.', 100, 10_000),
})

/** The section as it is given. */
export type KafkaSection = Given<Fixed<Static<typeof KafkaSchema>>>

/** A service as it is given: in full, or as `[dlq_topic, retry_topic]`. */
type ServiceEntry = NonNullable<KafkaSection['services']>[string]
type ShortForm = Extract<ServiceEntry, readonly unknown[]>

export const isShort = (entry: ServiceEntry): entry is ShortForm => Array.isArray(entry)

/** A service whose dead events are taken in and sent back. */
export type KafkaService = Readonly<ReturnType<typeof kafkaService>>

/** The listed services, in the order of the section. */
export const servicesOf = ({ services }: KafkaSection): readonly KafkaService[] =>
  Object.entries(services ?? {}).map(([name, entry]) => kafkaService(name, entry))

/** A service by its name, with what is left out. */
export function kafkaService(name: string, entry: ServiceEntry) {
  const given = isShort(entry) ? { dlq_topic: entry[0], retry_topic: entry[1] } : entry
  // hexkit 5 and later read from there; 4.x has to be told.
  const { dlq_topic: dlqTopic, retry_topic: retryTopic = `retry-${name}`, ...others } = given
  const { profile, aliases, types, ...rest } = withDefaults(ServiceSchema, others)
  const { original_topics: originalTopics, strip_headers: stripHeaders, key_format: keyFormat } = rest
  return { name, dlqTopic, retryTopic, profile, aliases, originalTopics, types, stripHeaders, keyFormat }
}
