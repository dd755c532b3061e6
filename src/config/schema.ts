/**
 * The keys of a configuration file, their defaults and what they allow. Each `description` completes the
 * sentence "allowed: …" in an error.
 */
import Type, { type Static } from 'typebox'
import { ROLES } from '../api/auth.ts'
import { parseGoDuration } from '../core/duration.ts'
import { addressRange, type Fixed, oneOf, section, wholeNumber, yesOrNo } from '../core/settings/kinds.ts'
import { ENGINE_CONTEXTS, NAME_FORM, NAME_PATTERN } from '../sources/engines/definitions.ts'
import type { KafkaOptions } from '../sources/kafka/options.ts'
import { KafkaSchema } from '../sources/kafka/settings/schema.ts'
import { OutboxSchema } from '../sources/outbox/settings-schema.ts'
import { type CheckedWebhooks, WebhooksSchema } from '../sources/webhooks/settings-schema.ts'
import { readStoreUrl, STORE_URL_FORMS } from '../store/store-url.ts'

/** The levels of pino. */
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** What the console shows the environment in: nobody should take production for anything else. */
const COLOURS = ['gray', 'red', 'orange', 'yellow', 'green', 'blue', 'violet'] as const

const isPositiveDuration = (text: string): boolean => {
  const parsed = parseGoDuration(text)
  return parsed.ok && parsed.ns > 0n
}

const TokenSchema = section(
  {
    name: Type.String({
      pattern: /^[\w.@-]{1,64}$/,
      description: "1 to 64 letters, digits or '_', '.', '@', '-'",
    }),
    role: oneOf(ROLES),
    sha256: Type.String({
      pattern: /^[0-9a-f]{64}$/,
      description: '64 lower-case hexadecimal digits',
      secret: true,
    }),
  },
  'a mapping with name, role and sha256',
)

/** An engine of the user's own, or one put in the place of a preset. */
const EngineSchema = section(
  {
    queue: Type.Optional(
      Type.Union([Type.String({ pattern: /^[^\s~\p{Cc}]{1,500}$/u }), Type.Null()], {
        description:
          "1 to 500 characters without white space, control characters and '~', or nothing for an engine without a queue",
      }),
    ),
    operations: Type.Array(Type.String({ pattern: NAME_PATTERN, description: NAME_FORM }), {
      description: 'a list of names',
    }),
  },
  'a mapping with operations and, when it has one, queue',
)

const tableName = (byDefault: string) =>
  Type.String({
    pattern: /^[A-Za-z][A-Za-z0-9]{2,62}$/,
    default: byDefault,
    description: '3 to 63 letters or digits, the first one a letter',
  })

const host = Type.String({
  pattern: /^\S+$/,
  default: '127.0.0.1',
  description: 'a host name or an IP address',
})
const port = wholeNumber(0, 65_535, 1853)
const store = Type.Refine(
  Type.String({ default: 'sqlite:./data/bartleby.db', description: STORE_URL_FORMS }),
  (text) => readStoreUrl(text) !== null,
)
const poolSize = wholeNumber(1, 1_000, 8)

/** A name as it stands in `Host`, without a port; or all names below one. */
const HOST_NAME = /^(?:(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?|\[?[\da-fA-F:.]+\]?)$/

const HTTP_KEYS = {
  allowedHosts: Type.Optional(
    Type.Array(
      Type.String({
        pattern: HOST_NAME,
        description: "a host name or an address without a port such as 'dlq.example.com', or '*.example.com'",
      }),
      { description: 'a list of host names' },
    ),
  ),
  bodyTimeoutSeconds: wholeNumber(1, 86_400, 30),
  connectionsWithoutToken: wholeNumber(1, 1_000_000, 200),
  wrongTokensPerMinute: wholeNumber(1, 100_000, 100),
  trustedProxies: Type.Array(addressRange(), { default: [], description: 'a list of address ranges' }),
  readTimeoutSeconds: wholeNumber(1, 86_400, 240),
  writeTimeoutSeconds: wholeNumber(1, 86_400, 240),
  maxBodyBytes: wholeNumber(1, 1_073_741_824, 16_777_216),
}

/** The unified tables, as the registry entry that they are configured by has them. */
const TablesSchema = section({
  // The boundary is there (src/sources/engines/tables.ts), what lies behind it is not: better refused than ignored.
  storageAccountName: Type.Optional(
    Type.Refine(
      Type.String({ description: 'leaving it out; tables in Azure are not available in this version' }),
      () => false,
    ),
  ),
  dlqTableName: tableName('engineDlq'),
  historyTableName: tableName('engineHistory'),
  retentionDays: wholeNumber(1, 3_650, 90),
})

/** Each setting once, under the name that it has in a `Config`. */
export const FileSchema = section({
  host,
  port,
  store,
  unsupportedStore: yesOrNo(false),
  http: section(HTTP_KEYS),
  auth: section({
    tokens: Type.Array(TokenSchema, { default: [], description: 'a list of tokens' }),
  }),
  metrics: section({
    open: yesOrNo(false),
  }),
  console: section({
    environment: Type.Refine(
      Type.String({ default: 'local', description: '1 to 32 printable characters' }),
      (text) => /^[^\p{C}\p{Zl}\p{Zp}]{1,32}$/u.test(text) && text.trim() !== '',
    ),
    colour: oneOf(COLOURS, 'gray'),
  }),
  queues: section({
    maxProduceBytes: wholeNumber(1, 64_000_000, 5_000_000),
    maxPendingRequests: wholeNumber(1, 100_000, 100),
    dedupeWindow: Type.Refine(
      Type.String({ default: '5m', description: "a duration above zero such as '30s', '5m' or '24h'" }),
      isPositiveDuration,
    ),
  }),
  engines: section({
    context: Type.Optional(oneOf(ENGINE_CONTEXTS)),
    definitions: Type.Record(Type.String(), EngineSchema, {
      default: {},
      description: 'a mapping of names to engines',
    }),
    tables: TablesSchema,
  }),
  outbox: Type.Array(OutboxSchema, { default: [], description: 'a list of outboxes' }),
  webhooks: WebhooksSchema,
  postgres: section({
    poolSize,
    listenUrl: Type.Optional(
      Type.Refine(
        Type.String({
          description: "PostgreSQL's own address, 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'",
        }),
        (text) => readStoreUrl(text)?.kind === 'postgres',
      ),
    ),
  }),
  log: section({
    level: oneOf(LOG_LEVELS, 'info'),
    file: Type.Optional(Type.String({ pattern: /^[^\0]+$/, description: 'the path of a file' })),
  }),
})

/** What a source may give: some settings have a second name there (aliases.ts), and Kafka has its defaults elsewhere. */
export const GivenSchema = section({
  ...FileSchema.properties,
  kafka: KafkaSchema,
  engineTablesConfig: TablesSchema,
  http: section({ host: Type.Optional(host), port: Type.Optional(port), ...HTTP_KEYS }),
  store: Type.Union(
    [
      store,
      Type.Object(
        { url: Type.Optional(store), maxConnections: Type.Optional(poolSize) },
        { additionalProperties: false },
      ),
    ],
    { description: STORE_URL_FORMS },
  ),
})

/** Everything a server needs to know before it starts. */
export type Config = Omit<Fixed<Static<typeof FileSchema>>, 'webhooks'> & {
  readonly webhooks: CheckedWebhooks
  /** As it was given; paths in it are absolute. */
  readonly kafka: KafkaOptions
  /** The test-control endpoints exist; only the environment can say so. */
  readonly testApi: boolean
}
