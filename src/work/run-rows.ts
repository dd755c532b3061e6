/** The rows of runs: what is to be done, how far it is, and which server is at it. */
import type { Instant } from '../core/clock.ts'
import { type Xid, xid } from '../core/xid.ts'
import { type Integer, type Session, sql, type Transaction } from '../store/database.ts'
import { at, integer, json, number, oneOf, orNull, type RowOf, rowShape, text } from '../store/row.ts'
import type { RunState } from './shapes.ts'

/**
 * Selected beside what is locked: locks of servers that stand still. A server that is frozen, or whose machine is gone, in the middle of
 * a transaction keeps its locks as long as PostgreSQL believes in its connection, which can be hours; nobody could go on with its run, or
 * cancel it. So whoever locks one asks PostgreSQL to end the transaction when nothing was heard of it for as long as its lease lasts.
 */
export const LET_GO = `set_config('idle_in_transaction_session_timeout', '3s', true) AS let_go`

const RUN = rowShape({
  id: xid,
  kind: text,
  /** Of runs of one name only one is open at a time; null: of any number. */
  name: orNull(text),
  /** What it is done to, for people. */
  about: text,
  subject: json,
  place: json,
  actor: text,
  state: oneOf<RunState>(),
  /** Why it is paused, failed or was cancelled. */
  note: orNull(text),
  startedAt: at,
  endedAt: orNull(at),
  /** Never less than is done; null: nobody knows. */
  expected: orNull(integer),
  done: integer,
  skipped: integer,
  failed: integer,
  /** Rows a second that are allowed; null: as fast as it goes. */
  rate: orNull(number),
  /** Rows a second, as the server that is at it measured them. */
  rateNow: orNull(number),
  /** How often it went on after a restart, or on another server. */
  resumed: integer,
  /** Grows with everything that is done to the run itself. */
  version: integer,
  owner: orNull(text),
})
const COLUMNS = RUN.columns

/** `Subject` and `Place` are what the kind keeps, as JSON: what is to be done, and where it goes on. */
export interface Run<Subject = unknown, Place = unknown> extends RowOf<typeof RUN> {
  readonly subject: Subject
  readonly place: Place
}

/** Who is at a run, and until when others leave it alone. */
export interface Lease {
  readonly owner: string
  readonly until: Instant
}

