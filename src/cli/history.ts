/** `bartleby history`: operations of engines and acts on letters. */
import { bytesOf, type TextEncoding } from '../client/bytes.ts'
import type { HistoryDetail, HistoryItem } from '../client/history.ts'
import { commandGroup } from '../terminal/command.ts'
import { officeCommand, printListAt, SERVER_HELP } from '../terminal/office.ts'
import { type Column, type Field, fieldLines, indented, statusColumn } from '../terminal/table.ts'
import { printable, type Style, statusIn } from '../terminal/terminal.ts'
import { firstLine, secondsOf } from '../terminal/words.ts'
import { payloadText } from './letters/payload-text.ts'

const list = officeCommand('history list', 'List entries, the newest first.', [
  'list',
  'list --correlation-id 7d1f',
  "list --status Failed --json | jq '.[].operation'",
])
  .option('--engine <engine>', 'of this engine')
  .option('--instance-id <id>', 'of this instance, item or key')
  .option('--status <status>', 'Succeeded or Failed')
  .option('--operation <operation>', 'of this operation, or act such as capture, retry or discard')
  .option('--from-date <time>', 'at or after this time')
  .option('--to-date <time>', 'before this time')
  .option('--correlation-id <id>', 'with this correlation id')
  .option('--limit <n>', 'at most so many', '50')
  .work((desk, flags) => printListAt(desk, '/api/history', flags, COLUMNS, 'no entries match'))

const COLUMNS: readonly Column<HistoryItem>[] = [
  { heading: 'TIME', text: ({ createdAtUtc }) => secondsOf(createdAtUtc) },
  { heading: 'ENGINE', text: ({ engine }) => engine, most: 20 },
  { heading: 'OPERATION', text: ({ operation }) => operation, most: 24 },
  statusColumn,
  { heading: 'MS', text: ({ durationMs }) => String(durationMs), right: true },
  { heading: 'INSTANCE', text: ({ instanceId }) => instanceId, most: 30 },
  { heading: 'ROW KEY', text: ({ rowKey }) => rowKey },
]

const show = officeCommand(
  'history show <engine> <rowKey>',
  'Show an entry with its input, output, error and notes.',
  [
    'show hmac 7d1f-20270110T090000000000000000004711Z',
    'show hmac 7d1f-20270110T090000000000000000004711Z --json | jq -r .input',
  ],
).work(async ({ history, print }, engine, rowKey) => print(await history.get({ engine, rowKey }), entryText))

function entryText(entry: HistoryDetail, style: Style): string {
  const fields: readonly Field[] = [
    ['operation', entry.operation],
    ['at', secondsOf(entry.createdAtUtc)],
    ['took', `${entry.durationMs} ms`],
    ['by', entry.actor],
    ['notes', entry.notes],
    ['instance', entry.instanceId],
    ['correlation', entry.correlationId],
    ['letter', entry.letter === null ? null : `${entry.letter.engine} ${entry.letter.rowKey}`],
    ['error', entry.error === null ? null : firstLine(entry.error)],
  ]
  return [
    `${style.bold(printable(`${entry.engine} ${entry.rowKey}`))}  ${statusIn(style, entry.status)}`,
    ...indented(fieldLines(fields, 12)),
    ...contentLines('Input', entry.input, entry.inputEncoding, style),
    ...contentLines('Output', entry.output, entry.outputEncoding, style),
  ].join('\n')
}

function contentLines(
  title: string,
  text: string | null,
  encoding: TextEncoding | null,
  style: Style,
): readonly string[] {
  if (text === null) return []
  const { lines, isCut } = payloadText(bytesOf(text, encoding ?? 'utf8'))
  const rest = isCut ? ['… the rest is left out; --json shows all of it'] : []
  return ['', style.bold(title), ...indented([...lines, ...rest])]
}

export const historyCommand = commandGroup(
  'history',
  'Show what engines did and what was done to letters, by whom and why.',
  `${SERVER_HELP}

Examples:
  $ bartleby history                                                     the same as: bartleby history list
  $ bartleby history list --engine hmac --status Failed --from-date 2027-01-10
  $ bartleby history list --operation retry --limit 200
  $ bartleby history show hmac 7d1f-20270110T090000000000000000004711Z   with input, output and notes`,
  [list, show],
  { hasDefault: true },
)
