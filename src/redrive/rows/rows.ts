/** Redrives as rows: the request, the state, and the server that drives the run. */
import { type Instant, instant } from '../../core/clock.ts'
import { type Xid, xid } from '../../core/xid.ts'
import type { RedriveRef } from '../../letters/letter.ts'
import type { LetterFilter } from '../../letters/lists/filter.ts'
import type { LetterKey } from '../../letters/shapes.ts'
import { type Integer, type Session, type Statement, sql, type Transaction } from '../../store/database.ts'
import { at, number, oneOf, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { LET_GO } from '../../work/run-rows.ts'
import {
  type PlanNumbers,
  type PlanRequest,
  type RedriveAction,
  type RedriveNumber,
  type RedriveState,
  redriveNumber,
  refOf,
  type Selection,
  type Terms,
  type WorkingState,
} from '../redrive.ts'
import { readRecipe, showRecipe } from '../repair/recipe.ts'

/** Hidden while its letters are being removed. */
export const FORGOTTEN = 'forgotten'

const REDRIVE = rowShape({
  number: redriveNumber,
  id: xid,
  state: oneOf<RedriveState>(),
  /** State after a pause. */
  resumesAs: orNull(oneOf<WorkingState>()),
  action: oneOf<RedriveAction>(),
  queue: orNull(text),
  selection: readSelection,
  // Written below, from values of these types.
  numbers: (value: string) => JSON.parse(value) as PlanNumbers,
  terms: (value: string) => JSON.parse(value) as Terms,
  recipe: orNull(readRecipe),
  reason: orNull(text),
  plannedBy: text,
  plannedAt: at,
  validUntil: at,
  startedBy: orNull(text),
  startedAt: orNull(at),
  endedAt: orNull(at),
  /** What it stopped or paused for. */
  note: orNull(text),
  /** When the last letter of the canary was sent. */
  canarySentAt: orNull(at),
  /** The stop rule's memory, as it wrote it. */
  recent: orNull(text),
})

/** Columns of its run. */
const OF_RUN = rowShape({
  /** Times that a server went on with it after another, or after a restart. */
  resumed: (value: Integer | null) => Number(value ?? 0),
  /** Letters a second, as the driving server measured it. */
  rateNow: orNull(number),
  owner: orNull(text),
})

/** With what only the driving server needs. */
export interface StoredRedrive
  extends RowOf<typeof REDRIVE>,
    Pick<RowOf<typeof OF_RUN>, 'resumed' | 'owner'> {
  readonly rateMeasured: number | null
  /** Whether a server drives it now. */
  readonly isHeld: boolean
}

/** A column of the run, by primary key. Not a join: PostgreSQL would read all runs while it takes redrives for few. */
const ofRun = (column: string): string =>
  `(SELECT ${column} FROM bartleby.runs AS run WHERE run.id = redrives.id) AS ${column}`

const COLUMNS = [REDRIVE.columns, ...OF_RUN.columns.split(', ').map(ofRun)].join(', ')

function toRedrive(row: object): StoredRedrive {
  const { resumed, rateNow: rateMeasured, owner } = OF_RUN.read(row)
  return { ...REDRIVE.read(row), resumed, rateMeasured, owner, isHeld: owner !== null }
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
   VALUES ($1, 'planning', $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)`,
)

const NO_NUMBERS: PlanNumbers = {
  ...{ matched: 0, eligible: 0, inFlight: 0, noDestination: 0, orderBlocked: 0, duplicate: 0, invalid: 0 },
}

export async function insertRedrive(
  tx: Transaction,
  id: Xid,
  request: PlanRequest,
  now: Instant,
): Promise<void> {
  const { selection, action, queue, recipe, terms, reason, actor } = request
  const json = [writeSelection(selection), JSON.stringify(NO_NUMBERS), JSON.stringify(terms)] as const
  const recipeJson = recipe === null ? null : JSON.stringify(showRecipe(recipe))
  await tx.run(insertRow, id, action, queue, ...json, recipeJson, reason, actor, now)
}

const planRow = sql(
  'redrives.plan',
  'UPDATE bartleby.redrives SET state = $2, numbers = $3, planned_at = $4, valid_until = $5 WHERE number = $1',
)

/** Notes what a plan has found; from `planned` on it can be started. */
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

const one = (key: 'id' | 'number', columns = COLUMNS): string =>
  `SELECT ${columns} FROM bartleby.redrives WHERE ${key} = $1 AND state <> '${FORGOTTEN}'`

const readById = sql('redrives.read', one('id'), { bigints: true })
const lockById = sql('redrives.lock', `${one('id', `${COLUMNS}, ${LET_GO}`)} FOR UPDATE`, { bigints: true })
const readByNumber = sql('redrives.readByNumber', one('number'), { bigints: true })

const find = async (
  session: Session,
  statement: Statement,
  key: string | number,
): Promise<StoredRedrive | null> => {
  const [row] = await session.rows<object>(statement, key)
  return row === undefined ? null : toRedrive(row)
}

export const readRedrive = (session: Session, id: Xid): Promise<StoredRedrive | null> =>
  find(session, readById, id)

export const readRedriveByNumber = (session: Session, number: RedriveNumber): Promise<StoredRedrive | null> =>
  find(session, readByNumber, number)

/** As letters name it. */
export async function readRedriveRef(session: Session, number: number): Promise<RedriveRef | null> {
  const found = await find(session, readByNumber, number)
  return found === null ? null : refOf(found)
}

export const lockRedrive = (tx: Transaction, id: Xid): Promise<StoredRedrive | null> => find(tx, lockById, id)

/** Down the unique index of ids, which ascend with time. Without dropped plans, which are soon gone. */
const readPage = sql(
  'redrives.page',
  `SELECT ${COLUMNS} FROM bartleby.redrives WHERE id < $1 AND state = ANY($2::text[])
     AND (started_at IS NOT NULL OR state IN ('planning', 'planned')) ORDER BY id DESC LIMIT $3`,
  { bigints: true },
)

/** After every id. */
const LAST_ID = '~'

/** The newest in these states; of plans, those that can still be started. */
export async function newestRedrives(
  session: Session,
  states: readonly RedriveState[],
  before: Xid | null,
  limit: number,
): Promise<StoredRedrive[]> {
  const rows = await session.rows<object>(readPage, before ?? LAST_ID, states, limit)
  return rows.map(toRedrive)
}

/** Started and not ended, on redrives_open, which has few rows. */
const readOpen = sql(
  'redrives.open',
  `SELECT ${COLUMNS} FROM bartleby.redrives INDEXED BY redrives_open
   WHERE ended_at IS NULL AND started_at IS NOT NULL ORDER BY number`,
  { bigints: true },
)

export async function openRedrives(session: Session): Promise<StoredRedrive[]> {
  return (await session.rows<object>(readOpen)).map(toRedrive)
}

const changeRow = sql(
  'redrives.change',
  `UPDATE bartleby.redrives SET state = $2, resumes_as = $3, terms = $4, note = $5, started_by = $6, started_at = $7, ended_at = $8,
     canary_sent_at = $9, recent = $10 WHERE number = $1`,
)

/** Writes what can change after the plan; the row must be locked. */
export async function writeRedrive(tx: Transaction, redrive: StoredRedrive): Promise<void> {
  const { number, state, resumesAs, terms, note, startedBy, startedAt, endedAt, canarySentAt, recent } =
    redrive
  const values = [state, resumesAs, JSON.stringify(terms), note, startedBy, startedAt, endedAt] as const
  await tx.run(changeRow, number, ...values, canarySentAt, recent)
}
