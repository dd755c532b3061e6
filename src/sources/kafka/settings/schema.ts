/**
 * The keys of the section `kafka`, as its users know them: in snake_case. Defaults are put in by options.ts, what more than
 * one key decides is in rules.ts. Each `description` completes the sentence "allowed: …" in an error.
 */
import Type, { type Static } from 'typebox'
import { type Fixed, oneOf, section, wholeNumber } from '../../../core/settings/kinds.ts'
import { CONNECTION_KEYS, nameKey, TOPIC_FORM, topicKey } from '../../../outgoing/kafka/connection-keys.ts'
import { COMPRESSIONS, isTopicName } from '../../../outgoing/kafka/record.ts'

/** The value of `retry_topic` that stands for the topic a record came from originally. */
export const ORIGINAL = '$original'

export const PROFILES = ['hexkit', 'generic'] as const

const HOUR_MS = 3_600_000
const MOST_BYTES = 2_147_483_647

const whole = (minimum: number, maximum: number) => Type.Optional(wholeNumber(minimum, maximum))
const yesOrNo = () => Type.Optional(Type.Boolean({ description: 'true or false' }))
const among = <const Values extends readonly string[]>(values: Values) => Type.Optional(oneOf(values))

const names = (description: string) => Type.Optional(Type.Array(nameKey(), { description }))

/** A name, or the beginning of names with a star behind it. */
const pattern = (form: RegExp, description: string) =>
  Type.Array(Type.String({ pattern: form, description }), { description: 'a list of names' })

const RETRY_TOPIC_FORM = `${TOPIC_FORM}, or '${ORIGINAL}'; left out: 'retry-SERVICE' (hexkit 4.x reads 'SERVICE-retry')`
const SERVICE_FORM = "a mapping with dlq_topic, or the short form '[dlq_topic, retry_topic]'"

const retryTopic = () =>
  Type.Refine(
    Type.String({ description: RETRY_TOPIC_FORM }),
    (text) => text === ORIGINAL || isTopicName(text),
  )

const ServiceSchema = Type.Union(
  [
    Type.Tuple([topicKey(), retryTopic()]),
    section(
      {
        dlq_topic: topicKey(),
        retry_topic: Type.Optional(retryTopic()),
        profile: among(PROFILES),
        aliases: names('a list of names'),
        original_topics: Type.Optional(
          pattern(/^(?:[A-Za-z0-9._-]{1,249}|[A-Za-z0-9._-]{0,248}\*)$/, `${TOPIC_FORM}, or 'PREFIX*'`),
        ),
        types: Type.Optional(
          pattern(/^(?=.)[^\p{Cc}*]{0,255}\*?$/u, "1 to 255 characters without '*', or 'PREFIX*'"),
        ),
        strip_headers: Type.Optional(
          pattern(/^(?=.)[^*]{0,255}\*?$/s, "1 to 255 characters without '*', or 'PREFIX*'"),
        ),
        key_format: among(['plain', 'uber']),
      },
      SERVICE_FORM,
    ),
  ],
  { description: SERVICE_FORM },
)

const matching = () =>
  Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], { description: 'a text or a list of texts' }),
  )

const MODULE = /^(?![A-Za-z][A-Za-z\d+.-]+:)[^\0]*[^\0/\\]\.(?:js|mjs|cjs|ts)$/
const MODULE_FORM = 'the path of a .js, .mjs, .cjs or .ts file, relative to the configuration file; no URL'

const ProcessorSchema = section(
  {
    match: Type.Optional(
      section(
        { service: matching(), topic: matching(), type: matching() },
        'a mapping with service, topic and type',
      ),
    ),
    module: Type.String({ pattern: MODULE, description: MODULE_FORM }),
    export: Type.Optional(Type.String({ minLength: 1, description: 'the name of an export' })),
  },
  'a mapping with module, match and export',
)

export const KafkaSchema = section({
  enabled: yesOrNo(),
  ...CONNECTION_KEYS,
  group_id: Type.Optional(nameKey()),
  token_hashes: Type.Optional(
    Type.Array(
      Type.String({ pattern: /^[\da-fA-F]{64}$/, description: '64 hexadecimal digits', secret: true }),
      { description: 'a list of SHA-256 hashes in hexadecimal digits' },
    ),
  ),
  preview_limit: whole(1, 10_000),
  preview_max: whole(1, 10_000),
  preview_max_bytes: whole(1, MOST_BYTES),
  services: Type.Optional(
    Type.Record(Type.String(), ServiceSchema, { description: 'a mapping of names to services' }),
  ),
  dlq_topics: Type.Optional(Type.Array(topicKey(), { description: 'a list of topics' })),
  accept_unlisted_services: yesOrNo(),
  processors: Type.Optional(Type.Array(ProcessorSchema, { description: 'a list of processors' })),
  processor_timeout_ms: whole(1, HOUR_MS),
  publish_timeout_ms: whole(1, HOUR_MS),
  busy_wait_ms: whole(0, HOUR_MS),
  on_uncertain: among(['hold', 'resend']),
  on_later_same_key: among(['warn', 'refuse']),
  max_message_bytes: whole(1, MOST_BYTES),
  compression: among(COMPRESSIONS),
  fetch_max_bytes: whole(1, MOST_BYTES),
  topic_refresh_ms: whole(10, HOUR_MS),
  generate_correlation_id: yesOrNo(),
  session_timeout_ms: whole(100, HOUR_MS),
})

/** The section as it is given. */
export type KafkaSection = Fixed<Static<typeof KafkaSchema>>

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
  const {
    dlq_topic: dlqTopic,
    // hexkit 5 and later read from there; 4.x has to be told.
    retry_topic: retryTopic = `retry-${name}`,
    profile = 'hexkit',
    aliases = [],
    original_topics: originalTopics = [],
    types = [],
    strip_headers: stripHeaders = [],
    key_format: keyFormat = 'plain',
  }: Exclude<ServiceEntry, ShortForm> = given
  return { name, dlqTopic, retryTopic, profile, aliases, originalTopics, types, stripHeaders, keyFormat }
}
