/** Rows of runs: the work, its progress and its owner. */
import type { Instant } from '../core/clock.ts'
import { type Xid, xid } from '../core/xid.ts'
import { type Integer, type Session, sql, type Transaction } from '../store/database.ts'
import { at, integer, json, number, oneOf, orNull, type RowOf, rowShape, text } from '../store/row.ts'
import type { RunState } from './shapes.ts'

/**
 * Ends locks of servers that stand still. A server frozen in a transaction keeps its locks as long as PostgreSQL believes in the
 * connection, perhaps for hours, and nobody could continue or cancel its run. So PostgreSQL ends it after a silence as long as a lease.
 */
export const LET_GO = `set_config('idle_in_transaction_session_timeout', '3s', true) AS let_go`

const RUN = rowShape({
  id: xid,
  kind: text,
  /** Only one run of a name is open at a time. */
  name: orNull(text),
  /** For people. */
  about: text,
  subject: json,
  place: json,
  actor: text,
  state: oneOf<RunState>(),
  note: orNull(text),
  startedAt: at,
  endedAt: orNull(at),
  /** Never less than is done; null: unknown. */
  expected: orNull(integer),
  done: integer,
  skipped: integer,
  failed: integer,
  /** Allowed rows a second; null: any. */
  rate: orNull(number),
  /** Measured rows a second. */
  rateNow: orNull(number),
  /** Continued so often after a restart or elsewhere. */
  resumed: integer,
  /** Grows with every command. */
  version: integer,
  owner: orNull(text),
})
const COLUMNS = RUN.columns

/** `Subject`: the work. `Place`: its progress. Both are JSON of the kind. */
export interface Run<Subject = unknown, Place = unknown> extends RowOf<typeof RUN> {
  readonly subject: Subject
  readonly place: Place
}

export interface Lease {
  readonly owner: string
  readonly until: Instant
}

