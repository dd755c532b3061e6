/** `bartleby outbox adopt`: makes an outbox of a table while its producers and readers go on. */
import { CommandFailure, EXIT, failed, failureOf } from '../../../terminal/exit.ts'
import { showProgress } from '../../../terminal/progress.ts'
import { printable } from '../../../terminal/terminal.ts'
import { grouped } from '../../../terminal/words.ts'
import type { AdoptOptions, AdoptReport, StepOutcome, StepReport } from '../adopt/report.ts'
import { numberOf, tableCommand, tableOptionsOf } from './table-flags.ts'

export const adoptCommand = tableCommand(
  'adopt',
  'Make an outbox of a table while others use it, or make the table where there is none.',
)
  .adding<{ readonly chunk: number; readonly lockWait: number }>((command) =>
    command
      .option('--chunk <rows>', 'rows that are given keys in one transaction', numberOf, 10_000)
      .option('--lock-wait <seconds>', 'how long one step may wait for what others hold', numberOf, 60),
  )
  .option('--enforce', 'make the key NOT NULL')
  .option('--rekey-duplicates', 'give rows with the tenant and key of an older one a key of their own')
  .option('--dry-run', 'print the SQL, and change nothing')
  .option('--json', 'print the report as JSON, without progress')
  .help(`What it does, each step only where it is needed:
  1  adds the columns that are missing, and a default for the key, so that producers that know nothing of
     keys leave no row without one. The table is locked for a moment; when the lock is not to be had within
     250 ms, it steps back and tries again, so that nobody queues behind it
  2  makes the small tables beside it (keys of purged messages; who waits to be woken)
  3  gives keys to the rows that are there, a chunk at a time; rows whose flag says that they are processed
     (is_processed, IsProcessed, or --column isProcessed=…) get their time of processing too
  4  builds the indexes, on PostgreSQL CONCURRENTLY. When a tenant has a key twice, the pairs are listed and
     the unique index is left out
  5  with --enforce, makes the key NOT NULL through a check that is validated beforehand
It can be stopped or killed at any moment: the same command goes on from there, and changes nothing when all
is done. Connect to PostgreSQL itself, not through a pooler that lends connections by the transaction.
SQLite has one writer at a time: writers wait while an index is built, so their busy_timeout should allow for
some seconds; and it cannot make a column NOT NULL afterwards: --enforce refuses to take a key away instead.

Examples:
  $ bartleby outbox adopt --url postgres://app:secret@db/shop
  $ bartleby outbox adopt --url postgres://app:secret@db/shop --naming pascal --dry-run
  $ bartleby outbox adopt --url postgres://app:secret@db/shop --table sales.events --enforce \\
      --column eventType=name --column isProcessed=sent
  $ bartleby outbox adopt --url sqlite:./shop.db --json | jq .keysMissing

Exit codes:
  0  the table is an outbox: every row has a key, and no tenant has one twice (or it was a dry run)
  1  it is not yet: duplicates are left, or something failed or was in the way; run it again
  2  wrong usage
  3  the database is not there or cannot be reached`)
  .work(async ({ terminal }, { json = false, ...flags }) => {
    const { chunk, lockWait, enforce = false, rekeyDuplicates = false, dryRun = false } = flags
    const quiet = json || dryRun
    const progress = showProgress(terminal)
    // Stops between two chunks; a second Ctrl-C ends the program at once.
    const stop = new AbortController()
    const release = terminal.onInterrupt(() => stop.abort())
    const say = (line: string): void => {
      progress.end()
      terminal.err(line)
    }
    const options: AdoptOptions = {
      ...tableOptionsOf(flags),
      ...{ chunk, lockWaitSeconds: lockWait, enforce, rekeyDuplicates, dryRun },
      signal: stop.signal,
      onWait: (reason) => say(`waiting: ${printable(reason)}`),
      ...(quiet
        ? {}
        : {
            onStep: (step) => say(lineOf(step)),
            onProgress: ({ label, done, expected, unit, perSecond }) =>
              progress.show(
                perSecond === undefined ? label : `${label} (${grouped(perSecond)}/s)`,
                done,
                expected,
                unit,
              ),
          }),
    }
    let report: AdoptReport
    try {
      // Loaded only when needed, as in `serve`.
      const { adoptTable } = await import('../adopt/adopt.ts')
      report = await adoptTable(flags.url, options)
    } catch (error) {
      throw await explained(error, stop.signal)
    } finally {
      progress.end()
      release()
    }
    const text = dryRun ? scriptOf : summaryOf
    terminal.out(json ? JSON.stringify(report, null, 2) : text(report))
    if (!report.complete && !dryRun) throw failed(shortfallOf(report))
  })

