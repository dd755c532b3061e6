/** `bartleby webhooks`: consumers, their jobs, their runs and their counts. */
import { pathTo } from '../../client/envelope.ts'
import { commandGroup } from '../../terminal/command.ts'
import { EXIT, failed, usage } from '../../terminal/exit.ts'
import { confirmName, decimal, wholeNumber } from '../../terminal/flags.ts'
import { listAll, officeCommand, SERVER_HELP } from '../../terminal/office.ts'
import { showProgress } from '../../terminal/progress.ts'
import { table, tableOf } from '../../terminal/table.ts'
import { printable } from '../../terminal/terminal.ts'
import { grouped } from '../../terminal/words.ts'
import { storeCommand } from '../source-commands.ts'
import type { ShownConsumer, ShownRun } from './admin/admin-routes.ts'
import type { WebhookCheckReport } from './numbers/check.ts'

const consumerCommand = (verb: string, description: string, examples: readonly string[]) =>
  officeCommand(`webhooks ${verb} <channel> <consumer>`, description, examples)

const consumerPath = (channel: string, consumer: string, act: string): string =>
  `${pathTo('/api/webhooks/channels', channel)}/${pathTo('consumers', consumer)}/${act}`

const named = (channel: string, consumer: string): string =>
  printable(`consumer '${consumer}' of channel '${channel}'`)

const resume = consumerCommand(
  'resume',
  'End the pause of a consumer: its jobs are delivered again at once.',
  ['resume orders billing'],
).work(async ({ call, printLine }, channel, consumer) => {
  const answer = await call<{ resumed: boolean }>('POST', consumerPath(channel, consumer, 'resume'))
  const text = answer.resumed ? 'is delivered to again' : 'was not paused'
  printLine(answer, `${named(channel, consumer)} ${text}`)
})

const limits = consumerCommand(
  'limits',
  'Limit the attempts that each server makes at a consumer; a limit that is not given is the default of the server again.',
  ['limits orders billing --at-once 5', 'limits orders billing --per-second 0.5', 'limits orders billing'],
)
  .option('--at-once <number>', 'attempts of a server at the same time')
  .option('--per-second <number>', 'attempts of a server per second')
  .work(async ({ call, printLine }, channel, consumer, flags) => {
    const wanted = {
      mostAtOnce: wholeNumber('--at-once', flags.atOnce, 1) ?? null,
      mostPerSecond:
        flags.perSecond === undefined ? null : decimal('--per-second', flags.perSecond, 'a number above 0'),
    }
    await call('PUT', consumerPath(channel, consumer, 'limits'), wanted)
    const shown = (limit: number | null) => (limit === null ? 'as many as the server allows' : limit)
    const text = `of each server at once ${shown(wanted.mostAtOnce)}, per second ${shown(wanted.mostPerSecond)}`
    printLine(wanted, `${named(channel, consumer)}: ${text}`)
  })

const secret = consumerCommand(
  'secret',
  'Make a new signing secret and print it, this once; the one before it signs too until it is dropped.',
  ['secret orders billing', 'secret orders billing --drop-previous', 'secret orders billing --off'],
)
  .option('--drop-previous', 'make none; from now on only the newest secret signs')
  .option('--off', 'make none; from now on deliveries are not signed')
  .work(async ({ call, printLine }, channel, consumer, { off, dropPrevious }) => {
    if (off && dropPrevious) throw usage('give one of --drop-previous and --off')
    if (off || dropPrevious) {
      await call('DELETE', consumerPath(channel, consumer, off ? 'secrets' : 'secrets/previous'))
      const text = off ? 'are not signed any more' : 'are signed with the newest secret only'
      return printLine({}, `deliveries to ${named(channel, consumer)} ${text}`)
    }
    const made = await call<{ secret: string }>('POST', consumerPath(channel, consumer, 'secrets'))
    // The secret alone, so that it can be piped.
    printLine(made, made.secret)
  })

const requeue = consumerCommand(
  'requeue',
  'Requeue all dead jobs of a consumer. Of many it goes on in the background: see `runs`.',
  ['requeue orders billing'],
).work(async ({ call, printLine }, channel, consumer) => {
  await call('POST', consumerPath(channel, consumer, 'requeue'))
  printLine({}, `the dead jobs of ${named(channel, consumer)} are being requeued`)
})