/** Does nothing when an open run has the name. */
const insertRow = sql(
  'runs.insert',
  `INSERT INTO bartleby.runs (id, kind, name, about, subject, place, actor, state, started_at, expected, rate, owner, owned_until)
   VALUES ($1, $2, $3, $4, $5, $6, $7, 'running', $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
)

export type NewRun = Pick<
  Run,
  'id' | 'kind' | 'name' | 'about' | 'subject' | 'place' | 'actor' | 'startedAt' | 'expected' | 'rate'
>

/** False when a run of its name is open. Without an owner, the first server that looks takes it up. */
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

const LOOK = 100

/** Removes some runs begun before `first` and ended before `before`; returns how many. */
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

/** By primary key. */
const removeRow = sql('runs.remove', 'DELETE FROM bartleby.runs WHERE id = $1')

export async function removeRun(tx: Transaction, id: Xid): Promise<void> {
  await tx.run(removeRow, id)
}

const readOne = sql('runs.read', `SELECT ${COLUMNS} FROM bartleby.runs WHERE id = $1`, { bigints: true })

export const readRun = (session: Session, id: Xid): Promise<Run | null> => RUN.one(session, readOne, id)

/** On runs_one. */
const readNamed = sql(
  'runs.named',
  `SELECT ${COLUMNS} FROM bartleby.runs WHERE name = $1 AND ended_at IS NULL`,
  { bigints: true },
)

export const readOpenRun = (session: Session, name: string): Promise<Run | null> =>
  RUN.one(session, readNamed, name)

const readPage = sql(
  'runs.page',
  `SELECT ${COLUMNS} FROM bartleby.runs WHERE id < $1 ORDER BY id DESC LIMIT $2`,
  { bigints: true },
)

const LAST_ID = '~'

export interface RunPage {
  /** null: every kind. */
  readonly kinds: readonly string[] | null
  /** null: every state. */
  readonly states: readonly RunState[] | null
  /** null: from the newest on. */
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

/** On runs_open, which has few rows. */
const readOpen = sql(
  'runs.open',
  `SELECT ${COLUMNS} FROM bartleby.runs INDEXED BY runs_open WHERE ended_at IS NULL ORDER BY started_at`,
  { bigints: true },
)

/** Oldest first. */
export const openRuns = (session: Session): Promise<readonly Run[]> => RUN.all(session, readOpen)

const LEFT = `state = 'running' AND (owner IS NULL OR owned_until < $1)`

/** On runs_open. */
const readLeft = sql(
  'runs.left',
  `SELECT id, kind FROM bartleby.runs INDEXED BY runs_open WHERE ended_at IS NULL AND ${LEFT} ORDER BY started_at`,
)

/** Oldest first. */
export async function runsLeft(session: Session, now: Instant): Promise<readonly Pick<Run, 'id' | 'kind'>[]> {
  const rows = await session.rows<{ id: string; kind: string }>(readLeft, now)
  return rows.map(({ id, kind }) => ({ id: xid(id), kind }))
}

/** By primary key, unless a step holds it. A run without an owner since it was begun does not count as resumed. */
const TAKEN = `owner = $3, owned_until = $4,
  resumed = resumed + CASE WHEN owner IS NULL AND owned_until IS NOT NULL THEN 0 ELSE 1 END`
const takeRow = sql(
  'runs.take',
  `UPDATE bartleby.runs SET ${TAKEN}
   WHERE id = (SELECT id FROM bartleby.runs WHERE id = $2 AND ${LEFT} FOR UPDATE SKIP LOCKED) RETURNING ${COLUMNS}`,
  { bigints: true },
)

/** null when somebody owns it. */
export const takeRun = (session: Session, id: Xid, lease: Lease, now: Instant): Promise<Run | null> =>
  RUN.one(session, takeRow, now, id, lease.owner, lease.until)

/** By primary key. A run whose step is under way is renewed by that. */
const renewRows = sql(
  'runs.renew',
  `UPDATE bartleby.runs SET owned_until = $2 WHERE id IN (
     SELECT id FROM bartleby.runs WHERE id = ANY($3::text[]) AND owner = $1 AND ended_at IS NULL FOR UPDATE SKIP LOCKED)`,
)

/** Renews only runs that the server still knows. */
export async function renewRuns(
  session: Session,
  { owner, until }: Lease,
  ids: readonly Xid[],
): Promise<void> {
  await session.run(renewRows, owner, until, ids)
}

/** By primary key. */
const noteRow = sql(
  'runs.note',
  'UPDATE bartleby.runs SET done = $3, skipped = $4, failed = $5, rate_now = $6 WHERE id = $1 AND owner = $2',
)

/** For kinds with counts of their own; false when another server has the run. */
export async function noteProgress(
  session: Session,
  id: Xid,
  owner: string,
  { done, skipped, failed, rateNow }: Pick<Run, 'done' | 'skipped' | 'failed' | 'rateNow'>,
): Promise<boolean> {
  return (await session.run(noteRow, id, owner, done, skipped, failed, rateNow)) === 1
}

/** By primary key. */
const leaveRow = sql(
  'runs.leave',
  'UPDATE bartleby.runs SET owner = NULL, owned_until = NULL, rate_now = NULL WHERE id = $1 AND owner = $2',
)

export async function leaveRun(session: Session, id: Xid, owner: string): Promise<void> {
  await session.run(leaveRow, id, owner)
}

/** By primary key. */
const lockRow = sql('runs.lock', `SELECT ${COLUMNS}, ${LET_GO} FROM bartleby.runs WHERE id = $1 FOR UPDATE`, {
  bigints: true,
})

export const lockRun = (tx: Transaction, id: Xid): Promise<Run | null> => RUN.one(tx, lockRow, id)

export interface RunChange
  extends Partial<
    Omit<Run, 'id' | 'kind' | 'name' | 'about' | 'subject' | 'actor' | 'startedAt' | 'resumed' | 'owner'>
  > {
  /** No owner: with `until` the run was never begun, without it another server takes it over. */
  readonly lease: { readonly owner: string | null; readonly until: Instant | null }
}

const changeRow = sql(
  'runs.change',
  `UPDATE bartleby.runs SET state = $2, note = $3, place = $4, ended_at = $5, expected = $6, done = $7, skipped = $8,
     failed = $9, rate = $10, rate_now = $11, version = $12, owner = $13, owned_until = $14 WHERE id = $1`,
)

/** Written with the commit; returns the run as it is then. */
export function changeRun(tx: Transaction, run: Run, { lease, ...change }: RunChange): Run {
  const next = { ...run, ...change, owner: lease.owner }
  const { state, note, endedAt, done, skipped, failed, rate, rateNow, version } = next
  // Rows that appeared meanwhile and are done count as expected.
  const expected = next.expected === null ? null : Math.max(next.expected, done + skipped + failed)
  const counts = [expected, done, skipped, failed] as const
  const values = [state, note, JSON.stringify(next.place), endedAt, ...counts] as const
  tx.atCommit(changeRow, run.id, ...values, rate, rateNow, version, lease.owner, lease.until)
  return { ...next, expected }
}
