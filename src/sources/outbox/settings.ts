/** The section `outbox` of a configuration: a list of outboxes. */
import Type, { type Static } from 'typebox'
import { BartlebyError } from '../../core/errors.ts'
import { isRecord, type Settings } from '../../core/settings/given.ts'
import { type Fixed, list, named, oneOf, optional, section, text } from '../../core/settings/kinds.ts'
import { problemsOfConnection } from '../../outgoing/kafka/connection.ts'
import type { ConnectionOptions } from '../../outgoing/kafka/connection-keys.ts'
import { isTopicName } from '../../outgoing/kafka/record.ts'
import { readStoreUrl } from '../../store/store-url.ts'
import { DISPATCHER_KEYS, OUTBOX_NAME, OUTBOX_NAME_FORM } from './dispatcher/options.ts'
import { HealthSchema } from './served/health.ts'
import { NAMINGS, nameTable, type TableOptions } from './table/table-names.ts'
import { HTTP_KEYS, KAFKA_KEYS } from './transports/keys.ts'

const TRANSPORT_TYPES = ['http', 'queue', 'kafka', 'log', 'none'] as const

const isTopicForm = (short: string): boolean =>
  short.startsWith('kafka:') && isTopicName(short.slice('kafka:'.length))

const HTTP_FORM = "'http://…' or 'https://…'"
const isHttp = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

/** How messages leave. The short form says only where to. */
const TransportSchema = Type.Union(
  [
    Type.Refine(
      Type.String(),
      (short) =>
        short === 'log' ||
        short === 'none' ||
        /^queue:[^\s~\p{Cc}]{1,500}$/u.test(short) ||
        isTopicForm(short) ||
        isHttp(short),
    ),
    section(
      'In full.',
      {
        type: oneOf('What it delivers to; `none`: somebody else delivers.', TRANSPORT_TYPES),
        url: Type.Optional(
          text('Where messages are posted to (`http`).', { allowed: HTTP_FORM, is: isHttp }),
        ),
        ...HTTP_KEYS,
        queue: Type.Optional(
          text('The queue that messages are put into (`queue`).', {
            pattern: /^[^\s~\p{Cc}]{1,500}$/u,
            allowed: "1 to 500 characters without white space, control characters and '~'",
          }),
        ),
        ...KAFKA_KEYS,
        topic: Type.Optional(KAFKA_KEYS.topic),
      },
      'a mapping with type',
    ),
  ],
  {
    description:
      'How messages leave. Keys of a connection to Kafka are those of the section `kafka`; without `servers` that connection is used.',
    allowed:
      "an address ('https://…'), 'queue:NAME', 'kafka:TOPIC', 'log', 'none', or a mapping with type and what the type needs",
    otherwise: '`none`',
  },
)

const OutboxSchema = section(
  'An outbox that this server delivers or watches over.',
  {
    name: text('Unique and lasting: letters, metrics and logs have it.', {
      pattern: OUTBOX_NAME,
      allowed: OUTBOX_NAME_FORM,
    }),
    url: Type.Optional(
      text('The database that its table lies in.', {
        allowed: "'sqlite:PATH' or 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'; left out: the store",
        otherwise: 'the store',
        secret: true,
        // Nobody else could write into an outbox in the memory of the server.
        is: (url) => ['sqlite', 'postgres'].includes(readStoreUrl(url)?.kind ?? ''),
      }),
    ),
    table: Type.Optional(
      text('Its table; every outbox has one of its own.', {
        pattern: /^[^\0]{1,128}$/,
        allowed: 'the name of a table',
        otherwise: '`outbox_messages`, or `OutboxMessages` with `naming: pascal`',
      }),
    ),
    naming: Type.Optional(oneOf('How tables and columns are called.', NAMINGS, { otherwise: '`snake`' })),
    columns: Type.Optional(
      named('Single columns that are called otherwise.', Type.String({ allowed: 'a text' }), {
        allowed: 'a mapping of columns to their names',
      }),
    ),
    transport: Type.Optional(TransportSchema),
    ...optional({ ...DISPATCHER_KEYS, health: HealthSchema }),
  },
  'a mapping with name and transport',
)

export const OutboxesSchema = list('Outboxes that this server delivers or watches over.', OutboxSchema, {
  default: [],
  allowed: 'a list of outboxes',
})

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
  http: ['url', ...Object.keys(HTTP_KEYS)],
  queue: ['queue'],
  kafka: Object.keys(KAFKA_KEYS),
}
const NEEDS: Readonly<Record<string, readonly [key: string, allowed: string]>> = {
  http: ['url', HTTP_FORM],
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
