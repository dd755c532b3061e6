/** `bartleby runs`: work over many rows that servers go on with. */
import { Command } from 'commander'
import type { RunItem, RunState } from '../client/runs.ts'
import { RUN_STATES } from '../work/run.ts'
import { type Column, columnsText } from './columns.ts'
import { EXIT_HELP } from './exit.ts'
import { withOffice } from './office-call.ts'
import { grouped } from './progress.ts'
import { type ConnectionFlags, DEFAULT_URL, serverCommand, wholeNumber } from './queues/connection.ts'
import { type Style, styleOf } from './style.ts'
import { printable, type Terminal } from './terminal.ts'
import { ageOf, nowMs, secondsOf } from './times.ts'
import { listAll } from './walk-list.ts'

interface ListFlags extends ConnectionFlags {
  readonly kind?: string
  readonly state?: string
  readonly limit: string
}

interface SteerFlags extends ConnectionFlags {
  readonly reason?: string
}

const ID = 'd0sk3v9rkmnc73a1b2cg'

export function runsCommand(terminal: Terminal): Command {
  return new Command('runs')
    .description('Show work over many rows that servers go on with; pause, resume or cancel it.')
    .addHelpText(
      'after',
      `
An expiry, or a requeue or purge of all dead jobs of a consumer, is a run: whichever server is there goes on with it.
The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.

Examples:
  $ bartleby runs                                            the same as: bartleby runs list
  $ bartleby runs list --state running,paused
  $ bartleby runs show ${ID}
  $ bartleby runs pause ${ID} --reason 'the consumer is being deployed'

${EXIT_HELP}`,
    )
    .addCommand(list(terminal), { isDefault: true })
    .addCommand(show(terminal))
    .addCommand(
      steer(terminal, 'pause', 'Pause a run: nothing more is done until it is resumed.').option(
        '--reason <text>',
        'why; shown to all who look at it',
      ),
    )
    .addCommand(steer(terminal, 'resume', 'Go on with a run that is paused.'))
    .addCommand(
      steer(terminal, 'cancel', 'End a run: what was not done stays as it is.').option(
        '--reason <text>',
        'why; shown to all who look at it',
      ),
    )
}

const list = (terminal: Terminal): Command =>
  serverCommand(
    'list',
    'List runs, the newest first.',
    ['list', 'list --kind expire --state running', "list --json | jq '.[].counts.done'"],
    'runs',
  )
    .option('--kind <kinds>', 'only of these kinds: expire, webhook-requeue, webhook-purge …')
    .option('--state <states>', `only in these states: ${RUN_STATES.join(', ')}`)
    .option('--limit <n>', 'at most so many', '50')
    .action((flags: ListFlags) =>
      withOffice(flags, terminal, async ({ call }) => {
        const limit = wholeNumber('--limit', flags.limit, 1)
        const filter = { kind: flags.kind, state: flags.state }
        const runs = await listAll<RunItem>(call, '/api/runs', filter, limit)
        if (flags.json) return terminal.out(JSON.stringify(runs, null, 2))
        if (runs.length === 0) return terminal.out('there are no runs')
        terminal.out(columnsText(columnsAt(nowMs()), runs, terminal.screen?.columns, styleOf(terminal)))
      }),
    )

const show = (terminal: Terminal): Command =>
  serverCommand(
    'show <id>',
    'Show a run and how far it is.',
    [`show ${ID}`, `show ${ID} --json`],
    'runs',
  ).action((id: string, flags: ConnectionFlags) =>
    withOffice(flags, terminal, async ({ runs }) => tell(await runs.read(id), flags, terminal)),
  )

const steer = (terminal: Terminal, verb: 'pause' | 'resume' | 'cancel', description: string): Command =>
  serverCommand(`${verb} <id>`, description, [`${verb} ${ID}`], 'runs').action(
    (id: string, flags: SteerFlags) =>
      withOffice(flags, terminal, async ({ runs }) => {
        const changed = verb === 'resume' ? runs.resume(id) : runs[verb](id, flags.reason)
        tell(await changed, flags, terminal)
      }),
  )

function tell(run: RunItem, { json }: ConnectionFlags, terminal: Terminal): void {
  terminal.out(json ? JSON.stringify(run, null, 2) : runText(run, styleOf(terminal)))
}

/** All that is on file about a run, a line for each. */
function runText(run: RunItem, style: Style): string {
  const { counts } = run
  const rates = [
    ...(run.rateNow === null ? [] : [`${grouped(Math.round(run.rateNow))} a second`]),
    ...(run.rate === null ? [] : [`at most ${run.rate} a second`]),
  ]
  const lines: readonly (readonly [string, string])[] = [
    ['run', run.id],
    ['kind', printable(run.kind)],
    ['state', stateIn(style, run.state, run.state)],
    ['about', printable(run.about)],
    ['done', `${grouped(counts.done)}${counts.expected === null ? '' : ` of ${grouped(counts.expected)}`}`],
    ['skipped', grouped(counts.skipped)],
    ['failed', grouped(counts.failed)],
    ['rate', rates.join(', ')],
    ['started', `${secondsOf(run.startedAtUtc)} by ${printable(run.startedBy)}`],
    ['ended', run.endedAtUtc === null ? '' : secondsOf(run.endedAtUtc)],
    ['due', run.dueAtUtc === null ? '' : secondsOf(run.dueAtUtc)],
    ['resumed', run.resumed === 0 ? '' : `${run.resumed} times`],
    ['note', printable(run.note ?? '')],
  ]
  return lines
    .filter(([, text]) => text !== '')
    .map(([name, text]) => `${name.padEnd(9)}${text}`)
    .join('\n')
}

function stateIn(style: Style, state: RunState, text: string): string {
  if (state === 'done') return style.green(text)
  if (state === 'failed' || state === 'cancelled') return style.red(text)
  return state === 'paused' ? style.yellow(text) : style.cyan(text)
}

const columnsAt = (now: number): readonly Column<RunItem>[] => [
  { heading: 'ID', text: ({ id }) => id },
  { heading: 'KIND', text: ({ kind }) => kind },
  {
    heading: 'STATE',
    text: ({ state }) => state,
    paint: ({ state }, text, style) => stateIn(style, state, text),
  },
  { heading: 'DONE', text: ({ counts }) => grouped(counts.done), right: true },
  {
    heading: 'LEFT',
    text: ({ counts }) => (counts.remaining === null ? '' : grouped(counts.remaining)),
    right: true,
  },
  { heading: 'BY', text: ({ startedBy }) => startedBy, most: 20, least: 6 },
  { heading: 'AGE', text: ({ startedAtUtc }) => ageOf(startedAtUtc, now), right: true },
  { heading: 'WHAT', text: ({ about }) => about, flexible: true },
]
