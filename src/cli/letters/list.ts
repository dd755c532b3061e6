/** `bartleby letters list`: letters that match, as a table or as JSON. */
import type { LetterItem } from '../../client/letter-types.ts'
import type { LetterParameters } from '../../core/letter-query.ts'
import { wholeNumber } from '../../terminal/flags.ts'
import { type Desk, officeCommand } from '../../terminal/office.ts'
import { type Column, type Layout, layOut, statusColumn } from '../../terminal/table.ts'
import { styleOf, type Terminal } from '../../terminal/terminal.ts'
import { ageOf, firstLine, grouped, nowMs } from '../../terminal/words.ts'
import { type FilterFlags, filterFlags, filterOf, QUERY_HELP, totalOf, walkLetters } from './which.ts'

export const listCommand = officeCommand(
  'letters list [query...]',
  'List letters, the newest failure first.',
  [
    'list',
    "list 'status:pending queue:orders age:>2d'",
    'list --engine hmac --min-attempts 3 --limit 200',
    "list status:pending error:'connection reset' --row-keys",
    "list status:pending --all --json | jq -r '.[].correlationId'",
  ],
)
  .adding<FilterFlags>(filterFlags)
  .option('--limit <n>', 'at most so many', '50')
  .option('--all', 'all that match')
  .option('--row-keys', 'show row keys, which name letters exactly, in place of instances')
  .help(`${QUERY_HELP}

--json prints one array of letters as GET /api/dlq gives them; with --all it is printed as it arrives.
Whole letters, with payload and history, one per line: bartleby letters export.`)
  .work(async (desk, words, flags) => {
    const filter = filterOf(flags, words)
    const limit = wholeNumber('--limit', flags.limit, 1)
    const letters = walkLetters(desk, filter, flags.all ? undefined : limit)
    if (flags.json) return printJson(letters, desk.terminal)
    await printTable(desk, letters, flags.rowKeys ? 'row keys' : 'instances', filter)
  })

async function printJson(letters: AsyncIterable<LetterItem>, terminal: Terminal): Promise<void> {
  let before = '['
  for await (const letter of letters) {
    terminal.out(`${before}${JSON.stringify(letter)}`)
    before = ','
  }
  terminal.out(before === '[' ? '[]' : ']')
}

/** Rows that decide the widths of columns. */
const FIRST_ROWS = 100

async function printTable(
  desk: Desk,
  letters: AsyncIterable<LetterItem>,
  names: 'row keys' | 'instances',
  filter: LetterParameters,
): Promise<void> {
  const { terminal } = desk
  const columns = letterColumns(nowMs(), names)
  const style = styleOf(terminal)
  let waiting: LetterItem[] = []
  let layout: Layout<LetterItem> | undefined
  let shown = 0
  const print = () => {
    if (layout === undefined) {
      layout = layOut(columns, waiting, terminal.screen?.columns, style)
      terminal.out(layout.headings.trimEnd())
    }
    terminal.out(waiting.map(layout.line).join('\n'))
    shown += waiting.length
    waiting = []
  }
  for await (const letter of letters) {
    waiting.push(letter)
    if (waiting.length === FIRST_ROWS) print()
  }
  if (waiting.length > 0) print()
  if (shown === 0) return terminal.out('no letters match')
  const { total, exact } = await totalOf(desk, filter)
  if (total > shown || !exact) {
    const more = `${grouped(shown)} of ${grouped(total)}${exact ? '' : ' or more'} letters`
    terminal.err(`${more}; see more with --limit N or --all`)
  }
}

/** Names can be copied from the table, unless it is to be short. */
export const letterColumns = (
  now: number,
  names: 'row keys' | 'instances' | 'short' = 'instances',
): readonly Column<LetterItem>[] => [
  statusColumn,
  { heading: 'ENGINE', text: ({ engine }) => engine, most: 20 },
  { heading: 'QUEUE', text: ({ originalQueue }) => originalQueue ?? '-', most: 28, least: 12 },
  names === 'row keys'
    ? { heading: 'ROW KEY', text: ({ rowKey }) => rowKey }
    : {
        heading: 'KEY',
        text: ({ instanceId }) => instanceId,
        most: 40,
        least: 12,
        precious: names !== 'short',
      },
  { heading: 'ERROR', text: errorLine, flexible: true, paint: (_, text, style) => style.cyan(text) },
  { heading: 'ATTEMPTS', text: ({ dequeueCount }) => String(dequeueCount), right: true },
  { heading: 'AGE', text: ({ lastFailureAtUtc }) => ageOf(lastFailureAtUtc, now), right: true },
]

/** One line; the class is left out where the message begins with it. */
export function errorLine({
  errorClass,
  errorMessage,
}: Pick<LetterItem, 'errorClass' | 'errorMessage'>): string {
  const line = firstLine(errorMessage.trimStart())
  return errorClass === '' || line.startsWith(errorClass) ? line : `${errorClass}: ${line}`
}