const purge = consumerCommand(
  'purge',
  'Erase all dead jobs of a consumer whose attempts are used up, with their letters.',
  ['purge orders billing', 'purge orders billing --yes --json'],
)
  .option('--yes', 'do not ask')
  .work(async ({ call, printLine, terminal }, channel, consumer, { yes }) => {
    const deed = `erase all dead jobs of ${named(channel, consumer)} for good`
    await confirmName(deed, { kind: 'consumer', name: consumer }, yes, terminal)
    const answer = await call<{ purged: number }>('POST', consumerPath(channel, consumer, 'purge'))
    printLine(answer, `${grouped(answer.purged)} dead jobs were erased`)
  })

const status = officeCommand(
  'webhooks status',
  'Show all consumers: what waits, what is dead, whether deliveries are paused.',
  ['status', 'status --channel orders', "status --json | jq '.[] | select(.dead > 0)'"],
)
  .option('--channel <id>', 'only the consumers of this channel')
  .work(async (desk, { channel }) =>
    desk.print(await listAll<ShownConsumer>(desk, '/api/webhooks/consumers', { channel }), consumersText),
  )

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

const runs = officeCommand(
  'webhooks runs',
  'Show requeues and purges of all dead jobs of a consumer, and how far they are.',
  ['runs', 'runs --json'],
).work(async ({ call, print }) => {
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

const verify = storeCommand(
  'verify',
  'Check that the counts of dead jobs, and all others of webhooks, are what counting gives.',
)
  .option('--repair', 'put wrong counts right; servers may go on meanwhile')
  .option('--json', 'print the report as JSON, without progress')
  .help(`It works on a live store: it looks at one moment of it, and no server has to wait. All other promises of the
store are checked by \`bartleby verify\`.

Examples:
  $ bartleby webhooks verify
  $ bartleby webhooks verify --store postgres://app:secret@db/bartleby --repair
  $ bartleby webhooks verify --json | jq .mismatches

Exit codes:
  0  all counts are right, or were put right
  1  some are wrong; they are printed
  2  it could not run: wrong usage or configuration, or the store is not there, cannot be reached, is of
     another version, or on no PostgreSQL`)
  .work(async ({ terminal, onStore }, { json, repair = false, ...flags }) => {
    const { found, left } = await onStore(flags, EXIT.usage, async (db) => {
      const { checkWebhooks } = await import('./numbers/check.ts')
      const { SystemClock } = await import('../../core/system-clock.ts')
      const clock = new SystemClock()
      const progress = json ? null : showProgress(terminal)
      let done = 0
      const onProgress = (rows: number) => {
        done += rows
        progress?.show('counting', done, done)
      }
      try {
        const found = await checkWebhooks(db, { clock, repair, onProgress })
        if (!found.repaired) return { found, left: found }
        // No count can repair what is wrong with the jobs themselves.
        return { found, left: await checkWebhooks(db, { clock, onProgress }) }
      } finally {
        progress?.end()
      }
    })
    terminal.out(json ? JSON.stringify(found, null, 2) : checkText(found))
    const wrong = left.mismatches.length + left.tallies.length
    if (wrong > 0) throw failed(`${wrong} of the counts of webhooks are wrong`)
  })

function checkText({ checked, mismatches, tallies, repaired }: WebhookCheckReport): string {
  const wrong = [
    ...mismatches.map((each) => ({ ...each, tally: 'dead' })),
    ...tallies.map(({ consumerId, ...each }) => ({ ...each, consumerId: consumerId ?? '-' })),
  ]
  const consumers = `${grouped(checked)} consumer${checked === 1 ? '' : 's'}`
  if (wrong.length === 0) {
    const also = repaired ? '; counts of single errors were put right' : ''
    return `the counts of ${consumers} are what counting gives${also}`
  }
  const rows = wrong.map((each) => [each.channelId, each.consumerId, each.tally, each.counted, each.actual])
  return [
    table(['CHANNEL', 'CONSUMER', 'COUNT', 'COUNTED', 'ACTUAL'], rows),
    ...(repaired ? ['', 'these counts were put right'] : []),
  ].join('\n')
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
  [status, runs, resume, limits, secret, requeue, purge, verify],
)
