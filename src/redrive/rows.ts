/** The rows of redrives: what was asked for, in which state it is, and which server is at it. */
import { type Instant, instant } from '../core/clock.ts'
import { parseXid, type Xid, xid } from '../core/xid.ts'
import { type Integer, type Session, sql, type Transaction } from '../db/database.ts'
import type { LetterFilter } from '../letters/filter.ts'
import type { LetterKey } from '../letters/letters.ts'
import { LET_GO } from '../work/let-go.ts'
import {
  type PlanNumbers,
  type PlanRequest,
  type Redrive,
  type RedriveAction,
  type RedriveNumber,
  type RedriveState,
  redriveNumber,
  type Selection,
  type Terms,
  type WorkingState,
} from './redrive.ts'
import { readRecipe, showRecipe } from './repair/recipe.ts'

/** Nobody is shown a redrive before its set of letters is complete, and once it is not any more. */
const PLANNING = 'planning'

const COLUMNS = `number, id, state, resumes_as, action, queue, selection, numbers, terms, recipe, reason, planned_by, planned_at,
  valid_until, started_by, started_at, ended_at, note, canary_sent_at, recent, resumed, rate_now, owner, owned_until`

interface Row {
  readonly number: Integer
  readonly id: string
  readonly state: RedriveState
  readonly resumes_as: WorkingState | null
  readonly action: RedriveAction
  readonly queue: string | null
  readonly selection: string
  readonly numbers: string
  readonly terms: string
  readonly recipe: string | null
  readonly reason: string | null
  readonly planned_by: string
  readonly planned_at: Integer
  readonly valid_until: Integer
  readonly started_by: string | null
  readonly started_at: Integer | null
  readonly ended_at: Integer | null
  readonly note: string | null
  readonly canary_sent_at: Integer | null
  readonly recent: string | null
  readonly resumed: Integer
  readonly rate_now: number | null
  readonly owner: string | null
  readonly owned_until: Integer | null
}

/** A redrive with what only the server that is at it needs. */
export interface StoredRedrive extends Redrive {
  readonly owner: string | null
  /** Without an owner, when it was left for somebody to begin with; null when its last owner has left it. */
  readonly ownedUntil: Instant | null
  /** When all letters of the canary were sent. */
  readonly canarySentAt: Instant | null
  /** What the stop rule remembers, as it wrote it. */
  readonly recent: string | null
  /** Letters a second, as that server measured it. */
  readonly rateMeasured: number | null
}

const at = (value: Integer | null): Instant | null => (value === null ? null : instant(BigInt(value)))

function toRedrive(row: Row): StoredRedrive {
  return {
    number: redriveNumber(row.number),
    id: xid(row.id),
    state: row.state,
    resumesAs: row.resumes_as,
    action: row.action,
    queue: row.queue,
    selection: readSelection(row.selection),
    // Written below, from values of these types.
    numbers: JSON.parse(row.numbers) as PlanNumbers,
    terms: JSON.parse(row.terms) as Terms,
    recipe: row.recipe === null ? null : readRecipe(row.recipe),
    reason: row.reason,
    plannedBy: row.planned_by,
    plannedAt: instant(BigInt(row.planned_at)),
    validUntil: instant(BigInt(row.valid_until)),
    startedBy: row.started_by,
    startedAt: at(row.started_at),
    endedAt: at(row.ended_at),
    note: row.note,
    resumed: Number(row.resumed),
    isHeld: row.owner !== null,
    owner: row.owner,
    ownedUntil: at(row.owned_until),
    canarySentAt: at(row.canary_sent_at),
    recent: row.recent,
    rateMeasured: row.rate_now,
  }
}

/** Instants travel as text: JSON has no numbers for them. */
const writeSelection = (selection: Selection): string =>
  JSON.stringify(selection, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value))

function readSelection(text: string): Selection {
  const read = JSON.parse(text) as
    | {
        readonly by: 'filter'
        readonly filter: Omit<LetterFilter, 'fromDate' | 'toDate'> & { fromDate?: string; toDate?: string }
      }
    | { readonly by: 'ids'; readonly ids: readonly LetterKey[] }
  if (read.by === 'ids') return read
  const { fromDate, toDate, ...filter } = read.filter
  return {
    by: 'filter',
    filter: {
      ...filter,
      ...(fromDate === undefined ? {} : { fromDate: instant(BigInt(fromDate)) }),
      ...(toDate === undefined ? {} : { toDate: instant(BigInt(toDate)) }),
    },
  }
}

