/** `bartleby kafka status|show|reassign`: how intake stands, and what can be done with one dead event. */
import type { Command } from 'commander'
import { pathTo } from '../../client/envelope.ts'
import { withServer } from '../office-call.ts'
import { type ConnectionFlags, serverCommand } from '../queues/connection.ts'
import { printable, type Terminal, table } from '../terminal.ts'

interface Overview {
  readonly enabled: boolean
  readonly services?: readonly {
    readonly name: string
    readonly dlqTopic: string
    readonly retryTopic: string
    readonly profile: string
  }[]
  readonly intake?: {
    readonly state: string
    readonly troubles: readonly string[]
    readonly partitions: readonly {
      readonly topic: string
      readonly partition: number
      readonly committed: string | null
      readonly lag: string | null
      readonly trouble: string | null
    }[]
  }
}

interface Counts {
  readonly items: readonly { readonly originalQueue: string | null; readonly count: number }[]
}

interface ShownPlace {
  readonly dlqId: string
  readonly service: string
  readonly originalTopic: string
  readonly state: string
}

const kafkaCommand = (usage: string, description: string, examples: readonly string[]): Command =>
  serverCommand(usage, description, examples, 'kafka')

const eventPath = (dlqId: string): string => pathTo('/api/kafka/events', dlqId)

export const officeCommands = (terminal: Terminal): Command[] => [
  status(terminal),
  show(terminal),
  reassign(terminal),
]

const status = (terminal: Terminal): Command =>
  kafkaCommand('status', 'Show services, how many events of each wait, and how far intake is.', [
    'status',
    "status --json | jq '.intake.troubles'",
  ]).action((flags: ConnectionFlags) =>
    withServer(flags, terminal, async (call) => {
      const overview = await call<Overview>('GET', '/api/kafka')
      const counts = await call<Counts>('GET', '/api/counts?engine=kafka&status=Pending&by=originalQueue')
      terminal.out(
        flags.json
          ? JSON.stringify({ ...overview, pending: counts.items }, null, 2)
          : overviewText(overview, counts),
      )
    }),
  )

function overviewText({ enabled, services = [], intake }: Overview, { items }: Counts): string {
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

const show = (terminal: Terminal): Command =>
  kafkaCommand('show <dlq-id>', 'Show a dead event: exception, headers, reasons, earlier deaths, bytes.', [
    'show 4706cc1b-4c32-46d9-91b9-57b2de45dfe0',
  ]).action((dlqId: string, flags: ConnectionFlags) =>
    withServer(flags, terminal, async (call) => {
      terminal.out(JSON.stringify(await call<object>('GET', eventPath(dlqId)), null, 2))
    }),
  )

const reassign = (terminal: Terminal): Command =>
  kafkaCommand('reassign <dlq-id> <service>', 'Give a dead event to a service, such as one under ~unknown.', [
    'reassign 4706cc1b-4c32-46d9-91b9-57b2de45dfe0 wps',
    'reassign 4706cc1b-4c32-46d9-91b9-57b2de45dfe0 wps --topic orders',
  ])
    .option(
      '--topic <topic>',
      'the topic that it came from originally, and is sent to where retry_topic is $original; left out: as it is',
    )
    .action((dlqId: string, service: string, flags: ConnectionFlags & { readonly topic?: string }) =>
      withServer(flags, terminal, async (call) => {
        const { topic } = flags
        const body = { service, ...(topic === undefined ? {} : { topic }) }
        const place = await call<ShownPlace>('POST', `${eventPath(dlqId)}/reassign`, body)
        const text = `event '${place.dlqId}' is in the queue of '${place.service}', from topic '${place.originalTopic}'`
        terminal.out(flags.json ? JSON.stringify(place) : printable(text))
      }),
    )
