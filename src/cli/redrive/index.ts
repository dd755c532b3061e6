/** `bartleby redrive …`: acts on many letters, planned first, then carried out by the server under control. */
import { pathTo } from '../../client/envelope.ts'
import type { RedriveItem, RedriveLetter } from '../../client/redrives.ts'
import { MEMBER_OUTCOMES, REDRIVE_STATES } from '../../redrive/shapes.ts'
import { commandGroup } from '../../terminal/command.ts'
import { usage } from '../../terminal/exit.ts'
import { wholeNumber } from '../../terminal/flags.ts'
import { type Desk, listAll, SERVER_HELP } from '../../terminal/office.ts'
import { type Column, counted, stateColumn } from '../../terminal/table.ts'
import { ageOf, grouped, nowMs } from '../../terminal/words.ts'
import { planCommand } from './plan.ts'
import { rateOf } from './plan-flags.ts'
import { redriveCommand, startCommand, watchCommand } from './start.ts'
import { detailText, reasonWords } from './text.ts'
import { accountOf } from './watch-frame.ts'

const ID = 'd0sk3v9rkmnc73a1b2cg'

const steer = (verb: 'pause' | 'resume' | 'cancel', description: string, examples: readonly string[]) =>
  redriveCommand(`${verb} <id>`, description, examples)
    .adding<{ readonly reason?: string }>(
      (command) => verb === 'resume' || command.option('--reason <text>', 'why; shown to all who look at it'),
    )
    .work(async ({ redrives, print }, id, { reason }) =>
      print(await (verb === 'resume' ? redrives.resume(id) : redrives[verb](id, reason)), accountOf),
    )

const rate = redriveCommand(
  'rate <id> <rate>',
  'Change how many letters a second a redrive sends to each destination.',
  [`rate ${ID} 100`, `rate ${ID} 0.5`, `rate ${ID} none      as fast as it goes`],
).work(async ({ redrives, print }, id, text) => {
  const perSecond = text === 'none' ? null : rateOf('the rate', text)
  print(await redrives.setRate(id, perSecond), accountOf)
})

const list = redriveCommand('list', 'List redrives, the newest first: running and past ones.', [
  'list',
  'list --state canary,running,paused',
  'list --all --json',
])
  .option('--state <states>', `only in these states: ${REDRIVE_STATES.join(', ')}`)
  .option('--limit <n>', 'at most so many', '50')
  .option('--all', 'all of them, and plans that were not started')
  .work(async (desk, flags) => {
    const limit = wholeNumber('--limit', flags.limit, 1)
    const state = flags.state ?? (flags.all ? REDRIVE_STATES.join(',') : undefined)
    const items = await listAll<RedriveItem>(desk, '/api/redrives', { state }, flags.all ? undefined : limit)
    desk.printList(items, redriveColumns(nowMs()), 'there are no redrives')
  })

const redriveColumns = (now: number): readonly Column<RedriveItem>[] => [
  { heading: 'ID', text: ({ id }) => id },
  stateColumn(({ state, isExpired }) => (state === 'planned' && isExpired ? 'expired' : state)),
  { heading: 'ACTION', text: ({ action }) => action },
  counted('PLANNED', ({ counts }) => counts.planned),
  counted('SENT', ({ counts }) => counts.sent),
  counted('SKIPPED', ({ counts }) => counts.skipped),
  counted('FAILED', ({ counts }) => counts.failed),
  counted('LEFT', ({ counts }) => counts.remaining),
  { heading: 'BY', text: ({ startedBy, plannedBy }) => startedBy ?? plannedBy, most: 20, least: 6 },
  {
    heading: 'AGE',
    text: ({ startedAtUtc, plannedAtUtc }) => ageOf(startedAtUtc ?? plannedAtUtc, now),
    right: true,
  },
  { heading: 'WHAT', text: ({ sentence }) => sentence, flexible: true },
]

interface ShowFlags {
  /** True: of any outcome. */
  readonly letters?: string | true
  readonly limit: string
  readonly all?: boolean
}

