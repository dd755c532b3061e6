/** `bartleby kafka`: checks, intake, and single dead events. */
import { pathTo } from '../../client/envelope.ts'
import type { LetterCounts } from '../../client/letter-types.ts'
import { commandGroup } from '../../terminal/command.ts'
import { failed, usage } from '../../terminal/exit.ts'
import { DEFAULT_URL, officeCommand } from '../../terminal/office.ts'
import { table } from '../../terminal/table.ts'
import { printable } from '../../terminal/terminal.ts'
import { sourceCommand } from '../source-commands.ts'
import type { overviewOnWire, placeOnWire } from './admin-view.ts'
import type { KafkaCheck } from './check.ts'
import type { KafkaOptions } from './settings/options.ts'

const check = sourceCommand(
  'check',
  'Try brokers, topics, group and rights of the configuration. Writes no record, joins no group.',
)
  .option('--config <file>', 'configuration in YAML')
  .option('--json', 'print the checks as JSON')
  .help(`It works beside a running server, and also while \`kafka.enabled\` is false. Rights that are needed:
  Read, Describe    on the DLQ topics
  Read              on the group
  Write, Describe   on the retry topics

Examples:
  $ bartleby kafka check
  $ bartleby kafka check --config bartleby.yaml --json | jq '.[] | select(.verdict == "missing")'

Exit codes:
  0  nothing is missing
  1  something is missing; the lines say what
  2  wrong usage or configuration`)
  .work(async ({ sectionOf, terminal }, { json, ...flags }) => {
    // Loaded when they are needed, as in `serve`.
    const { kafkaSettings } = await import('./settings/options.ts')
    const { checkKafka } = await import('./check.ts')
    // The configuration has checked the section by its own schema.
    const section = (await sectionOf('kafka', flags)) as KafkaOptions | undefined
    const settings = kafkaSettings({ ...section, enabled: true })
    if (settings === null) throw usage('the configuration has no section kafka')
    const checks = await checkKafka(settings)
    terminal.out(json ? JSON.stringify(checks, null, 2) : checks.map(lineOf).join('\n'))
    const missing = checks.filter(({ verdict }) => verdict === 'missing').length
    if (missing > 0) throw failed(missing === 1 ? '1 thing is missing' : `${missing} things are missing`)
  })

const MARKS = { fine: '✓', missing: '✗', unknown: '?' } as const

const lineOf = ({ subject, verdict, message }: KafkaCheck): string =>
  `${MARKS[verdict]} ${printable(subject)} ${printable(message)}`

/** Without Kafka only `enabled`. */
type Overview = { readonly enabled: boolean } & Partial<Omit<ReturnType<typeof overviewOnWire>, 'enabled'>>

const eventPath = (dlqId: string): string => pathTo('/api/kafka/events', dlqId)

const status = officeCommand(
  'kafka status',
  'Show services, how many events of each wait, and how far intake is.',
  ['status', "status --json | jq '.intake.troubles'"],
).work(async ({ call, print }) => {
  const overview = await call<Overview>('GET', '/api/kafka')
  const counts = await call<LetterCounts>('GET', '/api/counts?engine=kafka&status=Pending&by=originalQueue')
  print({ ...overview, pending: counts.items }, () => overviewText(overview, counts))
})

function overviewText({ enabled, services = [], intake }: Overview, { items }: LetterCounts): string {
  if (!enabled || intake === undefined)
    return 'Kafka is not enabled on this server (kafka.enabled in its configuration)'
  const waiting = Map.groupBy(items, ({ originalQueue }) => originalQueue?.split('/')[0] ?? '')
  const count = (service: string): number =>
    (waiting.get(service) ?? []).reduce((sum, each) => sum + each.count, 0)
  const listed = services.map(({ name, dlqTopic, retryTopic, profile }) => [
    name,
    count(name),
    dlqTopic,
    retryTopic,
    profile,
  ])
  const names = new Set(services.map(({ name }) => name))
  const others = [...waiting.keys()]
    .filter((name) => !names.has(name))
    .map((name) => [name, count(name), '-', '-', '-'])
  const partitions = intake.partitions.map(({ topic, partition, committed, lag, trouble }) => [
    topic,
    partition,
    committed ?? '-',
    lag ?? '-',
    trouble ?? '-',
  ])
  return [
    table(['SERVICE', 'PENDING', 'DLQ TOPIC', 'RETRY TOPIC', 'PROFILE'], [...listed, ...others]),
    `intake: ${intake.state}`,
    ...intake.troubles.map((trouble) => `  ${printable(trouble)}`),
    ...(partitions.length === 0
      ? []
      : [table(['TOPIC', 'PARTITION', 'COMMITTED', 'LAG', 'TROUBLE'], partitions)]),
  ].join('\n')
}

const show = officeCommand(
  'kafka show <dlq-id>',
  'Show a dead event: exception, headers, reasons, earlier deaths, bytes.',
  ['show 4706cc1b-4c32-46d9-91b9-57b2de45dfe0'],
).work(async ({ call, terminal }, dlqId) =>
  terminal.out(JSON.stringify(await call<object>('GET', eventPath(dlqId)), null, 2)),
)

const reassign = officeCommand(
  'kafka reassign <dlq-id> <service>',
  'Give a dead event to a service, such as one under ~unknown.',
  [
    'reassign 4706cc1b-4c32-46d9-91b9-57b2de45dfe0 wps',
    'reassign 4706cc1b-4c32-46d9-91b9-57b2de45dfe0 wps --topic orders',
  ],
)
  .option(
    '--topic <topic>',
    'the topic that it came from originally, and is sent to where retry_topic is $original; left out: as it is',
  )
  .work(async ({ call, printLine }, dlqId, service, { topic }) => {
    const body = { service, ...(topic === undefined ? {} : { topic }) }
    const place = await call<ReturnType<typeof placeOnWire>>('POST', `${eventPath(dlqId)}/reassign`, body)
    const text = `event '${place.dlqId}' is in the queue of '${place.service}', from topic '${place.originalTopic}'`
    printLine(place, printable(text))
  })

export const kafkaCommand = commandGroup(
  'kafka',
  'Look after Kafka: brokers, topics and rights, intake, dead events.',
  `\`check\` reads the configuration and asks the brokers itself. The others ask a server: --url, BARTLEBY_URL or ${DEFAULT_URL};
the token is --token or BARTLEBY_TOKEN. Events are processed and discarded over HTTP: see docs/kafka.md.

Examples:
  $ bartleby kafka check --config bartleby.yaml           what is missing before events can flow
  $ bartleby kafka status                                 what waits, and how far intake is
  $ bartleby kafka show 4706cc1b-4c32-46d9-91b9-57b2de45dfe0
  $ bartleby kafka reassign 4706cc1b-4c32-46d9-91b9-57b2de45dfe0 wps`,
  [check, status, show, reassign],
)
