/** `bartleby redrive show`: all that is on file about one redrive, or what became of its letters. */
import type { Command } from 'commander'
import type { RedriveLetter } from '../../client/redrive-types.ts'
import { MEMBER_OUTCOMES } from '../../redrive/redrive.ts'
import { type Column, columnsText } from '../columns.ts'
import { usage } from '../exit.ts'
import { grouped } from '../progress.ts'
import { wholeNumber } from '../queues/connection.ts'
import { styleOf } from '../style.ts'
import type { Terminal } from '../terminal.ts'
import { listAll } from '../walk-list.ts'
import { type Desk, type RedriveFlags, redriveCommand, withDesk } from './connection.ts'
import { detailText } from './detail-text.ts'
import { redrivePath } from './paths.ts'
import { reasonWords } from './reason-words.ts'

interface Flags extends RedriveFlags {
  /** true: of any outcome. */
  readonly letters?: string | true
  readonly limit: string
  readonly all?: boolean
}

export const showCommand = (terminal: Terminal): Command =>
  redriveCommand(
    'show <id>',
    'Show a redrive: what was planned, how far it is, where letters went; or its letters.',
    [
      'show d0sk3v9rkmnc73a1b2cg',
      'show d0sk3v9rkmnc73a1b2cg --letters returned',
      'show d0sk3v9rkmnc73a1b2cg --letters failed --all --json | jq -r \'.[] | .engine + "/" + .rowKey\'',
    ],
  )
    .option('--letters [outcome]', `its letters; only those that are ${MEMBER_OUTCOMES.join(', ')}`)
    .option('--limit <n>', 'with --letters: at most so many', '50')
    .option('--all', 'with --letters: all of them')
    .action((id: string, flags: Flags) =>
      withDesk(flags, terminal, async (desk) => {
        if (flags.letters !== undefined) return printLetters(desk, id, flags.letters, flags, terminal)
        const redrive = await desk.office.redrives.read(id)
        const shown = { width: terminal.screen?.columns, style: styleOf(terminal) }
        terminal.out(flags.json ? JSON.stringify(redrive, null, 2) : detailText(redrive, shown))
      }),
    )

async function printLetters(
  { office }: Desk,
  id: string,
  asked: string | true,
  flags: Flags,
  terminal: Terminal,
): Promise<void> {
  const outcome = MEMBER_OUTCOMES.find((known) => known === asked)
  if (asked !== true && outcome === undefined)
    throw usage(`--letters is '${asked}'; expected one of ${MEMBER_OUTCOMES.join(', ')}, or nothing for all`)
  const limit = wholeNumber('--limit', flags.limit, 1) ?? 1
  // One more than is shown tells whether there are more.
  const most = flags.all ? undefined : limit + 1
  const found = await listAll<RedriveLetter>(office.call, redrivePath(id, 'letters'), { outcome }, most)
  const members = flags.all ? found : found.slice(0, limit)
  if (flags.json) return terminal.out(JSON.stringify(members, null, 2))
  if (members.length === 0)
    return terminal.out(outcome === undefined ? 'it has no letters' : `no letter of it is ${outcome}`)
  terminal.out(columnsText(COLUMNS, members, terminal.screen?.columns, styleOf(terminal)))
  if (members.length < found.length)
    terminal.err(`the first ${grouped(members.length)} letters; see more with --limit N or --all`)
}

const COLUMNS: readonly Column<RedriveLetter>[] = [
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
