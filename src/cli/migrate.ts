/** `bartleby migrate`: brings a store to this program's schema, and repairs what a restore has left out. */
import { storeCommand } from '../sources/source-commands.ts'
import { EXIT_HELP, failed } from '../terminal/exit.ts'
import { configOf } from './store.ts'

export const migrateCommand = storeCommand(
  'migrate',
  "Bring the store's schema up to this version. `serve` does the same when it starts.",
)
  .option(
    '--repair',
    'also make the indexes and keys that the store lacks, as after a restore that failed halfway',
  )
  .option('--json', 'print {"from": n, "to": n}, with --repair also "made" and "failed"')
  .help(`Migrations only go forward. A store that is newer than the program is refused and not touched.
With --repair stop the servers first: building an index keeps their writes waiting. A unique index is not made where rows are
there twice; the row is named. Tables, columns and sequences that are gone are only in a backup.

Examples:
  $ bartleby migrate --store postgres://app:secret@db/bartleby
  $ bartleby migrate --config bartleby.yaml --json
  $ bartleby migrate --repair

${EXIT_HELP}`)
  .work(async ({ terminal }, { json = false, repair = false, ...flags }) => {
    const { store: url, unsupportedStore } = await configOf(flags, terminal)
    const { migrateStore, repairStore } = await import('../office.ts')
    if (!repair) {
      const { from, to } = await migrateStore(url, { unsupportedStore })
      return terminal.out(json ? JSON.stringify({ from, to }) : migrated(from, to))
    }
    const report = await repairStore(url, { unsupportedStore })
    const { from, to, made } = report
    const said = made.length === 0 ? 'nothing was made' : `made: ${made.join(', ')}`
    terminal.out(json ? JSON.stringify(report) : `${migrated(from, to)}\n${said}`)
    const lacking = report.failed.map(({ part, why }) => `\n  ${part}: ${why}`)
    if (lacking.length > 0) throw failed(`the store still lacks${lacking.join('')}`)
  })

function migrated(from: number, to: number): string {
  if (from === to) return `the store is up to date (version ${to})`
  return `the store was migrated from version ${from} to ${to}`
}
