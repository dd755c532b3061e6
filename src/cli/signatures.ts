/** `bartleby signatures`: letters grouped by their error. */
import type { SignatureDetail, SignatureGroup } from '../client/letter-types.ts'
import { commandGroup } from '../terminal/command.ts'
import { officeCommand, printListAt, SERVER_HELP } from '../terminal/office.ts'
import { type Column, counted, type Field, fieldLines, indented } from '../terminal/table.ts'
import { printable, type Style } from '../terminal/terminal.ts'
import { ageOf, firstLine, grouped, nowMs, secondsOf, sparkline } from '../terminal/words.ts'
import { errorLine } from './letters/list.ts'

const list = officeCommand('signatures list', 'List errors, those with the most pending letters first.', [
  'list',
  'list --engine hmac',
  "list --json | jq '.[0].signature'",
])
  .option('--source <source>', 'only of letters of this source')
  .option('--engine <engine>', 'only of letters of this engine')
  .option('--original-queue <queue>', 'only of letters from this queue')
  .option('--limit <n>', 'at most so many', '50')
  .work((desk, flags) => {
    const columns = groupColumns(nowMs(), desk.terminal.screen?.columns)
    return printListAt(desk, '/api/signatures', flags, columns, 'there are no letters, and so no errors')
  })

const titleOf = ({ errorClass, title }: SignatureGroup): string =>
  errorLine({ errorClass, errorMessage: title })

/** Narrower than this it shows half a day. */
const WIDE = 100

export const groupColumns = (now: number, width: number | undefined): readonly Column<SignatureGroup>[] => [
  { heading: 'SIGNATURE', text: ({ signature }) => signature },
  {
    heading: 'OPEN',
    text: ({ open }) => grouped(open),
    right: true,
    paint: ({ open }, text, style) => (open > 0 ? style.yellow(text) : text),
  },
  counted('TOTAL', ({ total }) => total),
  trendColumn(width !== undefined && width < WIDE ? 12 : 24),
  { heading: 'LAST SEEN', text: ({ lastSeenAtUtc }) => ageOf(lastSeenAtUtc, now), right: true },
  { heading: 'ERROR', text: titleOf, flexible: true },
]

const trendColumn = (hours: number): Column<SignatureGroup> => ({
  heading: `LAST ${hours} H`,
  text: ({ trend }) => sparkline(trend.slice(-hours)),
  paint: (_, text, style) => style.cyan(text),
})

const show = officeCommand(
  'signatures show <signature>',
  'Show one error: where it occurs, since when, an example, and how retries ended.',
  ['show 1-4f2a9c', 'show 1-4f2a9c --json'],
).work(async ({ letters, print }, signature) => print(await letters.signature(signature), groupText))

function groupText(group: SignatureDetail, style: Style): string {
  const now = nowMs()
  const seen = (at: string) => `${secondsOf(at)} (${ageOf(at, now)} ago)`
  const { outcomes, sample, trend } = group
  const fields: readonly Field[] = [
    ['pending', grouped(group.open)],
    ['total', grouped(group.total)],
    ['first seen', seen(group.firstSeenAtUtc)],
    ['last seen', seen(group.lastSeenAtUtc)],
    ['last 24 h', `${sparkline(trend)} ${grouped(trend.reduce((a, b) => a + b, 0))}`],
    ['sources', group.sources.join(', ')],
    ['engines', group.engines.join(', ')],
    ['queues', group.originalQueues.join(', ')],
    ['retried', outcomesText(outcomes)],
    ['example', sample === null ? '' : `${sample.engine} ${sample.rowKey}`],
    ['', sample === null ? '' : firstLine(sample.errorMessage)],
  ]
  return [
    style.bold(printable(`${group.signature}  ${titleOf(group)}`)),
    ...indented(fieldLines(fields, 12)),
  ].join('\n')
}

function outcomesText({ retried, ...known }: SignatureDetail['outcomes']): string {
  const { confirmed, returned, unconfirmed } = known
  const others = retried - confirmed - returned - unconfirmed
  const parts = [
    `${grouped(confirmed)} confirmed`,
    `${grouped(returned)} came back`,
    `${grouped(unconfirmed)} unconfirmed`,
    // Such as those taken back before anybody worked on them.
    ...(others > 0 ? [`${grouped(others)} ended otherwise`] : []),
  ]
  return `${grouped(retried)}: ${parts.join(', ')}`
}

export const signaturesCommand = commandGroup(
  'signatures',
  'Show which errors there are, how many letters each has, and how retries of them ended.',
  `${SERVER_HELP}

Examples:
  $ bartleby signatures                                      the same as: bartleby signatures list
  $ bartleby signatures list --source queues --limit 10
  $ bartleby signatures show 1-4f2a9c
  $ bartleby letters list 'signature:1-4f2a9c status:pending'`,
  [list, show],
  { hasDefault: true },
)
