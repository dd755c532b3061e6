/** `bartleby webhooks status|runs`: consumers with their jobs, and requeues and purges under way. */
import type { Command } from 'commander'
import type { Page } from '../../client/index.ts'
import { type CallServer, withServer } from '../office-call.ts'
import type { ConnectionFlags } from '../queues/connection.ts'
import { type Terminal, table } from '../terminal.ts'
import { webhookCommand } from './connection.ts'

interface ShownConsumer {
  readonly channelId: string
  readonly consumerId: string
  readonly type: string
  readonly queued: number
  readonly inFlight: number
  readonly delivered: number
  readonly dead: number
  readonly oldestDeadAtUtc: string | null
  readonly state: string
  readonly pauseReason: string | null
}

interface ShownRun {
  readonly kind: string
  readonly channelId: string
  readonly consumerId: string
  readonly expected: number
  readonly done: number
  readonly state: string
  readonly by: string
  readonly startedAtUtc: string
  readonly finishedAtUtc: string | null
}

export const lookCommands = (terminal: Terminal): Command[] => [status(terminal), runs(terminal)]

const status = (terminal: Terminal): Command =>
  webhookCommand('status', 'Show all consumers: what waits, what is dead, whether deliveries are paused.', [
    'status',
    'status --channel orders',
    "status --json | jq '.[] | select(.dead > 0)'",
  ])
    .option('--channel <id>', 'only the consumers of this channel')
    .action((flags: ConnectionFlags & { readonly channel?: string }) =>
      withServer(flags, terminal, async (call) => {
        const consumers = await allConsumers(call, flags.channel)
        terminal.out(flags.json ? JSON.stringify(consumers, null, 2) : consumersText(consumers))
      }),
    )

async function allConsumers(call: CallServer, channel: string | undefined): Promise<ShownConsumer[]> {
  const consumers: ShownConsumer[] = []
  for (let token: string | null = null; ; ) {
    const query = new URLSearchParams({ limit: '100' })
    if (channel !== undefined) query.set('channel', channel)
    if (token !== null) query.set('continuationToken', token)
    const page: Page<ShownConsumer> = await call('GET', `/api/webhooks/consumers?${query}`)
    consumers.push(...page.items)
    token = page.continuationToken
    if (token === null) return consumers
  }
}

function consumersText(consumers: readonly ShownConsumer[]): string {
  if (consumers.length === 0) return 'there are no consumers'
  const rows = consumers.map((each) => [
    each.channelId,
    each.consumerId,
    each.type,
    each.queued,
    each.inFlight,
    each.delivered,
    each.dead,
    each.oldestDeadAtUtc ?? '-',
    each.state,
  ])
  const headings = [
    'CHANNEL',
    'CONSUMER',
    'TYPE',
    'QUEUED',
    'IN FLIGHT',
    'DELIVERED',
    'DEAD',
    'OLDEST DEAD',
    'STATE',
  ]
  const reasons = consumers.flatMap(({ channelId, consumerId, pauseReason }) =>
    pauseReason === null ? [] : [[channelId, consumerId, pauseReason]],
  )
  const paused =
    reasons.length === 0 ? '' : `\n\n${table(['CHANNEL', 'CONSUMER', 'PAUSED BECAUSE'], reasons)}`
  return table(headings, rows) + paused
}

const runs = (terminal: Terminal): Command =>
  webhookCommand('runs', 'Show requeues and purges of all dead jobs of a consumer, and how far they are.', [
    'runs',
    'runs --json',
  ]).action((flags: ConnectionFlags) =>
    withServer(flags, terminal, async (call) => {
      const { runs } = await call<{ readonly runs: readonly ShownRun[] }>(
        'GET',
        '/api/webhooks/runs?limit=100',
      )
      terminal.out(flags.json ? JSON.stringify(runs, null, 2) : runsText(runs))
    }),
  )

function runsText(shown: readonly ShownRun[]): string {
  if (shown.length === 0) return 'there are no runs'
  return table(
    ['STARTED', 'KIND', 'CHANNEL', 'CONSUMER', 'DONE', 'OF', 'STATE', 'BY'],
    shown.map((run) => [
      run.startedAtUtc,
      run.kind,
      run.channelId,
      run.consumerId,
      run.done,
      run.expected,
      run.state,
      run.by,
    ]),
  )
}
