/** Flags that name a table of messages. */
import { existsSync } from 'node:fs'
import { InvalidArgumentError, Option } from 'commander'
import { nothing, usage } from '../../../terminal/exit.ts'
import { pairs } from '../../../terminal/flags.ts'
import { sourceCommand } from '../../source-commands.ts'
import {
  NAMINGS,
  type Naming,
  tableOptionsOf as namedTable,
  type TableOptions,
} from '../table/table-names.ts'

export interface TableFlags {
  readonly url: string
  readonly table?: string
  readonly naming?: Naming
  readonly column?: Readonly<Record<string, string>>
}

export const pair = pairs('eventType=Name')

export const tableCommand = (words: string, description: string) =>
  sourceCommand(words, description).adding<TableFlags>((command) =>
    command
      .requiredOption('--url <url>', 'the database: postgres://… or sqlite:PATH')
      .option(
        '--table <name>',
        'the table, or schema.table (default: outbox_messages, pascal: OutboxMessages)',
      )
      .addOption(
        new Option('--naming <naming>', 'how its columns are called: snake (tenant_id) or pascal (TenantId)')
          .choices(NAMINGS)
          .default('snake'),
      )
      .option('--column <name=Column>', 'a single column that is called otherwise; can be repeated', pair),
  )

export const tableOptionsOf = ({ table, naming, column }: TableFlags): TableOptions =>
  namedTable({ table, naming, columns: column })

export function numberOf(text: string): number {
  const number = Number(text)
  if (text.trim() === '' || Number.isNaN(number)) throw new InvalidArgumentError('It is no number.')
  return number
}

export async function applicationDatabase(url: string) {
  const { readStoreUrl } = await import('../../../store/store-url.ts')
  const store = readStoreUrl(url)
  if (store === null || store.kind === 'memory')
    throw usage("--url is neither 'postgres://…' nor 'sqlite:PATH'")
  if (store.kind === 'sqlite' && !existsSync(store.path))
    throw nothing(`there is no database at '${store.path}'`)
  return store
}
