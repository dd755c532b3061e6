/** `bartleby outbox …`: tables of messages in the databases of applications; `status` shows how much waits in one. */
import { formatGoDuration } from '../../../core/duration.ts'
import { parameterFor, type Session, type Statement, type Value } from '../../../store/database.ts'
import { commandGroup } from '../../../terminal/command.ts'
import { EXIT, failed, failureOf } from '../../../terminal/exit.ts'
import { printable } from '../../../terminal/terminal.ts'
import { grouped } from '../../../terminal/words.ts'
import type { Backlog, OutboxHealth } from '../served/health.ts'
import { adoptCommand } from './adopt.ts'
import { dispatchCommand } from './dispatch.ts'
import { applicationDatabase, type TableFlags, tableCommand, tableOptionsOf } from './table-flags.ts'

const statusCommand = tableCommand(
  'status',
  'Show how much waits in an outbox, and whether it is well. Reads only.',
)
  .option('--json', 'print JSON')
  .help(`The backlog and the age of its oldest message are held against the thresholds that outboxes have unless they
are configured otherwise: degraded above 10,000 messages or 60 s, unhealthy above 100,000 or 600 s. How many
deliveries fail is known to the server that makes them: see GET /api/outbox/health.

Examples:
  $ bartleby outbox status --url postgres://app:secret@db/shop
  $ bartleby outbox status --url sqlite:./shop.db --naming pascal
  $ bartleby outbox status --url postgres://app:secret@db/shop --json | jq .backlog

Exit codes:
  0  it is ok, or degraded
  1  it is unhealthy
  2  wrong usage
  3  it could not be looked at: the database is not there or cannot be reached, or the table is no outbox`)
  .work(async ({ terminal }, { json, ...flags }) => {
    const { table, backlog } = await look(flags).catch((error: unknown) => {
      throw failureOf(error, EXIT.nothing)
    })
    const { DEFAULT_THRESHOLDS, judge } = await import('../served/health.ts')
    const health = judge({ ...backlog, failureRatio: 0, attempts: 0 }, DEFAULT_THRESHOLDS)
    const text = () => textOf(table, backlog, health)
    terminal.out(json ? JSON.stringify({ table, ...backlog, health }, null, 2) : text())
    if (health.status === 'unhealthy') throw failed(`the outbox is unhealthy: ${health.reasons.join(', ')}`)
  })

async function look(flags: TableFlags) {
  // Loaded only when needed, as in `serve`.
  const { readLayout } = await import('../table/layout.ts')
  const { readBacklog } = await import('../served/health.ts')
  const { SystemClock } = await import('../../../core/system-clock.ts')
  return withSession(flags.url, async (session) => {
    const layout = await readLayout(session.dialect, tableOptionsOf(flags), (text, parameters) =>
      session.rows(
        { name: '', postgres: text, sqlite: text, bigints: false },
        // Only names of tables.
        ...(parameters as readonly string[]),
      ),
    )
    const backlog = await readBacklog(session, layout, new SystemClock().now())
    return { table: layout.table, backlog }
  })
}

async function withSession<T>(url: string, work: (session: Session) => Promise<T>): Promise<T> {
  const store = await applicationDatabase(url)
  if (store.kind === 'sqlite') return withFile(store.path, work)
  const { withDatabase } = await import('../../../store/open.ts')
  return withDatabase(url, (db) => db.session('outbox.status', work))
}

/** Only read: opened as a store of ours, its journal would change for good. */
async function withFile<T>(path: string, work: (session: Session) => Promise<T>): Promise<T> {
  const { DatabaseSync } = await import('node:sqlite')
  const file = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  const refuse = (): never => {
    throw new TypeError('this session only reads')
  }
  try {
    return await work({
      dialect: 'sqlite',
      async rows<Row>({ sqlite, bigints }: Statement, ...values: readonly Value[]) {
        const statement = file.prepare(sqlite)
        statement.setReadBigInts(bigints)
        // The statement decides what rows are.
        return statement.all(...values.map((value) => parameterFor('sqlite', value))) as Row[]
      },
      run: refuse,
      runEach: refuse,
    })
  } finally {
    file.close()
  }
}

function textOf(table: string, backlog: Backlog, { status, reasons }: OutboxHealth): string {
  const age = formatGoDuration(BigInt(Math.floor(backlog.oldestAgeSeconds)) * 1_000_000_000n)
  return [
    `${printable(table)} is ${status}${reasons.length === 0 ? '' : `: ${reasons.join(', ')}`}`,
    `  backlog     ${grouped(backlog.backlog)}`,
    `  failed      ${grouped(backlog.failedPending)}`,
    `  oldest age  ${age}`,
    `  dead        ${grouped(backlog.dead)}`,
  ].join('\n')
}

export const outboxCommand = commandGroup(
  'outbox',
  'Work with outboxes: tables of messages in the databases of applications.',
  `Examples:
  $ bartleby outbox adopt --url postgres://app:secret@db/shop          make the table outbox_messages, or adopt it
  $ bartleby outbox adopt --url sqlite:./shop.db --naming pascal       the same for a table OutboxMessages
  $ bartleby outbox status --url postgres://app:secret@db/shop         how many wait, fail and are dead; is it well
  $ bartleby outbox dispatch --url sqlite:./shop.db --to log --once    deliver what is due now`,
  [adoptCommand, dispatchCommand, statusCommand],
)
