/** `bartleby runs`: work over many rows that servers go on with. */
import type { RunItem } from '../client/runs.ts'
import { commandGroup } from '../terminal/command.ts'
import { officeCommand, printListAt, SERVER_HELP } from '../terminal/office.ts'
import { type Column, counted, type Field, fieldLines, stateColumn } from '../terminal/table.ts'
import { printable, type Style, stateIn } from '../terminal/terminal.ts'
import { ageOf, grouped, nowMs, secondsOf } from '../terminal/words.ts'
import { RUN_STATES } from '../work/shapes.ts'

const ID = 'd0sk3v9rkmnc73a1b2cg'

const list = officeCommand('runs list', 'List runs, the newest first.', [
  'list',
  'list --kind expire --state running',
  "list --json | jq '.[].counts.done'",
])
  .option('--kind <kinds>', 'only of these kinds: expire, webhook-requeue, webhook-purge …')
  .option('--state <states>', `only in these states: ${RUN_STATES.join(', ')}`)
  .option('--limit <n>', 'at most so many', '50')
  .work((desk, flags) => printListAt(desk, '/api/runs', flags, columnsAt(nowMs()), 'there are no runs'))

const show = officeCommand('runs show <id>', 'Show a run and how far it is.', [
  `show ${ID}`,
  `show ${ID} --json`,
]).work(async ({ runs, print }, id) => print(await runs.read(id), runText))

const steer = (verb: 'pause' | 'resume' | 'cancel', description: string) =>
  officeCommand(`runs ${verb} <id>`, description, [`${verb} ${ID}`])
    .adding<{ readonly reason?: string }>(
      (command) => verb === 'resume' || command.option('--reason <text>', 'why; shown to all who look at it'),
    )
    .work(async ({ runs, print }, id, { reason }) =>
      print(await (verb === 'resume' ? runs.resume(id) : runs[verb](id, reason)), runText),
    )

function runText(run: RunItem, style: Style): string {
  const { counts } = run
  const rates = [
    ...(run.rateNow === null ? [] : [`${grouped(Math.round(run.rateNow))} a second`]),
    ...(run.rate === null ? [] : [`at most ${run.rate} a second`]),
  ]
  const fields: readonly Field[] = [
    ['about', run.about],
    ['done', `${grouped(counts.done)}${counts.expected === null ? '' : ` of ${grouped(counts.expected)}`}`],
    ['skipped', grouped(counts.skipped)],
    ['failed', grouped(counts.failed)],
    ['rate', rates.join(', ')],
    ['started', `${secondsOf(run.startedAtUtc)} by ${run.startedBy}`],
    ['ended', run.endedAtUtc === null ? null : secondsOf(run.endedAtUtc)],
    ['due', run.dueAtUtc === null ? null : secondsOf(run.dueAtUtc)],
    ['resumed', run.resumed === 0 ? null : `${run.resumed} times`],
    ['note', run.note],
  ]
  return [
    `run      ${run.id}`,
    `kind     ${printable(run.kind)}`,
    `state    ${stateIn(style, run.state, run.state)}`,
    ...fieldLines(fields, 9),
  ].join('\n')
}

const columnsAt = (now: number): readonly Column<RunItem>[] => [
  { heading: 'ID', text: ({ id }) => id },
  { heading: 'KIND', text: ({ kind }) => kind },
  stateColumn(),
  counted('DONE', ({ counts }) => counts.done),
  {
    heading: 'LEFT',
    text: ({ counts }) => (counts.remaining === null ? '' : grouped(counts.remaining)),
    right: true,
  },
  { heading: 'BY', text: ({ startedBy }) => startedBy, most: 20, least: 6 },
  { heading: 'AGE', text: ({ startedAtUtc }) => ageOf(startedAtUtc, now), right: true },
  { heading: 'WHAT', text: ({ about }) => about, flexible: true },
]

export const runsCommand = commandGroup(
  'runs',
  'Show work over many rows that servers go on with; pause, resume or cancel it.',
  `An expiry, or a requeue or purge of all dead jobs of a consumer, is a run: whichever server is there goes on with it.
${SERVER_HELP}

Examples:
  $ bartleby runs                                            the same as: bartleby runs list
  $ bartleby runs list --state running,paused
  $ bartleby runs show ${ID}
  $ bartleby runs pause ${ID} --reason 'the consumer is being deployed'`,
  [
    list,
    show,
    steer('pause', 'Pause a run: nothing more is done until it is resumed.'),
    steer('resume', 'Go on with a run that is paused.'),
    steer('cancel', 'End a run: what was not done stays as it is.'),
  ],
  { hasDefault: true },
)
