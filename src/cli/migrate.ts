/** `bartleby migrate`: brings a store to this program's schema without serving it, and makes anew what a restore has left out. */

import { Command } from 'commander'
import type { ConfigFlags } from '../config/index.ts'
import { CommandFailure, EXIT, EXIT_HELP } from '../terminal/exit.ts'
import { UNSUPPORTED_STORE } from '../terminal/flags.ts'
import type { CommandKit } from '../terminal/office.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { configOf } from './store.ts'

interface Flags extends ConfigFlags {
  readonly json?: boolean
  readonly repair?: boolean
}

export const migrateCommand = (kit: CommandKit): Command =>
  new Command('migrate')
    .description("Bring the store's schema up to this version. `serve` does the same when it starts.")
    .option('--store <url>', 'sqlite:PATH or postgres://…; sqlite:./data/bartleby.db unless configured')
    .option('--unsupported-store', UNSUPPORTED_STORE)
    .option('--config <file>', 'configuration in YAML')
    .option(
      '--repair',
      'also make the indexes and keys that the store lacks, as after a restore that failed halfway',
    )
    .option('--json', 'print {"from": n, "to": n}, with --repair also "made" and "failed"')
    .addHelpText(
      'after',
      `
Migrations only go forward. A store that is newer than the program is refused and not touched.
With --repair stop the servers first: building an index keeps their writes waiting. A unique index is not made where rows are
there twice; the row is named. Tables, columns and sequences that are gone are only in a backup.

Examples:
  $ bartleby migrate --store postgres://app:secret@db/bartleby
  $ bartleby migrate --config bartleby.yaml --json
  $ bartleby migrate --repair

${EXIT_HELP}`,
    )
    .action(({ json = false, repair = false, ...flags }: Flags) =>
      (repair ? repairStore : migrateStore)(flags, json, kit.terminal),
    )

async function migrateStore(flags: ConfigFlags, json: boolean, terminal: Terminal): Promise<void> {
  const { store: url, unsupportedStore } = await configOf(flags, terminal)
  const office = await import('../office.ts')
  const { from, to } = await office.migrateStore(url, { unsupportedStore })
  terminal.out(json ? JSON.stringify({ from, to }) : migrated(from, to))
}

async function repairStore(flags: ConfigFlags, json: boolean, terminal: Terminal): Promise<void> {
  const { store: url, unsupportedStore } = await configOf(flags, terminal)
  const office = await import('../office.ts')
  const report = await office.repairStore(url, { unsupportedStore })
  const { from, to, made, failed } = report
  if (json) terminal.out(JSON.stringify(report))
  else {
    terminal.out(migrated(from, to))
    terminal.out(made.length === 0 ? 'nothing was made' : `made: ${made.join(', ')}`)
  }
  if (failed.length === 0) return
  const lines = failed.map(({ part, why }) => `${part}: ${why}`)
  throw new CommandFailure(EXIT.failed, `the store still lacks\n  ${lines.join('\n  ')}`)
}

const migrated = (from: number, to: number): string =>
  from === to
    ? `the store is up to date (version ${to})`
    : `the store was migrated from version ${from} to ${to}`
