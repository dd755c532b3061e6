/** `bartleby history`: operations of engines and acts on letters. */
import { Command } from 'commander'
import { bytesOf, type TextEncoding } from '../client/bytes.ts'
import type { HistoryDetail, HistoryItem } from '../client/history-types.ts'
import { type Column, columnsText } from './columns.ts'
import { EXIT_HELP } from './exit.ts'
import { payloadText } from './letters/payload-text.ts'
import { withOffice } from './office-call.ts'
import { type ConnectionFlags, DEFAULT_URL, serverCommand, wholeNumber } from './queues/connection.ts'
import { type Style, statusIn, styleOf } from './style.ts'
import { printable, type Terminal } from './terminal.ts'
import { secondsOf } from './times.ts'
import { listAll } from './walk-list.ts'

interface ListFlags extends ConnectionFlags {
  readonly engine?: string
  readonly instanceId?: string
  readonly status?: string
  readonly operation?: string
  readonly fromDate?: string
  readonly toDate?: string
  readonly correlationId?: string
  readonly limit: string
}

export function historyCommand(terminal: Terminal): Command {
  return new Command('history')
    .description('Show what engines did and what was done to letters, by whom and why.')
    .addHelpText(
      'after',
      `
The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.

Examples:
  $ bartleby history                                         the same as: bartleby history list
  $ bartleby history list --engine hmac --status Failed --from-date 2027-01-10
  $ bartleby history list --operation retry --limit 200
  $ bartleby history show hmac 7d1f-20270110T090000000000Z   with input, output and notes

${EXIT_HELP}`,
    )
    .addCommand(list(terminal), { isDefault: true })
    .addCommand(show(terminal))
}

const list = (terminal: Terminal): Command =>
  serverCommand(
    'list',
    'List entries, the newest first.',
    ['list', 'list --correlation-id 7d1f', "list --status Failed --json | jq '.[].operation'"],
    'history',
  )
    .option('--engine <engine>', 'of this engine')
    .option('--instance-id <id>', 'of this instance, item or key')
    .option('--status <status>', 'Succeeded or Failed')
    .option('--operation <operation>', 'of this operation, or act such as capture, retry or discard')
    .option('--from-date <time>', 'at or after this time')
    .option('--to-date <time>', 'before this time')
    .option('--correlation-id <id>', 'with this correlation id')
    .option('--limit <n>', 'at most so many', '50')
    .action(({ url, token, json, limit, ...filter }: ListFlags) =>
      withOffice({ ...(url && { url }), ...(token && { token }) }, terminal, async ({ call }) => {
        const most = wholeNumber('--limit', limit, 1)
        const entries = await listAll<HistoryItem>(call, '/api/history', filter, most)
        if (json) return terminal.out(JSON.stringify(entries, null, 2))
        if (entries.length === 0) return terminal.out('no entries match')
        terminal.out(columnsText(COLUMNS, entries, terminal.screen?.columns, styleOf(terminal)))
      }),
    )

const COLUMNS: readonly Column<HistoryItem>[] = [
  { heading: 'TIME', text: ({ createdAtUtc }) => secondsOf(createdAtUtc) },
  { heading: 'ENGINE', text: ({ engine }) => engine, most: 20 },
  { heading: 'OPERATION', text: ({ operation }) => operation, most: 24 },
  {
    heading: 'STATUS',
    text: ({ status }) => status,
    paint: ({ status }, text, style) => statusIn(style, status, text),
  },
  { heading: 'MS', text: ({ durationMs }) => String(durationMs), right: true },
  { heading: 'INSTANCE', text: ({ instanceId }) => instanceId, most: 30 },
  { heading: 'ROW KEY', text: ({ rowKey }) => rowKey },
]

const show = (terminal: Terminal): Command =>
  serverCommand(
    'show <engine> <rowKey>',
    'Show an entry with its input, output, error and notes.',
    ['show hmac 7d1f-20270110T090000000000Z', 'show hmac 7d1f-20270110T090000000000Z --json | jq -r .input'],
    'history',
  ).action((engine: string, rowKey: string, flags: ConnectionFlags) =>
    withOffice(flags, terminal, async ({ history }) => {
      const entry = await history.get({ engine, rowKey })
      terminal.out(flags.json ? JSON.stringify(entry, null, 2) : entryText(entry, styleOf(terminal)))
    }),
  )

function entryText(entry: HistoryDetail, style: Style): string {
  const fields: readonly (readonly [string, string | null])[] = [
    ['operation', entry.operation],
    ['at', secondsOf(entry.createdAtUtc)],
    ['took', `${entry.durationMs} ms`],
    ['by', entry.actor],
    ['notes', entry.notes],
    ['instance', entry.instanceId],
    ['correlation', entry.correlationId],
    ['letter', entry.letter === null ? null : `${entry.letter.engine} ${entry.letter.rowKey}`],
    ['error', entry.error?.split('\n', 1)[0] ?? null],
  ]
  return [
    `${style.bold(printable(`${entry.engine} ${entry.rowKey}`))}  ${statusIn(style, entry.status)}`,
    ...fields.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(12)}${printable(value)}`])),
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
  const rest = isCut ? ['  … the rest is left out; --json shows all of it'] : []
  return ['', style.bold(title), ...lines.map((line) => `  ${line}`), ...rest]
}
