/** `bartleby redrive list`: redrives, the newest first. */
import type { Command } from 'commander'
import type { RedriveItem } from '../../client/redrive-types.ts'
import { REDRIVE_STATES } from '../../redrive/redrive.ts'
import { type Column, columnsText } from '../columns.ts'
import { grouped } from '../progress.ts'
import { wholeNumber } from '../queues/connection.ts'
import { styleOf } from '../style.ts'
import type { Terminal } from '../terminal.ts'
import { ageOf, nowMs } from '../times.ts'
import { listAll } from '../walk-list.ts'
import { type RedriveFlags, redriveCommand, withDesk } from './connection.ts'
import { REDRIVES } from './paths.ts'
import { stateIn } from './watch-frame.ts'

interface Flags extends RedriveFlags {
  readonly all?: boolean
  readonly state?: string
  readonly limit: string
}

export const listCommand = (terminal: Terminal): Command =>
  redriveCommand('list', 'List redrives, the newest first: running and past ones.', [
    'list',
    'list --state canary,running,paused',
    'list --all --json',
  ])
    .option('--state <states>', `only in these states: ${REDRIVE_STATES.join(', ')}`)
    .option('--limit <n>', 'at most so many', '50')
    .option('--all', 'all of them, and plans that were not started')
    .action((flags: Flags) =>
      withDesk(flags, terminal, async ({ office }) => {
        const limit = wholeNumber('--limit', flags.limit, 1)
        const state = flags.state ?? (flags.all ? REDRIVE_STATES.join(',') : undefined)
        const items = await listAll<RedriveItem>(
          office.call,
          REDRIVES,
          { state },
          flags.all ? undefined : limit,
        )
        if (flags.json) return terminal.out(JSON.stringify(items, null, 2))
        if (items.length === 0) return terminal.out('there are no redrives')
        terminal.out(columnsText(redriveColumns(nowMs()), items, terminal.screen?.columns, styleOf(terminal)))
      }),
    )

const number = (heading: string, of: (redrive: RedriveItem) => number): Column<RedriveItem> => ({
  heading,
  text: (redrive) => grouped(of(redrive)),
  right: true,
})

const redriveColumns = (now: number): readonly Column<RedriveItem>[] => [
  { heading: 'ID', text: ({ id }) => id },
  {
    heading: 'STATE',
    text: stateText,
    paint: ({ state }, text, style) => stateIn(style, state, text),
  },
  { heading: 'ACTION', text: ({ action }) => action },
  number('PLANNED', ({ counts }) => counts.planned),
  number('SENT', ({ counts }) => counts.sent),
  number('SKIPPED', ({ counts }) => counts.skipped),
  number('FAILED', ({ counts }) => counts.failed),
  number('LEFT', ({ counts }) => counts.remaining),
  { heading: 'BY', text: ({ startedBy, plannedBy }) => startedBy ?? plannedBy, most: 20, least: 6 },
  {
    heading: 'AGE',
    text: ({ startedAtUtc, plannedAtUtc }) => ageOf(startedAtUtc ?? plannedAtUtc, now),
    right: true,
  },
  { heading: 'WHAT', text: ({ sentence }) => sentence, flexible: true },
]

const stateText = ({ state, isExpired }: RedriveItem): string =>
  state === 'planned' && isExpired ? 'expired' : state