async function explained(error: unknown, signal: AbortSignal): Promise<CommandFailure> {
  if (signal.aborted)
    return new CommandFailure(EXIT.failed, 'stopped; the same command goes on from there', { cause: error })
  const { StoreUnavailable } = await import('../../../store/database.ts')
  return failureOf(error, error instanceof StoreUnavailable ? EXIT.nothing : EXIT.failed)
}

const SIGNS: Readonly<Record<StepOutcome, string>> = {
  done: '✓',
  'already there': '·',
  skipped: '✗',
}

const WORDS: Readonly<Record<StepOutcome, string>> = {
  done: '',
  'already there': ': nothing to do',
  skipped: ': left out',
}

const lineOf = ({ what, outcome }: StepReport): string =>
  `${SIGNS[outcome]} ${printable(what)}${WORDS[outcome]}`

/** The SQL of a dry run, with comments. */
function scriptOf({
  steps,
  table,
  rows,
  keysMissing,
  duplicateCount,
  duplicates,
  notes,
}: AdoptReport): string {
  const open = steps.filter(({ outcome }) => outcome === 'skipped')
  return [
    `-- ${printable(table)}: ${grouped(rows)} rows, ${grouped(keysMissing)} without a key, ${grouped(duplicateCount)} duplicates`,
    ...duplicatesOf(duplicates, duplicateCount).map((line) => `-- ${line}`),
    ...notes.map((note) => `-- ${printable(note)}`),
    ...(open.length === 0 ? ['-- nothing to do'] : []),
    ...open.flatMap(({ what, sql }) => ['', `-- ${printable(what)}`, sql]),
  ].join('\n')
}

function summaryOf(report: AdoptReport): string {
  const { table, created, rows, keysFilled, keysMissing, duplicateCount, duplicates, rekeyed, notes } = report
  return [
    `${printable(table)} ${created ? 'was made' : report.complete ? 'is an outbox' : 'is not an outbox yet'}`,
    `  rows          ${grouped(rows)}`,
    `  keys filled   ${grouped(keysFilled)}`,
    `  keys missing  ${grouped(keysMissing)}`,
    `  duplicates    ${grouped(duplicateCount)}${rekeyed > 0 ? `, ${grouped(rekeyed)} rows were given a key of their own` : ''}`,
    ...duplicatesOf(duplicates, duplicateCount).map((line) => `    ${line}`),
    ...notes.map((note) => `note: ${printable(note)}`),
  ].join('\n')
}

function duplicatesOf(duplicates: AdoptReport['duplicates'], count: number): string[] {
  const lines = duplicates.map(
    ({ tenantId, idempotencyKey, rows, ids }) =>
      `tenant=${printable(tenantId)}  key=${printable(idempotencyKey)}  rows=${rows}  ids=${printable(ids.join(','))}${rows > ids.length ? ',…' : ''}`,
  )
  return count > lines.length ? [...lines, `… and ${grouped(count - lines.length)} more`] : lines
}

const shortfallOf = ({ duplicateCount, keysMissing }: AdoptReport): string =>
  keysMissing > 0
    ? `${grouped(keysMissing)} rows came without a key while it ran: a producer writes NULL as key; run it again`
    : `${grouped(duplicateCount)} keys are there more than once in their tenant: --rekey-duplicates gives all but the oldest a key of their own`
