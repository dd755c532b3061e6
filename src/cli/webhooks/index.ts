/** `bartleby webhooks …`: consumers of webhooks with their jobs, requeues and purges under way, and what is done with one of them. */
import type { Command } from 'commander'
import type { consumerOnWire, runOnWire } from '../../webhooks/admin-routes.ts'
import { commandGroup, listAll, type OfficeFlags, officeCommand, SERVER_HELP } from '../office.ts'
import { table } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { limitsCommand, purgeCommand, requeueCommand, resumeCommand, secretCommand } from './act.ts'
import { verifyCommand } from './verify.ts'

type ShownConsumer = ReturnType<typeof consumerOnWire>
type ShownRun = ReturnType<typeof runOnWire>

const status = (terminal: Terminal): Command =>
  officeCommand(
    'webhooks status',
    'Show all consumers: what waits, what is dead, whether deliveries are paused.',
    ['status', 'status --channel orders', "status --json | jq '.[] | select(.dead > 0)'"],
  )
    .option('--channel <id>', 'only the consumers of this channel')
    .work(terminal, async (desk, flags: OfficeFlags & { readonly channel?: string }) => {
      const { channel } = flags
      desk.print(await listAll<ShownConsumer>(desk, '/api/webhooks/consumers', { channel }), consumersText)
    })

function consumersText(consumers: readonly ShownConsumer[]): string {
  if (consumers.length === 0) return 'there are no consumers'
  const all = table(
    ['CHANNEL', 'CONSUMER', 'TYPE', 'QUEUED', 'IN FLIGHT', 'DELIVERED', 'DEAD', 'OLDEST DEAD', 'STATE'],
    consumers.map((each) => [
      each.channelId,
      each.consumerId,
      each.type,
      each.queued,
      each.inFlight,
      each.delivered,
      each.dead,
      each.oldestDeadAtUtc ?? '-',
      each.state,
    ]),
  )
  const reasons = consumers.flatMap(({ channelId, consumerId, pauseReason }) =>
    pauseReason === null ? [] : [[channelId, consumerId, pauseReason]],
  )
  if (reasons.length === 0) return all
  return `${all}\n\n${table(['CHANNEL', 'CONSUMER', 'PAUSED BECAUSE'], reasons)}`
}

const runs = (terminal: Terminal): Command =>
  officeCommand(
    'webhooks runs',
    'Show requeues and purges of all dead jobs of a consumer, and how far they are.',
    ['runs', 'runs --json'],
  ).work(terminal, async ({ call, print }) => {
    type Answer = { readonly runs: readonly ShownRun[] }
    print((await call<Answer>('GET', '/api/webhooks/runs?limit=100')).runs, runsText)
  })

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

export const webhooksCommand = commandGroup(
  'webhooks',
  'Look after webhooks: consumers, their dead jobs and their counts.',
  `${SERVER_HELP}
\`verify\` works on the store itself, whether servers run or not.

Examples:
  $ bartleby webhooks status                                 who has dead jobs, and who is paused
  $ bartleby webhooks resume orders billing                  deliver to a paused consumer again
  $ bartleby webhooks requeue orders billing                 start all its dead jobs over
  $ bartleby webhooks runs                                   how far that is
  $ bartleby webhooks limits orders billing --at-once 5      be gentle
  $ bartleby webhooks secret orders billing                  sign its deliveries
  $ bartleby webhooks verify                                 prove that no dead job is counted wrong`,
  [status, runs, resumeCommand, limitsCommand, secretCommand, requeueCommand, purgeCommand, verifyCommand],
)
