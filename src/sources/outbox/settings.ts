/** The section `outbox` of a configuration: a list of outboxes. */
import Type, { type Static } from 'typebox'
import { BartlebyError } from '../../core/errors.ts'
import { isRecord, type Settings } from '../../core/settings/given.ts'
import { addressRange, type Fixed, oneOf, section, wholeNumber } from '../../core/settings/kinds.ts'
import { absoluteFiles, problemsOfConnection } from '../../outgoing/kafka/connection.ts'
import { CONNECTION_KEYS, type ConnectionOptions, topicKey } from '../../outgoing/kafka/connection-keys.ts'
import { COMPRESSIONS, isTopicName } from '../../outgoing/kafka/record.ts'
import { readStoreUrl } from '../../store/store-url.ts'
import { DISPATCHER_RANGES, OUTBOX_NAME, OUTBOX_NAME_FORM, RETENTION_RANGE } from './dispatcher/options.ts'
import type { Range } from './refusal.ts'
import { NAMINGS, nameTable, type TableOptions } from './table/table-names.ts'

const OUTBOX_URL_FORMS = "'sqlite:PATH' or 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'"

const numberIn = ({ from, to, whole }: Range) =>
  Type.Optional(
    whole
      ? wholeNumber(from, to)
      : Type.Number({ minimum: from, maximum: to, description: `a number from ${from} to ${to}` }),
  )

const isHttp = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
const httpUrl = () => Type.Refine(Type.String({ description: "'http://…' or 'https://…'" }), isHttp)
const secret = () => Type.String({ pattern: /^\S+$/, description: 'a secret', secret: true })
const texts = (description: string) =>
  Type.Record(Type.String(), Type.String({ description: 'a text' }), { description })

const TRANSPORT_TYPES = ['http', 'queue', 'kafka', 'log', 'none'] as const

const isTopicForm = (text: string): boolean =>
  text.startsWith('kafka:') && isTopicName(text.slice('kafka:'.length))

/** How messages leave. The short form says only where to. */
const TransportSchema = Type.Union(
  [
    Type.Refine(
      Type.String(),
      (text) =>
        text === 'log' ||
        text === 'none' ||
        /^queue:[^\s~\p{Cc}]{1,500}$/u.test(text) ||
        isTopicForm(text) ||
        isHttp(text),
    ),
    section(
      {
        type: oneOf(TRANSPORT_TYPES),
        url: Type.Optional(httpUrl()),
        headers: Type.Optional(texts('a mapping of headers')),
        secret: Type.Optional(secret()),
        secrets: Type.Optional(Type.Array(secret(), { description: 'a list of secrets' })),
        timeoutSeconds: numberIn({ from: 0.01, to: 86_400, whole: false }),
        connections: numberIn({ from: 1, to: 10_000, whole: true }),
        refusedAddresses: Type.Optional(
          Type.Array(addressRange(), { description: 'a list of address ranges' }),
        ),
        queue: Type.Optional(
          Type.String({
            pattern: /^[^\s~\p{Cc}]{1,500}$/u,
            description: "1 to 500 characters without white space, control characters and '~'",
          }),
        ),
        topic: Type.Optional(topicKey()),
        compression: Type.Optional(oneOf(COMPRESSIONS)),
        ...CONNECTION_KEYS,
      },
      'a mapping with type',
    ),
  ],
  {
    description:
      "an address ('https://…'), 'queue:NAME', 'kafka:TOPIC', 'log', 'none', or a mapping with type and what the type needs",
  },
)

const limits = () =>
  Type.Optional(
    section(
      {
        degraded: Type.Optional(Type.Number({ minimum: 0, description: 'a number from 0' })),
        unhealthy: Type.Optional(Type.Number({ minimum: 0, description: 'a number from 0' })),
      },
      'a mapping with degraded and unhealthy',
    ),
  )

const ranges = Object.entries(DISPATCHER_RANGES).map(([name, range]) => [name, numberIn(range)] as const)
// Object.fromEntries forgets the names.
const numbers = Object.fromEntries(ranges) as Record<
  keyof typeof DISPATCHER_RANGES,
  ReturnType<typeof numberIn>
>

const OutboxSchema = section(
  {
    name: Type.String({ pattern: OUTBOX_NAME, description: OUTBOX_NAME_FORM }),
    url: Type.Optional(
      Type.Refine(
        Type.String({ description: `${OUTBOX_URL_FORMS}; left out: the store`, secret: true }),
        // Nobody else could write into an outbox in the memory of the server.
        (text) => ['sqlite', 'postgres'].includes(readStoreUrl(text)?.kind ?? ''),
      ),
    ),
    table: Type.Optional(Type.String({ pattern: /^[^\0]{1,128}$/, description: 'the name of a table' })),
    naming: Type.Optional(oneOf(NAMINGS)),
    columns: Type.Optional(texts('a mapping of columns to their names')),
    transport: Type.Optional(TransportSchema),
    ...numbers,
    useExponentialBackoff: Type.Optional(Type.Boolean({ description: 'true or false' })),
    onDead: Type.Optional(oneOf(['hold', 'skip'])),
    retention: Type.Optional(
      section(
        { processed: numberIn(RETENTION_RANGE), keys: numberIn(RETENTION_RANGE) },
        'a mapping with processed and keys, in days',
      ),
    ),
    health: Type.Optional(
      section(
        { backlog: limits(), oldestAgeSeconds: limits(), failureRatio: limits() },
        'a mapping with backlog, oldestAgeSeconds and failureRatio',
      ),
    ),
  },
  'a mapping with name and transport',
)

