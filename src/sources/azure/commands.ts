/** `bartleby azure`: what may be done with the account of a configuration, how it stands, and what became of uncertain messages. */
import { pathTo } from '../../client/envelope.ts'
import { commandGroup } from '../../terminal/command.ts'
import { failed, usage } from '../../terminal/exit.ts'
import { DEFAULT_URL, officeCommand } from '../../terminal/office.ts'
import { table } from '../../terminal/table.ts'
import { printable } from '../../terminal/terminal.ts'
import { sourceCommand } from '../source-commands.ts'
import type { AzureCheck } from './check.ts'
import { type AzureOverview, counted } from './shapes.ts'

const check = sourceCommand(
  'check',
  'Try tables, queues and rights of the account. Letters stay as they are.',
)
  .option('--config <file>', 'configuration in YAML')
  .option('--json', 'print the checks as JSON')
  .help(`It works beside a running server. An entity of its own is written to the table of letters and removed. Rights that are needed:
  Storage Table Data Contributor             on the two tables
  Storage Queue Data Message Sender, Reader  on the queues that letters go back to
  Storage Queue Data Message Processor       on poison queues that are taken in

Examples:
  $ bartleby azure check --config bartleby.yaml

Exit codes:
  0  nothing is missing
  1  something is missing; the lines say what
  2  wrong usage or configuration`)
  .work(async ({ sectionOf, terminal }, { json, ...flags }) => {
    // Loaded when they are needed, as in `serve`.
    const { checkAzure } = await import('./check.ts')
    const { azureTablesOf, TABLES_SECTION } = await import('../../outgoing/azure/keys.ts')
    // The configuration has checked the section by its own schema.
    const section = (await sectionOf(TABLES_SECTION, flags)) as { readonly tables?: unknown } | undefined
    const tables = azureTablesOf(section?.tables)
    if (tables === null) throw usage('the configuration has no engines.tables.storageAccountName')
    const checks = await checkAzure(tables)
    terminal.out(json ? JSON.stringify(checks, null, 2) : checks.map(lineOf).join('\n'))
    const missing = checks.filter(({ verdict }) => verdict === 'missing').length
    if (missing > 0) throw failed(missing === 1 ? '1 thing is missing' : `${missing} things are missing`)
  })

const MARKS = { fine: '✓', missing: '✗', unknown: '?' } as const

const lineOf = ({ subject, verdict, message }: AzureCheck): string =>
  `${MARKS[verdict]} ${printable(subject)}: ${printable(message)}`

const status = officeCommand(
  'azure status',
  'Show how far the account was read, and what is not yet written to it.',
  ['status'],
).work(async ({ call, print }) => {
  const overview = await call<AzureOverview>('GET', '/api/azure')
  print(overview, () => textOf(overview))
})

function textOf({
  configured,
  account = '',
  unwritten = 0,
  uncertain = 0,
  troubles = [],
  readings = [],
}: AzureOverview): string {
  if (!configured) return 'no account is configured on this server (engines.tables.storageAccountName)'
  return [
    `account ${printable(account)}: ${counted(unwritten)} acts not yet written, ${counted(uncertain)} letters uncertain`,
    ...troubles.map((trouble) => `  ${printable(trouble)}`),
    table(
      ['READ', 'UP TO'],
      readings.map(({ name, readToUtc, exists }) => [name, exists ? (readToUtc ?? '-') : 'does not exist']),
    ),
  ].join('\n')
}

const settle = officeCommand(
  'azure settle <engine> <row-key>',
  'Say what became of the message of an uncertain letter, after a look into its queue.',
  [
    'settle hmac inst-7-20270101T000000000000000000000042Z --arrived',
    'settle hmac inst-7-20270101T000000000000000000000042Z --lost',
  ],
)
  .option('--arrived', 'it is in the queue, or the engine has it: the letter is Resolved')
  .option('--lost', 'it never arrived: the letter can be sent again')
  .work(async ({ call, printLine }, engine, rowKey, { arrived, lost }) => {
    if ((arrived === true) === (lost === true)) throw usage('say --arrived or --lost')
    const path = `${pathTo('/api/azure/letters', engine, rowKey)}/settle`
    const settled = await call<{ readonly status: string }>('POST', path, { arrived: arrived === true })
    printLine(settled, `the letter is ${settled.status}`)
  })

export const azureCommand = commandGroup(
  'azure',
  'Look after tables and queues in an Azure storage account.',
  `\`check\` reads the configuration and asks the account itself. The others ask a server: --url, BARTLEBY_URL or ${DEFAULT_URL};
the token is --token or BARTLEBY_TOKEN. See docs/azure.md.

Examples:
  $ bartleby azure check --config bartleby.yaml           what may be done with the account
  $ bartleby azure status                                 how far it was read
  $ bartleby azure settle hmac ROWKEY --arrived           what became of a message`,
  [check, status, settle],
)
