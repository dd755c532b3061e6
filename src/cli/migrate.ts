/** `bartleby migrate`: brings a store to this program's schema without serving it. */
import { Command } from 'commander'
import type { ConfigFlags } from '../config/index.ts'
import { EXIT_HELP } from './exit.ts'
import type { Terminal } from './terminal.ts'

interface Flags extends ConfigFlags {
  readonly json?: boolean
}

export function migrateCommand(terminal: Terminal): Command {
  return new Command('migrate')
    .description("Bring the store's schema up to this version. `serve` does the same when it starts.")
    .option('--store <url>', 'sqlite:PATH or postgres://…; sqlite:./data/bartleby.db unless configured')
    .option('--config <file>', 'configuration in YAML')
    .option('--json', 'print {"from": n, "to": n}')
    .addHelpText(
      'after',
      `
Migrations only go forward. A store that is newer than the program is refused and not touched.

Examples:
  $ bartleby migrate --store postgres://app:secret@db/bartleby
  $ bartleby migrate --config bartleby.yaml --json

${EXIT_HELP}`,
    )
    .action(async ({ json, ...flags }: Flags) => {
      // Loaded when they are needed, as in `serve`.
      const { loadConfig } = await import('../config/index.ts')
      const { store: url } = loadConfig({ env: terminal.env, flags })
      const { migrateStore } = await import('../office.ts')
      const { from, to } = await migrateStore(url)
      if (json) terminal.out(JSON.stringify({ from, to }))
      else if (from === to) terminal.out(`the store is up to date (version ${to})`)
      else terminal.out(`the store was migrated from version ${from} to ${to}`)
    })
}