export const OutboxesSchema = Type.Array(OutboxSchema, { default: [], description: 'a list of outboxes' })

/** An outbox as a file describes it. */
type OutboxEntry = Fixed<Static<typeof OutboxSchema>>

/** Letters are known by the name of their outbox; what a transport needs depends on its type; and a table has one outbox. */
export function problemsOfOutboxes(outboxes: readonly OutboxEntry[], all: Settings): readonly string[] {
  const names = outboxes.map(({ name }) => name)
  return [
    ...outboxes.flatMap(({ transport }, index) => {
      const problem = problemWithTransport(transport, namesServers(all))
      return problem === null ? [] : [`outbox[${index}].transport${problem}`]
    }),
    ...names.flatMap((name, index) => {
      const first = names.indexOf(name)
      return first < index ? [`outbox[${index}].name: is the same as that of outbox[${first}]`] : []
    }),
    ...problemsOfTables(outboxes, all.store ?? null),
  ]
}

/** Two outboxes on one table would share out its messages between their transports, and make two letters of one. */
function problemsOfTables(outboxes: readonly OutboxEntry[], store: unknown): readonly string[] {
  const owners = new Map<string, number>()
  return outboxes.flatMap((outbox, index) => {
    const table = tableOf(outbox)
    if ('problem' in table) return [`outbox[${index}].${table.problem}`]
    const place = JSON.stringify([outbox.url ?? store, table.name])
    const first = owners.get(place) ?? index
    owners.set(place, first)
    return first < index ? [`outbox[${index}].table: is the same as that of outbox[${first}]`] : []
  })
}

/** Whether the section `kafka` has a connection, which transports without servers of their own use. */
const namesServers = ({ kafka }: Settings): boolean =>
  isRecord(kafka) && Array.isArray(kafka.servers) && kafka.servers.length > 0

/** What each type of transport has. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  http: ['url', 'headers', 'secret', 'secrets', 'timeoutSeconds', 'connections', 'refusedAddresses'],
  queue: ['queue'],
  kafka: ['topic', 'compression', ...Object.keys(CONNECTION_KEYS)],
}
const NEEDS: Readonly<Record<string, readonly [key: string, allowed: string]>> = {
  http: ['url', "'http://…' or 'https://…'"],
  queue: ['queue', 'the name of a queue'],
  kafka: ['topic', 'the name of a topic'],
}

/** What each type of transport must be given, and what belongs to another type. */
function problemWithTransport(given: unknown, hasKafka: boolean): string | null {
  if (typeof given === 'string') return given.startsWith('kafka:') && !hasKafka ? `: ${NO_SERVERS}` : null
  if (!isRecord(given)) return null
  const transport = given
  const type = String(transport.type)
  const [needed, allowed] = NEEDS[type] ?? []
  if (needed !== undefined && transport[needed] === undefined)
    return `.${needed}: is missing; allowed: ${allowed}`
  const stray = Object.keys(transport).find((key) => key !== 'type' && !KEYS[type]?.includes(key))
  if (stray !== undefined) return `.${stray}: a transport of type '${type}' has none`
  if (transport.secret !== undefined && transport.secrets !== undefined)
    return '.secrets: give either secret or secrets'
  return type === 'kafka' ? problemWithKafka(transport, hasKafka) : null
}

const NO_SERVERS = 'there are no servers; give them with the transport, or in the section kafka'

function problemWithKafka(transport: Readonly<Record<string, unknown>>, hasKafka: boolean): string | null {
  const { type: _, topic, compression, ...connection } = transport
  if (Array.isArray(connection.servers) && connection.servers.length > 0) {
    // The schema was compared already.
    const [problem] = problemsOfConnection(connection as ConnectionOptions)
    return problem === undefined ? null : `.${problem}`
  }
  const stray = Object.keys(connection).find((key) => key !== 'servers')
  if (stray !== undefined) return `.${stray}: needs servers beside it; without them the section kafka is used`
  return hasKafka ? null : `.servers: ${NO_SERVERS}`
}

/** The table of an outbox, or what is wrong with its names. */
function tableOf({
  table,
  naming,
  columns,
}: OutboxEntry): { readonly name: string } | { readonly problem: string } {
  const given = Object.entries({ table, naming, columns }).filter(([, value]) => value !== undefined)
  try {
    // Names of columns that do not exist are what it looks for.
    return { name: nameTable(Object.fromEntries(given) as TableOptions).table }
  } catch (error) {
    if (!(error instanceof BartlebyError)) throw error
    return { problem: `${String(error.details.option)}: ${String(error.details.reason)}` }
  }
}

/** Files of a transport lie where the configuration does. */
export const outboxesInFolder = (outboxes: readonly OutboxEntry[], folder: string): readonly OutboxEntry[] =>
  outboxes.map((entry) =>
    typeof entry.transport === 'object'
      ? { ...entry, transport: absoluteFiles(entry.transport, folder) }
      : entry,
  )
