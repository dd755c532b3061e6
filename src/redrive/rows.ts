/** The rows of redrives: what was asked for, in which state it is, and which server is at its run. */
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

/** Hidden while its letters are being removed. */
const FORGOTTEN = 'forgotten'

/** Of the run, by primary key. Not a join: PostgreSQL would go through all runs as long as it takes redrives for few. */
const ofRun = (column: string): string =>
  `(SELECT ${column} FROM bartleby.runs AS run WHERE run.id = redrives.id) AS ${column}`

/** A redrive with who is at its run: while it is planned, and from its start on. */
const COLUMNS = `number, id, state, resumes_as, action, queue, selection, numbers, terms, recipe, reason, planned_by, planned_at,
  valid_until, started_by, started_at, ended_at, note, canary_sent_at, recent,
  ${['resumed', 'rate_now', 'owner'].map(ofRun).join(', ')}`

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
  readonly resumed: Integer | null
  readonly rate_now: number | null
  readonly owner: string | null
}

/** A redrive with what only the server that is at it needs. */
export interface StoredRedrive extends Redrive {
  readonly owner: string | null
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
    resumed: Number(row.resumed ?? 0),
    isHeld: row.owner !== null,
    owner: row.owner,
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
   VALUES ($1, 'planning', $2, $3, $4, $5, $6, $7, $8, $9, $10, $10) RETURNING number`,
)

const NO_NUMBERS: PlanNumbers = {
  ...{ matched: 0, eligible: 0, inFlight: 0, noDestination: 0, orderBlocked: 0, duplicate: 0, invalid: 0 },
}

/** Begins a plan. */
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
    JSON.stringify(NO_NUMBERS),
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
const planRow = sql(
  'redrives.plan',
  'UPDATE bartleby.redrives SET state = $2, numbers = $3, planned_at = $4, valid_until = $5 WHERE number = $1',
)

/** Notes what a plan found so far; from `planned` on it can be started. */
export async function notePlan(
  tx: Transaction,
  number: RedriveNumber,
  plan: {
    readonly state: 'planning' | 'planned'
    readonly numbers: PlanNumbers
    readonly plannedAt: Instant
    readonly validUntil: Instant
  },
): Promise<void> {
  const { state, numbers, plannedAt, validUntil } = plan
  await tx.run(planRow, number, state, JSON.stringify(numbers), plannedAt, validUntil)
}

/** One by its unique id. */
const readById = sql(
  'redrives.read',
  `SELECT ${COLUMNS} FROM bartleby.redrives WHERE id = $1 AND state <> '${FORGOTTEN}'`,
  { bigints: true },
)

/** One by primary key. */
const readByNumber = sql(
  'redrives.readByNumber',
  `SELECT ${COLUMNS} FROM bartleby.redrives WHERE number = $1 AND state <> '${FORGOTTEN}'`,
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
    postgres: `SELECT ${COLUMNS}, ${LET_GO} FROM bartleby.redrives WHERE id = $1 AND state <> '${FORGOTTEN}' FOR UPDATE`,
    sqlite: `SELECT ${COLUMNS} FROM bartleby.redrives WHERE id = $1 AND state <> '${FORGOTTEN}'`,
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
               AND (started_at IS NOT NULL OR state IN ('planning', 'planned')) ORDER BY id DESC LIMIT $3`,
    sqlite: `SELECT ${COLUMNS} FROM bartleby.redrives WHERE id < $1 AND state IN (SELECT value FROM json_each($2))
             AND (started_at IS NOT NULL OR state IN ('planning', 'planned')) ORDER BY id DESC LIMIT $3`,
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

/** One row by primary key, which is locked. */
const changeRow = sql(
  'redrives.change',
  `UPDATE bartleby.redrives SET state = $2, resumes_as = $3, terms = $4, note = $5, started_by = $6, started_at = $7, ended_at = $8,
     canary_sent_at = $9, recent = $10 WHERE number = $1`,
)

/** Writes what can change of a redrive, which was locked, after its plan. */
export async function writeRedrive(tx: Transaction, redrive: StoredRedrive): Promise<void> {
  const { number, state, resumesAs, terms, note, startedBy, startedAt, endedAt, canarySentAt, recent } =
    redrive
  const values = [state, resumesAs, JSON.stringify(terms), note, startedBy, startedAt, endedAt] as const
  await tx.run(changeRow, number, ...values, canarySentAt, recent)
}

/** One row by primary key. */
const hideRow = sql('redrives.hide', `UPDATE bartleby.redrives SET state = '${FORGOTTEN}' WHERE number = $1`)

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
