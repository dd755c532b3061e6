/** `bartleby webhooks …`: consumers of webhooks with their jobs, requeues and purges under way, and what is done with one of them. */
import type { Command } from 'commander'
import { pathTo } from '../../client/envelope.ts'
import { usage } from '../../terminal/exit.ts'
import { confirmName, wholeNumber } from '../../terminal/flags.ts'
import {
  type CommandKit,
  commandGroup,
  listAll,
  type OfficeFlags,
  officeCommand,
  SERVER_HELP,
} from '../../terminal/office.ts'
import { table, tableOf } from '../../terminal/table.ts'
import { printable } from '../../terminal/terminal.ts'
import { grouped } from '../../terminal/words.ts'
import type { consumerOnWire, runOnWire } from './admin-routes.ts'
import { verifyCommand } from './verify-command.ts'

const OF = '<channel> <consumer>'

/** The path of what can be done with one consumer. */
const consumerPath = (channel: string, consumer: string, act: string): string =>
  `${pathTo('/api/webhooks/channels', channel)}/${pathTo('consumers', consumer)}/${act}`

const named = (channel: string, consumer: string): string =>
  printable(`consumer '${consumer}' of channel '${channel}'`)

const resumeCommand = (kit: CommandKit): Command =>
  officeCommand(
    `webhooks resume ${OF}`,
    'End the pause of a consumer: its jobs are delivered again at once.',
    ['resume orders billing'],
  ).work(kit, async ({ call, printLine }, channel: string, consumer: string) => {
    const answer = await call<{ resumed: boolean }>('POST', consumerPath(channel, consumer, 'resume'))
    const text = answer.resumed ? 'is delivered to again' : 'was not paused'
    printLine(answer, `${named(channel, consumer)} ${text}`)
  })

interface LimitFlags extends OfficeFlags {
  readonly atOnce?: string
  readonly perSecond?: string
}

const limitsCommand = (kit: CommandKit): Command =>
  officeCommand(
    `webhooks limits ${OF}`,
    'Limit the attempts that each server makes at a consumer; a limit that is not given is the default of the server again.',
    ['limits orders billing --at-once 5', 'limits orders billing --per-second 0.5', 'limits orders billing'],
  )
    .option('--at-once <number>', 'attempts of a server at the same time')
    .option('--per-second <number>', 'attempts of a server per second')
    .work(kit, async ({ call, printLine }, channel: string, consumer: string, flags: LimitFlags) => {
      const wanted = {
        mostAtOnce: wholeNumber('--at-once', flags.atOnce, 1) ?? null,
        mostPerSecond: rateOf(flags.perSecond),
      }
      await call('PUT', consumerPath(channel, consumer, 'limits'), wanted)
      const shown = (limit: number | null) => (limit === null ? 'as many as the server allows' : limit)
      const text = `of each server at once ${shown(wanted.mostAtOnce)}, per second ${shown(wanted.mostPerSecond)}`
      printLine(wanted, `${named(channel, consumer)}: ${text}`)
    })

function rateOf(text: string | undefined): number | null {
  if (text === undefined) return null
  if (!/^\d{1,7}(\.\d{1,6})?$/.test(text) || Number(text) === 0)
    throw usage(`--per-second is '${text}'; expected a number above 0`)
  return Number(text)
}

interface SecretFlags extends OfficeFlags {
  readonly dropPrevious?: boolean
  readonly off?: boolean
}

const secretCommand = (kit: CommandKit): Command =>
  officeCommand(
    `webhooks secret ${OF}`,
    'Make a new signing secret and print it, this once; the one before it signs too until it is dropped.',
    ['secret orders billing', 'secret orders billing --drop-previous', 'secret orders billing --off'],
  )
    .option('--drop-previous', 'make none; from now on only the newest secret signs')
    .option('--off', 'make none; from now on deliveries are not signed')
    .work(kit, async ({ call, printLine }, channel: string, consumer: string, flags: SecretFlags) => {
      if (flags.off && flags.dropPrevious) throw usage('give one of --drop-previous and --off')
      if (flags.off || flags.dropPrevious) {
        const what = flags.off ? 'secrets' : 'secrets/previous'
        await call('DELETE', consumerPath(channel, consumer, what))
        const text = flags.off ? 'are not signed any more' : 'are signed with the newest secret only'
        return printLine({}, `deliveries to ${named(channel, consumer)} ${text}`)
      }
      const made = await call<{ secret: string }>('POST', consumerPath(channel, consumer, 'secrets'))
      // The secret alone, so that it can be piped to where it is kept.
      printLine(made, made.secret)
    })