const insertRow = sql(
  'redrives.insert',
  `INSERT INTO bartleby.redrives (id, state, action, queue, selection, numbers, terms, recipe, reason, planned_by, planned_at,
     valid_until)
   VALUES ($1, '${PLANNING}', $2, $3, $4, '{}', $5, $6, $7, $8, $9, $9) RETURNING number`,
)

/** Begins a plan: a row that nobody is shown. */
export async function insertRedrive(
  tx: Transaction,
  id: Xid,
  request: PlanRequest,
  now: Instant,
): Promise<RedriveNumber> {
  const { selection, action, queue, recipe, terms, reason, actor } = request
  const [row] = await tx.rows<{ number: Integer }>(
    insertRow,
    id,
    action,
    queue,
    writeSelection(selection),
    JSON.stringify(terms),
    recipe === null ? null : JSON.stringify(showRecipe(recipe)),
    reason,
    actor,
    now,
  )
  if (row === undefined) throw new Error('a redrive was written and has no number')
  return redriveNumber(row.number)
}

/** One row by primary key. */
const completeRow = sql(
  'redrives.complete',
  `UPDATE bartleby.redrives SET state = 'planned', numbers = $2, planned_at = $3, valid_until = $4 WHERE number = $1`,
)

/** The plan is complete: it can be seen and started. */
export async function completePlan(
  tx: Transaction,
  number: RedriveNumber,
  plan: { readonly numbers: PlanNumbers; readonly plannedAt: Instant; readonly validUntil: Instant },
): Promise<void> {
  await tx.run(completeRow, number, JSON.stringify(plan.numbers), plan.plannedAt, plan.validUntil)
}

/** One by its unique id. */
const readById = sql(
  'redrives.read',
  `SELECT ${COLUMNS} FROM bartleby.redrives WHERE id = $1 AND state <> '${PLANNING}'`,
  { bigints: true },
)

/** One by primary key. */
const readByNumber = sql(
  'redrives.readByNumber',
  `SELECT ${COLUMNS} FROM bartleby.redrives WHERE number = $1 AND state <> '${PLANNING}'`,
  { bigints: true },
)

/** The redrive with this id; null when there is none. */
export async function readRedrive(session: Session, id: string): Promise<StoredRedrive | null> {
  if (parseXid(id) === null) return null
  const [row] = await session.rows<Row>(readById, id)
  return row === undefined ? null : toRedrive(row)
}

/** The redrive with this number; null when there is none any more. */
export async function readRedriveByNumber(
  session: Session,
  number: RedriveNumber,
): Promise<StoredRedrive | null> {
  const [row] = await session.rows<Row>(readByNumber, number)
  return row === undefined ? null : toRedrive(row)
}

/** One by its unique id, locked until the transaction ends. */
const lockById = sql(
  'redrives.lock',
  {
    postgres: `SELECT ${COLUMNS}, ${LET_GO} FROM bartleby.redrives WHERE id = $1 AND state <> '${PLANNING}' FOR UPDATE`,
    sqlite: `SELECT ${COLUMNS} FROM redrives WHERE id = $1 AND state <> '${PLANNING}'`,
  },
  { bigints: true },
)

/** The redrive, locked until the transaction ends; null when there is none. */
export async function lockRedrive(tx: Transaction, id: string): Promise<StoredRedrive | null> {
  if (parseXid(id) === null) return null
  const [row] = await tx.rows<Row>(lockById, id)
  return row === undefined ? null : toRedrive(row)
}

/** Down the unique index of ids, which ascend with time. Plans that were dropped are not shown, and soon gone. */
const readPage = sql(
  'redrives.page',
  {
    postgres: `SELECT ${COLUMNS} FROM bartleby.redrives WHERE id < $1 AND state = ANY($2::text[])
               AND (started_at IS NOT NULL OR state = 'planned') ORDER BY id DESC LIMIT $3`,
    sqlite: `SELECT ${COLUMNS} FROM redrives WHERE id < $1 AND state IN (SELECT value FROM json_each($2))
             AND (started_at IS NOT NULL OR state = 'planned') ORDER BY id DESC LIMIT $3`,
  },
  { bigints: true },
)

/** After every id. */
const LAST_ID = '~'

/** The newest redrives in one of these states that are older than `before`; of plans, those that can still be started. */
export async function newestRedrives(
  session: Session,
  states: readonly RedriveState[],
  before: Xid | null,
  limit: number,
): Promise<StoredRedrive[]> {
  const list = session.dialect === 'postgres' ? `{${states.join(',')}}` : JSON.stringify(states)
  const rows = await session.rows<Row>(readPage, before ?? LAST_ID, list, limit)
  return rows.map(toRedrive)
}

