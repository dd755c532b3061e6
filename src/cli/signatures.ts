/** `bartleby signatures`: letters grouped by their error. */
import { Command } from 'commander'
import { pathTo } from '../client/envelope.ts'
import type { SignatureDetail, SignatureGroup } from '../client/letter-types.ts'
import { type Column, columnsText } from './columns.ts'
import { EXIT_HELP } from './exit.ts'
import { withServer } from './office-call.ts'
import { grouped } from './progress.ts'
import { type ConnectionFlags, DEFAULT_URL, serverCommand, wholeNumber } from './queues/connection.ts'
import { sparkline } from './sparkline.ts'
import { type Style, styleOf } from './style.ts'
import { printable, type Terminal } from './terminal.ts'
import { ageOf, nowMs, secondsOf } from './times.ts'
import { listAll } from './walk-list.ts'

interface ListFlags extends ConnectionFlags {
  readonly source?: string
  readonly engine?: string
  readonly originalQueue?: string
  readonly limit: string
}

export function signaturesCommand(terminal: Terminal): Command {
  return new Command('signatures')
    .description('Show which errors there are, how many letters each has, and how retries of them ended.')
    .addHelpText(
      'after',
      `
The server is --url, BARTLEBY_URL or ${DEFAULT_URL}; the token is --token or BARTLEBY_TOKEN.

Examples:
  $ bartleby signatures                                      the same as: bartleby signatures list
  $ bartleby signatures list --source queues --limit 10
  $ bartleby signatures show 1-4f2a9c
  $ bartleby letters list 'signature:1-4f2a9c status:pending'

${EXIT_HELP}`,
    )
    .addCommand(list(terminal), { isDefault: true })
    .addCommand(show(terminal))
}

const list = (terminal: Terminal): Command =>
  serverCommand(
    'list',
    'List errors, those with the most pending letters first.',
    ['list', 'list --engine hmac', "list --json | jq '.[0].signature'"],
    'signatures',
  )
    .option('--source <source>', 'only of letters of this source')
    .option('--engine <engine>', 'only of letters of this engine')
    .option('--original-queue <queue>', 'only of letters from this queue')
    .option('--limit <n>', 'at most so many', '50')
    .action((flags: ListFlags) =>
      withServer(flags, terminal, async (call) => {
        const { source, engine, originalQueue } = flags
        const limit = wholeNumber('--limit', flags.limit, 1)
        const groups = await listAll<SignatureGroup>(
          call,
          '/api/signatures',
          { source, engine, originalQueue },
          limit,
        )
        if (flags.json) return terminal.out(JSON.stringify(groups, null, 2))
        if (groups.length === 0) return terminal.out('there are no letters, and so no errors')
        const width = terminal.screen?.columns
        terminal.out(columnsText(groupColumns(nowMs(), width), groups, width, styleOf(terminal)))
      }),
    )

/** Narrower than this, half a day has to do. */
const WIDE = 100

/** How groups look in a table of that width; undefined: it has none. */
export const groupColumns = (now: number, width: number | undefined): readonly Column<SignatureGroup>[] => [
  { heading: 'SIGNATURE', text: ({ signature }) => signature },
  {
    heading: 'OPEN',
    text: ({ open }) => grouped(open),
    right: true,
    paint: ({ open }, text, style) => (open > 0 ? style.yellow(text) : text),
  },
  { heading: 'TOTAL', text: ({ total }) => grouped(total), right: true },
  trendColumn(width !== undefined && width < WIDE ? 12 : 24),
  { heading: 'LAST SEEN', text: ({ lastSeenAtUtc }) => ageOf(lastSeenAtUtc, now), right: true },
  { heading: 'ERROR', text: ({ errorClass, title }) => titleOf(errorClass, title), flexible: true },
]

const trendColumn = (hours: number): Column<SignatureGroup> => ({
  heading: `LAST ${hours} H`,
  text: ({ trend }) => sparkline(trend.slice(-hours)),
  paint: (_, text, style) => style.cyan(text),
})

const titleOf = (errorClass: string, title: string): string =>
  errorClass === '' || title.startsWith(errorClass) ? title : `${errorClass}: ${title}`

const show = (terminal: Terminal): Command =>
  serverCommand(
    'show <signature>',
    'Show one error: where it occurs, since when, an example, and how retries ended.',
    ['show 1-4f2a9c', 'show 1-4f2a9c --json'],
    'signatures',
  ).action((signature: string, flags: ConnectionFlags) =>
    withServer(flags, terminal, async (call) => {
      const group = await call<SignatureDetail>('GET', pathTo('/api/signatures', signature))
      terminal.out(flags.json ? JSON.stringify(group, null, 2) : groupText(group, nowMs(), styleOf(terminal)))
    }),
  )

function groupText(group: SignatureDetail, now: number, style: Style): string {
  const seen = (at: string) => `${secondsOf(at)} (${ageOf(at, now)} ago)`
  const { outcomes, sample, trend } = group
  const fields: readonly (readonly [string, string])[] = [
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
    ['', sample?.errorMessage.split('\n', 1)[0] ?? ''],
  ]
  return [
    style.bold(printable(`${group.signature}  ${titleOf(group.errorClass, group.title)}`)),
    ...fields.flatMap(([name, value]) => (value === '' ? [] : [`  ${name.padEnd(12)}${printable(value)}`])),
  ].join('\n')
}

function outcomesText({ retried, ...known }: SignatureDetail['outcomes']): string {
  const { confirmed, returned, unconfirmed } = known
  const others = retried - confirmed - returned - unconfirmed
  const parts = [
    `${grouped(confirmed)} confirmed`,
    `${grouped(returned)} came back`,
    `${grouped(unconfirmed)} unconfirmed`,
    // Such as those that were taken back before anybody worked on them.
    ...(others > 0 ? [`${grouped(others)} ended otherwise`] : []),
  ]
  return `${grouped(retried)}: ${parts.join(', ')}`
}