const show = redriveCommand(
  'show <id>',
  'Show a redrive: what was planned, how far it is, where letters went; or its letters.',
  [
    `show ${ID}`,
    `show ${ID} --letters returned`,
    `show ${ID} --letters failed --all --json | jq -r '.[] | .engine + "/" + .rowKey'`,
  ],
)
  .option('--letters [outcome]', `its letters; only those that are ${MEMBER_OUTCOMES.join(', ')}`)
  .option('--limit <n>', 'with --letters: at most so many', '50')
  .option('--all', 'with --letters: all of them')
  .work(async (desk, id, flags) => {
    if (flags.letters !== undefined) return printLetters(desk, id, flags.letters, flags)
    const width = desk.terminal.screen?.columns
    desk.print(await desk.redrives.read(id), (redrive, style) => detailText(redrive, { width, style }))
  })

async function printLetters(desk: Desk, id: string, asked: string | true, flags: ShowFlags): Promise<void> {
  const outcome = MEMBER_OUTCOMES.find((known) => known === asked)
  if (asked !== true && outcome === undefined)
    throw usage(`--letters is '${asked}'; expected one of ${MEMBER_OUTCOMES.join(', ')}, or nothing for all`)
  const limit = wholeNumber('--limit', flags.limit, 1)
  // One more shows whether there are more.
  const most = flags.all ? undefined : limit + 1
  const found = await listAll<RedriveLetter>(desk, pathTo('/api/redrives', id, 'letters'), { outcome }, most)
  const members = flags.all ? found : found.slice(0, limit)
  desk.printList(
    members,
    LETTER_COLUMNS,
    outcome === undefined ? 'it has no letters' : `no letter of it is ${outcome}`,
  )
  if (members.length < found.length && !desk.json)
    desk.terminal.err(`the first ${grouped(members.length)} letters; see more with --limit N or --all`)
}

const LETTER_COLUMNS: readonly Column<RedriveLetter>[] = [
  { heading: 'OUTCOME', text: ({ outcome }) => outcome },
  { heading: 'ENGINE', text: ({ engine }) => engine ?? '-', most: 20 },
  { heading: 'ROW KEY', text: ({ rowKey }) => rowKey ?? 'removed by retention' },
  { heading: 'DESTINATION', text: ({ destination }) => destination || '-', most: 28, least: 12 },
  {
    heading: 'WHY',
    text: ({ reason, detail }) => detail ?? reasonWords(reason ?? ''),
    flexible: true,
  },
]

export const redriveCommands = commandGroup(
  'redrive',
  'Act on many letters at once: plan it, start it, watch it, pause, resume or cancel it.',
  `A redrive is carried out by the server, and by another one when that ends: at a rate, a few letters first, and it stops when they
come back. ${SERVER_HELP}
Without a server, --store opens a store in this command, which then carries redrives out itself while it runs.

From the plan to the last letter:
  $ bartleby redrive plan 'signature:1-4f2a9c' --rate 50 --canary 10 --stop 20/100
  $ bartleby redrive start ${ID} --watch
  $ bartleby redrive pause ${ID} --reason 'the consumer is being deployed'
  $ bartleby redrive rate ${ID} 10
  $ bartleby redrive resume ${ID}
  $ bartleby redrive show ${ID} --letters returned

Examples:
  $ bartleby redrive list
  $ bartleby redrive plan 'queue:orders' --patch fix.json --start --watch
  $ bartleby redrive plan 'engine:hmac age:>30d' --action discard --reason 'shop closed' --start`,
  [
    planCommand,
    startCommand,
    watchCommand,
    steer('pause', 'Pause a redrive: no further letter is sent until it is resumed.', [
      `pause ${ID}`,
      `pause ${ID} --reason 'the consumer is being deployed'`,
    ]),
    steer('resume', 'Go on with a redrive that is paused.', [`resume ${ID}`]),
    steer('cancel', 'End a redrive, or a plan: what was not sent stays as it is.', [
      `cancel ${ID}`,
      `cancel ${ID} --reason 'wrong queue'`,
    ]),
    rate,
    list,
    show,
  ],
)
