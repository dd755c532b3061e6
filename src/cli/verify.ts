/** `bartleby verify`: proves a store's promises, or prints the rows that break them. Writes nothing. */
import { storeCommand } from '../sources/source-commands.ts'
import { EXIT, failed } from '../terminal/exit.ts'
import { showProgress } from '../terminal/progress.ts'
import { printable } from '../terminal/terminal.ts'
import type { InvariantReport, VerifyReport } from '../verify/verify.ts'

export const verifyCommand = storeCommand(
  'verify',
  'Check that the store keeps its promises, and show the rows that break them. Reads only.',
)
  .option('--json', 'print the report as JSON, without progress')
  .help(`It works on a live store: it looks at one moment of it, and no server has to wait. It prints each promise
with whether it is kept: of letters (I), of runs (R), of the store (S) and of each source; docs/operations.md has them all.
The first 100 violations of each are printed.

Examples:
  $ bartleby verify
  $ bartleby verify --store postgres://app:secret@db/bartleby
  $ bartleby verify --config bartleby.yaml --json | jq '.invariants[] | select(.broken > 0)'

Exit codes:
  0  all promises are kept
  1  some are broken; the rows are printed
  2  wrong usage or configuration
  3  it could not be checked: the store is not there, cannot be reached, is of another version, or on no PostgreSQL`)
  .work(async ({ terminal, onStore }, { json, ...flags }) => {
    const report = await onStore(flags, EXIT.nothing, async (db) => {
      const { verifyStore } = await import('../verify/verify.ts')
      if (json) return verifyStore(db)
      const progress = showProgress(terminal)
      try {
        return await verifyStore(db, {
          onProgress: ({ invariant, done, expected }) =>
            progress.show(`checking ${invariant}`, done, expected),
        })
      } finally {
        progress.end()
      }
    })
    terminal.out(json ? JSON.stringify(report, null, 2) : textOf(report))
    if (!report.clean) throw failed(summaryOf(report))
  })

function textOf({ invariants }: VerifyReport): string {
  return [...invariants.map(lineOf), ...invariants.flatMap(rowsOf)].join('\n')
}

const lineOf = ({ invariant, promise, broken }: InvariantReport): string => {
  const line = `${broken === 0 ? '✓' : '✗'} ${invariant.padEnd(3)}  ${promise}`
  return broken === 0 ? line : `${line}: broken ${times(broken)}`
}

function rowsOf({ invariant, broken, violations }: InvariantReport): string[] {
  if (broken === 0) return []
  const lines = violations.flatMap(({ what, row }) => [
    `${invariant}  ${printable(what)}`,
    `    ${Object.entries(row)
      .map(([name, value]) => `${name}=${printable(value)}`)
      .join('  ')}`,
  ])
  const others = broken - violations.length
  return ['', ...lines, ...(others > 0 ? [`${invariant}  … and ${others} more`] : [])]
}

function summaryOf({ invariants }: VerifyReport): string {
  const broken = invariants.filter((each) => each.broken > 0)
  const total = broken.reduce((sum, each) => sum + each.broken, 0)
  return `the store breaks ${broken.map(({ invariant }) => invariant).join(', ')}, ${times(total)} in all`
}

const times = (count: number): string => (count === 1 ? 'once' : `${count} times`)