/** Those that were started and have not ended, on redrives_open, which has few rows. */
const readOpen = sql(
  'redrives.open',
  {
    postgres: `SELECT ${COLUMNS} FROM bartleby.redrives WHERE ended_at IS NULL AND started_at IS NOT NULL ORDER BY number`,
    sqlite: `SELECT ${COLUMNS} FROM redrives INDEXED BY redrives_open
             WHERE ended_at IS NULL AND started_at IS NOT NULL ORDER BY number`,
  },
  { bigints: true },
)

/** Redrives that are under way or paused. */
export async function openRedrives(session: Session): Promise<StoredRedrive[]> {
  return (await session.rows<Row>(readOpen)).map(toRedrive)
}

/** What may change in the row of a redrive that was planned. */
export interface RedriveChange {
  readonly state?: RedriveState
  readonly resumesAs?: WorkingState | null
  readonly terms?: Terms
  readonly note?: string | null
  readonly startedBy?: string
  readonly startedAt?: Instant
  readonly endedAt?: Instant
  readonly canarySentAt?: Instant | null
  readonly recent?: string
  readonly owner?: string | null
  readonly ownedUntil?: Instant | null
}

/** One row by primary key, which is locked or the server's own. */
const changeRow = sql(
  'redrives.change',
  `UPDATE bartleby.redrives SET state = $2, resumes_as = $3, terms = $4, note = $5, started_by = $6, started_at = $7, ended_at = $8,
     canary_sent_at = $9, recent = $10, owner = $11, owned_until = $12 WHERE number = $1`,
)

/** Writes what changes; everything else stays as `redrive`, which was locked, has it. */
export async function changeRedrive(
  tx: Transaction,
  redrive: StoredRedrive,
  change: RedriveChange,
): Promise<void> {
  const next = { ...redrive, ...change }
  await tx.run(
    changeRow,
    redrive.number,
    next.state,
    next.resumesAs,
    JSON.stringify(next.terms),
    next.note,
    next.startedBy,
    next.startedAt,
    next.endedAt,
    next.canarySentAt,
    next.recent,
    next.owner,
    next.ownedUntil,
  )
}

/** One row by primary key, when it is still the owner's. */
const renewRow = sql(
  'redrives.renew',
  'UPDATE bartleby.redrives SET owned_until = $3, rate_now = $4 WHERE number = $1 AND owner = $2',
)

/** Keeps a redrive for `owner`, and notes how fast it goes; false when it is another's by now. */
export async function renewRedrive(
  session: Session,
  number: RedriveNumber,
  lease: { readonly owner: string; readonly until: Instant },
  rate: number | null,
): Promise<boolean> {
  return (await session.run(renewRow, number, lease.owner, lease.until, rate)) === 1
}

/** One row by primary key, when nobody is at it. One that nobody has been at since it was started is not resumed. */
const takeRow = sql(
  'redrives.take',
  `UPDATE bartleby.redrives SET owner = $2, owned_until = $3,
     resumed = resumed + CASE WHEN owner IS NULL AND owned_until IS NOT NULL THEN 0 ELSE 1 END
   WHERE number = $1 AND state IN ('canary', 'running') AND (owner IS NULL OR owned_until < $4)`,
)

/** Makes a redrive that nobody is at the owner's; false when somebody is. */
export async function takeRedrive(
  tx: Transaction,
  number: RedriveNumber,
  lease: { readonly owner: string; readonly until: Instant },
  now: Instant,
): Promise<boolean> {
  return (await tx.run(takeRow, number, lease.owner, lease.until, now)) === 1
}

/** One row by primary key, for whoever takes it up next. */
const leaveRow = sql(
  'redrives.leave',
  'UPDATE bartleby.redrives SET owner = NULL, owned_until = NULL, rate_now = NULL WHERE number = $1 AND owner = $2',
)

/** Leaves a redrive to others. */
export async function leaveRedrive(session: Session, number: RedriveNumber, owner: string): Promise<void> {
  await session.run(leaveRow, number, owner)
}

/** One row by primary key. */
const hideRow = sql('redrives.hide', `UPDATE bartleby.redrives SET state = '${PLANNING}' WHERE number = $1`)

/** Nobody is shown a redrive any more whose letters are being forgotten. */
export async function hideRedrive(tx: Transaction, number: RedriveNumber): Promise<void> {
  await tx.run(hideRow, number)
}

/** One row by primary key. */
const removeRow = sql('redrives.remove', 'DELETE FROM bartleby.redrives WHERE number = $1')

/** Forgets the row of a redrive. */
export async function removeRedrive(tx: Transaction, number: RedriveNumber): Promise<void> {
  await tx.run(removeRow, number)
}