/** Leaves the store as it is when an open run has the name. */
const insertRow = sql(
  'runs.insert',
  `INSERT INTO bartleby.runs (id, kind, name, about, subject, place, actor, state, started_at, expected, rate, owner, owned_until)
   VALUES ($1, $2, $3, $4, $5, $6, $7, 'running', $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
)

export type NewRun = Pick<
  Run,
  'id' | 'kind' | 'name' | 'about' | 'subject' | 'place' | 'actor' | 'startedAt' | 'expected' | 'rate'
>

/** Adds a run; false when one of its name is open. Without an owner whoever looks first takes it up. */
export async function insertRun(
  tx: Transaction,
  run: NewRun,
  lease: { readonly owner: string | null; readonly until: Instant },
): Promise<boolean> {
  const { id, kind, name, about, subject, place, actor, startedAt, expected, rate } = run
  const json = [JSON.stringify(subject), JSON.stringify(place)] as const
  const values = [id, kind, name, about, ...json, actor, startedAt, expected, rate] as const
  return (await tx.run(insertRow, ...values, lease.owner, lease.until)) === 1
}

/** Up the primary key: ids ascend with time. */
const readOldest = sql(
  'runs.oldest',
  'SELECT id, kind, ended_at FROM bartleby.runs WHERE id > $1 ORDER BY id LIMIT $2',
  { bigints: true },
)

/** By primary key. */
const removeRows = sql('runs.removeThese', 'DELETE FROM bartleby.runs WHERE id = ANY($1::text[])')

/** Rows that are looked at together. */
const LOOK = 100

/** Forgets some runs of these kinds that began before `first` and ended before `before`; gives how many. */
export async function removeEndedRuns(
  tx: Transaction,
  kinds: readonly string[],
  { first, before }: { readonly first: Xid; readonly before: Instant },
): Promise<number> {
  for (let after = ''; ; ) {
    const rows = await tx.rows<{ id: string; kind: string; ended_at: Integer | null }>(
      readOldest,
      after,
      LOOK,
    )
    const old = rows.filter(({ id }) => id < first)
    const ended = old.filter(
      ({ kind, ended_at }) => kinds.includes(kind) && ended_at !== null && BigInt(ended_at) < before,
    )
    if (ended.length > 0) {
      const ids = ended.map(({ id }) => id)
      await tx.run(removeRows, ids)
      return ids.length
    }
    const last = old[LOOK - 1]
    if (last === undefined) return 0
    after = last.id
  }
}

/** One row by primary key. */
const removeRow = sql('runs.remove', 'DELETE FROM bartleby.runs WHERE id = $1')

export async function removeRun(tx: Transaction, id: Xid): Promise<void> {
  await tx.run(removeRow, id)
}

const readOne = sql('runs.read', `SELECT ${COLUMNS} FROM bartleby.runs WHERE id = $1`, { bigints: true })

/** The run with this id; null when there is none. */
export const readRun = (session: Session, id: Xid): Promise<Run | null> => RUN.one(session, readOne, id)

/** By runs_one. */
const readNamed = sql(
  'runs.named',
  `SELECT ${COLUMNS} FROM bartleby.runs WHERE name = $1 AND ended_at IS NULL`,
  { bigints: true },
)

export const readOpenRun = (session: Session, name: string): Promise<Run | null> =>
  RUN.one(session, readNamed, name)

/** Down the primary key. */
const readPage = sql(
  'runs.page',
  `SELECT ${COLUMNS} FROM bartleby.runs WHERE id < $1 ORDER BY id DESC LIMIT $2`,
  { bigints: true },
)

/** After every id. */
const LAST_ID = '~'

export interface RunPage {
  /** null: of every kind. */
  readonly kinds: readonly string[] | null
  /** null: in every state. */
  readonly states: readonly RunState[] | null
  /** Older than this one; null: from the newest on. */
  readonly before: Xid | null
  readonly limit: number
}

export async function readRuns(
  session: Session,
  { kinds, states, before, limit }: RunPage,
): Promise<readonly Run[]> {
  const found: Run[] = []
  const size = kinds === null && states === null ? limit : LOOK
  for (let end: string = before ?? LAST_ID; ; ) {
    const runs = await RUN.all(session, readPage, end, size)
    for (const run of runs) {
      if (kinds?.includes(run.kind) === false || states?.includes(run.state) === false) continue
      found.push(run)
      if (found.length === limit) return found
    }
    const last = runs[size - 1]
    if (last === undefined) return found
    end = last.id
  }
}

/** Those that have not ended, on runs_open, which has few rows. */
const readOpen = sql(
  'runs.open',
  `SELECT ${COLUMNS} FROM bartleby.runs INDEXED BY runs_open WHERE ended_at IS NULL ORDER BY started_at`,
  { bigints: true },
)

/** Runs that are under way or paused, the oldest first. */
export const openRuns = (session: Session): Promise<readonly Run[]> => RUN.all(session, readOpen)

const LEFT = `state = 'running' AND (owner IS NULL OR owned_until < $1)`

/** Open runs that nobody is at, on runs_open. */
const readLeft = sql(
  'runs.left',
  `SELECT id, kind FROM bartleby.runs INDEXED BY runs_open WHERE ended_at IS NULL AND ${LEFT} ORDER BY started_at`,
)

/** Runs that nobody is at, the oldest first. */
export async function runsLeft(session: Session, now: Instant): Promise<readonly Pick<Run, 'id' | 'kind'>[]> {
  const rows = await session.rows<{ id: string; kind: string }>(readLeft, now)
  return rows.map(({ id, kind }) => ({ id: xid(id), kind }))
}

/**
 * One row by primary key, when nobody is at it; one whose step is under way is left to that. A run that nobody has been at since it
 * was begun is not resumed.
 */
const TAKEN = `owner = $3, owned_until = $4,
  resumed = resumed + CASE WHEN owner IS NULL AND owned_until IS NOT NULL THEN 0 ELSE 1 END`
const takeRow = sql(
  'runs.take',
  `UPDATE bartleby.runs SET ${TAKEN}
   WHERE id = (SELECT id FROM bartleby.runs WHERE id = $2 AND ${LEFT} FOR UPDATE SKIP LOCKED) RETURNING ${COLUMNS}`,
  { bigints: true },
)

/** Makes a run that nobody is at the owner's; null when somebody is. */
export const takeRun = (session: Session, id: Xid, lease: Lease, now: Instant): Promise<Run | null> =>
  RUN.one(session, takeRow, now, id, lease.owner, lease.until)

/** Some of the owner's open runs, by primary key. Those whose step is under way are renewed by it. */
const renewRows = sql(
  'runs.renew',
  `UPDATE bartleby.runs SET owned_until = $2 WHERE id IN (
     SELECT id FROM bartleby.runs WHERE id = ANY($3::text[]) AND owner = $1 AND ended_at IS NULL FOR UPDATE SKIP LOCKED)`,
)

/** Keeps the runs that a server is at for it, and none that it does not know of any more. */
export async function renewRuns(
  session: Session,
  { owner, until }: Lease,
  ids: readonly Xid[],
): Promise<void> {
  await session.run(renewRows, owner, until, ids)
}

/** One row by primary key, when it is still the owner's. */
const noteRow = sql(
  'runs.note',
  'UPDATE bartleby.runs SET done = $3, skipped = $4, failed = $5, rate_now = $6 WHERE id = $1 AND owner = $2',
)

/** Notes how far a run is whose kind keeps its own counts; false when it is another's by now. */
export async function noteProgress(
  session: Session,
  id: Xid,
  owner: string,
  { done, skipped, failed, rateNow }: Pick<Run, 'done' | 'skipped' | 'failed' | 'rateNow'>,
): Promise<boolean> {
  return (await session.run(noteRow, id, owner, done, skipped, failed, rateNow)) === 1
}

/** One row by primary key, for whoever takes it up next. */
const leaveRow = sql(
  'runs.leave',
  'UPDATE bartleby.runs SET owner = NULL, owned_until = NULL, rate_now = NULL WHERE id = $1 AND owner = $2',
)

export async function leaveRun(session: Session, id: Xid, owner: string): Promise<void> {
  await session.run(leaveRow, id, owner)
}

/** One row by primary key, locked until the transaction ends. */
const lockRow = sql('runs.lock', `SELECT ${COLUMNS}, ${LET_GO} FROM bartleby.runs WHERE id = $1 FOR UPDATE`, {
  bigints: true,
})

/** The run, which nobody else moves or changes before the transaction ends; null when there is none. */
export const lockRun = (tx: Transaction, id: Xid): Promise<Run | null> => RUN.one(tx, lockRow, id)

/** What a step or a command makes of a run. */
export interface RunChange
  extends Partial<
    Omit<Run, 'id' | 'kind' | 'name' | 'about' | 'subject' | 'actor' | 'startedAt' | 'resumed' | 'owner'>
  > {
  /** null: nobody's; with `until` for whoever begins or goes on with it, without for whoever takes it over. */
  readonly lease: { readonly owner: string | null; readonly until: Instant | null }
}

/** One row by primary key, which is locked. */
const changeRow = sql(
  'runs.change',
  `UPDATE bartleby.runs SET state = $2, note = $3, place = $4, ended_at = $5, expected = $6, done = $7, skipped = $8,
     failed = $9, rate = $10, rate_now = $11, version = $12, owner = $13, owned_until = $14 WHERE id = $1`,
)

/** Writes what changes, with the commit; everything else stays as `run`, which is locked, has it. Gives the run as it is then. */
export function changeRun(tx: Transaction, run: Run, { lease, ...change }: RunChange): Run {
  const next = { ...run, ...change, owner: lease.owner }
  const { state, note, endedAt, done, skipped, failed, rate, rateNow, version } = next
  // Rows that came to be meanwhile and were done too are expected from then on.
  const expected = next.expected === null ? null : Math.max(next.expected, done + skipped + failed)
  const counts = [expected, done, skipped, failed] as const
  const values = [state, note, JSON.stringify(next.place), endedAt, ...counts] as const
  tx.atCommit(changeRow, run.id, ...values, rate, rateNow, version, lease.owner, lease.until)
  return { ...next, expected }
}
