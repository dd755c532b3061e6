/** The keys of a configuration file: those of the server itself, and the section of each source. */
import Type, { type Static } from 'typebox'
import { ROLES } from '../core/roles.ts'
import { isRecord, type Settings, withoutNothing } from '../core/settings/given.ts'
import {
  addressRange,
  type Fixed,
  list,
  oneOf,
  section,
  text,
  wholeNumber,
  yesOrNo,
} from '../core/settings/kinds.ts'
import { problemsWith } from '../core/settings/read.ts'
import { SECTION_SCHEMAS, SECTIONS } from '../sources/settings.ts'
import { PostgresSchema, StoreSchema } from '../store/settings.ts'
import { STORE_URL_FORMS } from '../store/store-url.ts'
import { ALIAS_SECTIONS, problemsOfAliases, withoutAliases } from './aliases.ts'

/** The levels of pino. */
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** What the console shows the environment in: nobody should take production for anything else. */
const COLOURS = ['gray', 'red', 'orange', 'yellow', 'green', 'blue', 'violet'] as const

const TokenSchema = section(
  'A token.',
  {
    name: text('Who uses it; shown in logs and history.', {
      pattern: /^[\w.@-]{1,64}$/,
      allowed: "1 to 64 letters, digits or '_', '.', '@', '-'",
    }),
    role: oneOf('What it may do: read, also act, also configure and purge.', ROLES),
    sha256: text('SHA-256 of the token, which `bartleby token create` prints.', {
      pattern: /^[0-9a-f]{64}$/,
      allowed: '64 lower-case hexadecimal digits',
      secret: true,
    }),
  },
  'a mapping with name, role and sha256',
)

const host = text('Address to listen on.', {
  pattern: /^\S+$/,
  default: '127.0.0.1',
  allowed: 'a host name or an IP address',
})
const port = wholeNumber('Port to listen on; 0 takes any free one.', { from: 0, to: 65_535, default: 1853 })
const seconds = (description: string, byDefault: number) =>
  wholeNumber(description, { from: 1, to: 86_400, default: byDefault })

/** A name as it stands in `Host`, without a port; or all names below one. */
const HOST_NAME = /^(?:(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?|\[?[\da-fA-F:.]+\]?)$/

const HTTP_KEYS = {
  allowedHosts: Type.Optional(
    list(
      'Names under which the server is served, beside those of the machine itself.',
      Type.String({
        pattern: HOST_NAME,
        allowed: "a host name or an address without a port such as 'dlq.example.com', or '*.example.com'",
      }),
      { allowed: 'a list of host names', otherwise: 'any name once there are tokens, else loopback names' },
    ),
  ),
  bodyTimeoutSeconds: seconds('How long a client may take to send a body; then it gets 408.', 30),
  connectionsWithoutToken: wholeNumber(
    'Connections of one address that have shown no token, once there are tokens; more get 429.',
    { from: 1, to: 1_000_000, default: 200 },
  ),
  wrongTokensPerMinute: wholeNumber('Wrong tokens of one address; then it gets 429 until a minute is over.', {
    from: 1,
    to: 100_000,
    default: 100,
  }),
  trustedProxies: list(
    'Proxies whose `X-Forwarded-For` says where a request comes from.',
    addressRange('One proxy, or a range of them.'),
    { default: [], allowed: 'a list of address ranges' },
  ),
  readTimeoutSeconds: seconds('How long an idle connection is kept.', 240),
  writeTimeoutSeconds: seconds('How long a client may take to fetch the answer of a webhook call.', 240),
  maxBodyBytes: wholeNumber('Largest body of a webhook call.', {
    from: 1,
    to: 1_073_741_824,
    default: 16_777_216,
  }),
}

/** What the server itself needs to know. */
export const OWN_KEYS = {
  host,
  port,
  store: StoreSchema,
  unsupportedStore: yesOrNo(
    'Takes a server that is like PostgreSQL but another product, at your own risk: the promises are not proved there.',
    { default: false },
  ),
  http: section('How calls are taken.', HTTP_KEYS),
  auth: section('Who may call.', {
    tokens: list('Bearer tokens; without any, everybody on this machine may do everything.', TokenSchema, {
      default: [],
      allowed: 'a list of tokens',
    }),
  }),
  metrics: section('Metrics.', {
    open: yesOrNo('Whether `/metrics` is served without a token.', { default: false }),
  }),
  console: section('The console.', {
    environment: text('What the console calls this installation.', {
      default: 'local',
      allowed: '1 to 32 printable characters',
      is: (name) => /^[^\p{C}\p{Zl}\p{Zp}]{1,32}$/u.test(name) && name.trim() !== '',
    }),
    colour: oneOf('The colour that it shows the name in.', COLOURS, { default: 'gray' }),
  }),
  postgres: PostgresSchema,
  log: section('The log: one JSON object per line.', {
    level: oneOf('The least that is worth a line.', LOG_LEVELS, { default: 'info' }),
    file: Type.Optional(
      text('File that lines are appended to.', {
        pattern: /^[^\0]+$/,
        allowed: 'the path of a file',
        otherwise: 'standard error',
      }),
    ),
  }),
}

const KEYS = { ...OWN_KEYS, ...SECTION_SCHEMAS }

/** Everything a server needs to know before it starts, each setting once. */
export const ConfigSchema = section('A configuration.', {
  ...KEYS,
  testApi: yesOrNo(
    'Adds calls that move the clock and pause queues: for tests of clients, never for production. Only the environment can say so.',
    { default: false },
  ),
})

export type Config = Fixed<Static<typeof ConfigSchema>>

/** What a file may give: some settings have a second name there (aliases.ts). */
const FileSchema = section('A configuration file.', {
  ...KEYS,
  ...ALIAS_SECTIONS,
  http: section('How calls are taken.', { host, port, ...HTTP_KEYS }),
  store: Type.Union(
    [StoreSchema, section('', { url: StoreSchema, maxConnections: PostgresSchema.properties.poolSize })],
    { allowed: STORE_URL_FORMS },
  ),
})

/** Problems of what `file` gives, each opening with its name and the key. Sections and keys may be left out. */
export function problemsOfFile(file: string, given: unknown): string[] {
  const problems = [...problemsWith(FileSchema, given, '')]
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
  return problems.map((problem) => `${file}: ${problem}`)
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
