/**
 * The keys of a configuration file, their defaults and what they allow, and all that is wrong with what is given. Each `description`
 * completes the sentence "allowed: …" in an error.
 */
import Type, { type Static } from 'typebox'
import { ROLES } from '../api/auth.ts'
import { compare } from '../core/settings/compare.ts'
import { isRecord, type Settings, withoutNothing } from '../core/settings/given.ts'
import { addressRange, type Fixed, oneOf, section, wholeNumber, yesOrNo } from '../core/settings/kinds.ts'
import { SECTION_SCHEMAS, SECTIONS } from '../sources/settings.ts'
import { PostgresSchema, StoreSchema } from '../store/settings.ts'
import { STORE_URL_FORMS } from '../store/store-url.ts'
import { ALIAS_SECTIONS, problemsOfAliases, withoutAliases } from './aliases.ts'

/** The levels of pino. */
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** What the console shows the environment in: nobody should take production for anything else. */
const COLOURS = ['gray', 'red', 'orange', 'yellow', 'green', 'blue', 'violet'] as const

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

const host = Type.String({
  pattern: /^\S+$/,
  default: '127.0.0.1',
  description: 'a host name or an IP address',
})
const port = wholeNumber(0, 65_535, 1853)
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

/** What the server itself needs to know. */
const OWN_KEYS = {
  host,
  port,
  store: StoreSchema,
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
  postgres: PostgresSchema,
  log: section({
    level: oneOf(LOG_LEVELS, 'info'),
    file: Type.Optional(Type.String({ pattern: /^[^\0]+$/, description: 'the path of a file' })),
  }),
}

/** Each setting once, under the name that it has in a `Config`. */
export const FileSchema = section({ ...OWN_KEYS, ...SECTION_SCHEMAS })

/** What a file may give: some settings have a second name there (aliases.ts). */
const GivenSchema = section({
  ...FileSchema.properties,
  ...ALIAS_SECTIONS,
  http: section({ host: Type.Optional(host), port: Type.Optional(port), ...HTTP_KEYS }),
  store: Type.Union(
    [
      StoreSchema,
      Type.Object(
        {
          url: Type.Optional(StoreSchema),
          maxConnections: Type.Optional(PostgresSchema.properties.poolSize),
        },
        { additionalProperties: false },
      ),
    ],
    { description: STORE_URL_FORMS },
  ),
})

/** Everything a server needs to know before it starts: its own keys, and the section of each source. */
export type Config = Fixed<Static<typeof FileSchema>> & {
  /** The test-control endpoints exist; only the environment can say so. */
  readonly testApi: boolean
}

/** Problems of `given`, each opening with `where` and the key. Sections and keys may be left out. */
export function checkSettings(where: string, given: unknown): string[] {
  const problems: string[] = []
  compare(GivenSchema, given, '', (key, problem) =>
    problems.push(key === '' ? problem : `${key}: ${problem}`),
  )
  if (problems.length === 0 && isRecord(given)) {
    // Without nothing it is a mapping as it was.
    const settings = withoutNothing(withoutAliases(given)) as Settings
    problems.push(
      ...problemsOfAliases(given),
      ...problemsOfTokens(settings),
      ...SECTIONS.flatMap(({ name, problems }) =>
        settings[name] === undefined ? [] : (problems?.(settings[name], settings) ?? []),
      ),
    )
  }
  return problems.map((problem) => `${where}: ${problem}`)
}

/** Two tokens of one name, or one token under two names, would make revoking one a guess. */
function problemsOfTokens({ auth }: Settings): readonly string[] {
  const tokens = isRecord(auth) && Array.isArray(auth.tokens) ? auth.tokens : []
  return ['name', 'sha256'].flatMap((property) => {
    const values = tokens.map((token) => token[property])
    return values.flatMap((value, index) => {
      const first = values.indexOf(value)
      return first < index
        ? [`auth.tokens[${index}].${property}: is the same as that of auth.tokens[${first}]`]
        : []
    })
  })
}
