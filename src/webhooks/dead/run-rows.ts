/** The rows of bulk runs: what is to be done, how far it is, and which server is at it. */
import { type Instant, instant, later } from '../../core/clock.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { type Integer, type Session, sql, type Transaction } from '../../db/database.ts'
import { JOB } from '../webhook.ts'

export const BULK_KINDS = ['requeue', 'purge'] as const
export type BulkKind = (typeof BULK_KINDS)[number]

/** One act on all dead jobs of a consumer. */
export interface BulkRun {
  readonly id: Xid
  readonly kind: BulkKind
  /** The number of the consumer. */
  readonly consumer: number
  readonly actor: string
  readonly startedAt: Instant
  /** null: it is under way. */
  readonly finishedAt: Instant | null
  /** Dead jobs of the consumer at the start; never less than are done. */
  readonly expected: number
  /** Jobs requeued or erased so far. */
  readonly done: number
}

/** A place in the order of dead jobs. */
export interface JobPlace {
  readonly createdAt: bigint
  readonly id: string
}

/** A run with the stretch of jobs that is left of it. */
export interface HeldRun extends BulkRun {
  /** Behind this one it goes on. */
  readonly next: JobPlace
  /** With this one it ends. */
  readonly last: JobPlace
}

/** Who works on a run, and until when others leave it alone. */
export interface Lease {
  readonly owner: string
  readonly until: Instant
}

/** The newest dead job of a consumer, on webhook_jobs_dead. */
const readNewestDead = sql(
  'webhooks.newestDead',
  {
    postgres: `SELECT created_at, id FROM bartleby.webhook_jobs WHERE consumer = $1 AND state = ${JOB.dead}
               ORDER BY created_at DESC, id DESC LIMIT 1`,
    sqlite: `SELECT created_at, id FROM webhook_jobs INDEXED BY webhook_jobs_dead
             WHERE consumer = $1 AND state = ${JOB.dead} ORDER BY created_at DESC, id DESC LIMIT 1`,
  },
  { bigints: true },
)

/** The newest dead job of a consumer; null when it has none. */
export async function newestDead(session: Session, consumer: number): Promise<JobPlace | null> {
  const [row] = await session.rows<{ created_at: Integer; id: string }>(readNewestDead, consumer)
  return row === undefined ? null : { createdAt: BigInt(row.created_at), id: row.id }
}

const insertRow = sql(
  'webhooks.insertRun',
  `INSERT INTO bartleby.webhook_bulk_runs (id, kind, consumer, actor, started_at, expected, last_created_at, last_job,
     next_created_at, next_job, owner, owned_until)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, '', $9, $10)`,
)

/** Runs of a consumer that ended long ago, on webhook_bulk_runs_of. */
const removeEnded = sql(
  'webhooks.removeEndedRuns',
  'DELETE FROM bartleby.webhook_bulk_runs WHERE consumer = $1 AND finished_at < $2',
)

const KEPT_US = 30n * 86_400_000_000n

/** Adds a run that begins with the oldest dead job, and forgets those of the consumer that ended long ago. */
export async function insertRun(
  tx: Transaction,
  run: Omit<HeldRun, 'next' | 'finishedAt' | 'done'>,
  { owner, until }: Lease,
): Promise<void> {
  const { id, kind, consumer, actor, startedAt, expected, last } = run
  const values = [id, kind, consumer, actor, startedAt, expected, last.createdAt, last.id] as const
  await tx.run(removeEnded, consumer, later(startedAt, -KEPT_US))
  await tx.run(insertRow, ...values, owner, until)
}

const COLUMNS = 'id, kind, consumer, actor, started_at, finished_at, expected, done'

interface Row {
  readonly id: string
  readonly kind: BulkKind
  readonly consumer: Integer
  readonly actor: string
  readonly started_at: Integer
  readonly finished_at: Integer | null
  readonly expected: Integer
  readonly done: Integer
}

const toRun = (row: Row): BulkRun => ({
  id: xid(row.id),
  kind: row.kind,
  consumer: Number(row.consumer),
  actor: row.actor,
  startedAt: instant(BigInt(row.started_at)),
  finishedAt: row.finished_at === null ? null : instant(BigInt(row.finished_at)),
  expected: Number(row.expected),
  done: Number(row.done),
})

/** One by primary key. */
const readOne = sql('webhooks.readRun', `SELECT ${COLUMNS} FROM bartleby.webhook_bulk_runs WHERE id = $1`, {
  bigints: true,
})

/** The run with this id; null when there is none any more. */
export async function readRun(session: Session, id: Xid): Promise<BulkRun | null> {
  const [row] = await session.rows<Row>(readOne, id)
  return row === undefined ? null : toRun(row)
}