const requeueCommand = (kit: CommandKit): Command =>
  officeCommand(
    `webhooks requeue ${OF}`,
    'Requeue all dead jobs of a consumer. Of many it goes on in the background: see `runs`.',
    ['requeue orders billing'],
  ).work(kit, async ({ call, printLine }, channel: string, consumer: string) => {
    await call('POST', consumerPath(channel, consumer, 'requeue'))
    printLine({}, `the dead jobs of ${named(channel, consumer)} are being requeued`)
  })

type PurgeFlags = OfficeFlags & { readonly yes?: boolean }

const purgeCommand = (kit: CommandKit): Command =>
  officeCommand(
    `webhooks purge ${OF}`,
    'Erase all dead jobs of a consumer whose attempts are used up, with their letters.',
    ['purge orders billing', 'purge orders billing --yes --json'],
  )
    .option('--yes', 'do not ask')
    .work(kit, async ({ call, printLine }, channel: string, consumer: string, flags: PurgeFlags) => {
      const deed = `erase all dead jobs of ${named(channel, consumer)} for good`
      await confirmName(deed, { kind: 'consumer', name: consumer }, flags.yes, kit.terminal)
      const answer = await call<{ purged: number }>('POST', consumerPath(channel, consumer, 'purge'))
      printLine(answer, `${grouped(answer.purged)} dead jobs were erased`)
    })

type ShownConsumer = ReturnType<typeof consumerOnWire>
type ShownRun = ReturnType<typeof runOnWire>

const status = (kit: CommandKit): Command =>
  officeCommand(
    'webhooks status',
    'Show all consumers: what waits, what is dead, whether deliveries are paused.',
    ['status', 'status --channel orders', "status --json | jq '.[] | select(.dead > 0)'"],
  )
    .option('--channel <id>', 'only the consumers of this channel')
    .work(kit, async (desk, flags: OfficeFlags & { readonly channel?: string }) => {
      const { channel } = flags
      desk.print(await listAll<ShownConsumer>(desk, '/api/webhooks/consumers', { channel }), consumersText)
    })

function consumersText(consumers: readonly ShownConsumer[]): string {
  if (consumers.length === 0) return 'there are no consumers'
  const all = tableOf(consumers, {
    CHANNEL: ({ channelId }) => channelId,
    CONSUMER: ({ consumerId }) => consumerId,
    TYPE: ({ type }) => type,
    QUEUED: ({ queued }) => queued,
    'IN FLIGHT': ({ inFlight }) => inFlight,
    DELIVERED: ({ delivered }) => delivered,
    DEAD: ({ dead }) => dead,
    'OLDEST DEAD': ({ oldestDeadAtUtc }) => oldestDeadAtUtc ?? '-',
    STATE: ({ state }) => state,
  })
  const reasons = consumers.flatMap(({ channelId, consumerId, pauseReason }) =>
    pauseReason === null ? [] : [[channelId, consumerId, pauseReason]],
  )
  if (reasons.length === 0) return all
  return `${all}\n\n${table(['CHANNEL', 'CONSUMER', 'PAUSED BECAUSE'], reasons)}`
}

const runs = (kit: CommandKit): Command =>
  officeCommand(
    'webhooks runs',
    'Show requeues and purges of all dead jobs of a consumer, and how far they are.',
    ['runs', 'runs --json'],
  ).work(kit, async ({ call, print }) => {
    type Answer = { readonly runs: readonly ShownRun[] }
    print((await call<Answer>('GET', '/api/webhooks/runs?limit=100')).runs, runsText)
  })

function runsText(shown: readonly ShownRun[]): string {
  if (shown.length === 0) return 'there are no runs'
  return tableOf(shown, {
    STARTED: ({ startedAtUtc }) => startedAtUtc,
    KIND: ({ kind }) => kind,
    CHANNEL: ({ channelId }) => channelId,
    CONSUMER: ({ consumerId }) => consumerId,
    DONE: ({ done }) => done,
    OF: ({ expected }) => expected,
    STATE: ({ state }) => state,
    BY: ({ by }) => by,
  })
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