/** The end of the primary key: ids ascend with time. An index by time and id would be taken for one of ids. */
const readNewest = sql(
  'webhooks.newestRuns',
  `SELECT ${COLUMNS} FROM bartleby.webhook_bulk_runs ORDER BY id DESC LIMIT $1`,
  { bigints: true },
)

/** The newest runs, done or not. */
export async function newestRuns(session: Session, limit: number): Promise<readonly BulkRun[]> {
  return (await session.rows<Row>(readNewest, limit)).map(toRun)
}

/** Runs that are not done and that nobody is at, the oldest first: on webhook_bulk_runs_open, which has few rows. */
const readLeft = sql('webhooks.runsLeft', {
  postgres: `SELECT id FROM bartleby.webhook_bulk_runs WHERE finished_at IS NULL AND (owner IS NULL OR owned_until < $1)
             ORDER BY started_at LIMIT $2`,
  sqlite: `SELECT id FROM webhook_bulk_runs INDEXED BY webhook_bulk_runs_open
           WHERE finished_at IS NULL AND (owner IS NULL OR owned_until < $1) ORDER BY started_at LIMIT $2`,
})

/** The oldest runs that nobody is at. */
export async function runsLeft(session: Session, now: Instant, limit: number): Promise<readonly Xid[]> {
  return (await session.rows<{ id: string }>(readLeft, now, limit)).map(({ id }) => xid(id))
}

/** One row by primary key, when nobody is at it. The plus, here and below, keeps the stores from looking for it among all open runs. */
const takeRow = sql(
  'webhooks.takeRun',
  `UPDATE bartleby.webhook_bulk_runs SET owner = $2, owned_until = $3
   WHERE id = $1 AND +finished_at IS NULL AND (owner IS NULL OR owned_until < $4)`,
)

/** Makes a run that nobody is at the holder's; false when somebody is. */
export async function takeRun(session: Session, id: Xid, lease: Lease, now: Instant): Promise<boolean> {
  return (await session.run(takeRow, id, lease.owner, lease.until, now)) === 1
}

/** One row by primary key, for whoever takes it up next. */
const leaveRow = sql(
  'webhooks.leaveRun',
  `UPDATE bartleby.webhook_bulk_runs SET owner = NULL, owned_until = NULL
   WHERE id = $1 AND owner = $2 AND +finished_at IS NULL`,
)

/** Leaves a run to others. */
export async function leaveRun(session: Session, id: Xid, owner: string): Promise<void> {
  await session.run(leaveRow, id, owner)
}

const HELD = `${COLUMNS}, next_created_at, next_job, last_created_at, last_job`

/** One row by primary key, when it is still the owner's; locked until the transaction ends. */
const holdRow = sql(
  'webhooks.holdRun',
  {
    postgres: `SELECT ${HELD} FROM bartleby.webhook_bulk_runs
               WHERE id = $1 AND owner = $2 AND +finished_at IS NULL FOR UPDATE`,
    sqlite: `SELECT ${HELD} FROM webhook_bulk_runs WHERE id = $1 AND owner = $2 AND +finished_at IS NULL`,
  },
  { bigints: true },
)

interface HeldRow extends Row {
  readonly next_created_at: Integer
  readonly next_job: string
  readonly last_created_at: Integer
  readonly last_job: string
}

/** The run, when it is not done and still the owner's: nobody else gets it before the transaction ends. */
export async function holdRun(tx: Transaction, id: Xid, owner: string): Promise<HeldRun | null> {
  const [row] = await tx.rows<HeldRow>(holdRow, id, owner)
  if (row === undefined) return null
  return {
    ...toRun(row),
    next: { createdAt: BigInt(row.next_created_at), id: row.next_job },
    last: { createdAt: BigInt(row.last_created_at), id: row.last_job },
  }
}

/** One row by primary key, which is locked. Jobs that died meanwhile and were done too are expected from then on. */
const advanceRow = sql(
  'webhooks.advanceRun',
  `UPDATE bartleby.webhook_bulk_runs SET next_created_at = $2, next_job = $3, done = done + $4, owned_until = $5,
     finished_at = $6, expected = CASE WHEN expected < done + $4 THEN done + $4 ELSE expected END WHERE id = $1`,
)

/** Writes how far a run is. */
export function advanceRun(
  tx: Transaction,
  id: Xid,
  step: {
    readonly next: JobPlace
    readonly done: number
    readonly until: Instant
    readonly finishedAt: Instant | null
  },
): void {
  const { next, done, until, finishedAt } = step
  tx.atCommit(advanceRow, id, next.createdAt, next.id, done, until, finishedAt)
}
