/** Letters as bulk work sees them: what decides whether they qualify, without large columns. */
import type { Instant } from '../../core/clock.ts'
import { isEngineSourceId, UNNAMED_INSTANCE } from '../../core/source-id.ts'
import { type Integer, type Session, sql, type Transaction } from '../../store/database.ts'
import { rowsGiven } from '../../store/idioms.ts'
import { at, integer, oneOf, orNull, type RowOf, rowShape, text } from '../../store/row.ts'
import { type Act, type InDeadQueue, isUnconfirmed, type LetterId, letterId, STATUS } from '../letter.ts'
import { POSITION, positionOf } from './detail.ts'

const BULK_LETTER = rowShape({
  ...POSITION,
  version: integer,
  /** As stored. */
  status: integer,
  drawer: integer,
  engine: text,
  sourceId: text,
  instanceId: orNull(text),
  capturedAt: at,
  confirmedAt: orNull(at),
  resolution: orNull(oneOf<Act>()),
  sentTo: orNull(text),
  redrive: orNull(integer),
})

export interface BulkLetter extends RowOf<typeof BULK_LETTER>, InDeadQueue {
  /** Instance that keeps its letters in order; null when it has none. */
  readonly key: string | null
  readonly isUnconfirmed: boolean
  readonly isLeased: boolean
}

/** A tenth of a candidate, because a plan looks at millions. */
export type Plannable = Pick<
  BulkLetter,
  'id' | 'version' | 'status' | 'drawer' | 'capturedAt' | 'key' | 'isUnconfirmed' | 'isLeased'
>

/** By primary key. */
const readPlannable = sql(
  'letters.plannable',
  `SELECT id, version, status, drawer, captured_at, instance_id, leased,
     CASE WHEN resolution = 'retry' AND confirmed_at IS NULL THEN 1 ELSE 0 END AS unconfirmed
   FROM bartleby.letters WHERE id = ANY($1::bigint[])`,
  { bigints: true },
)

type PlannableRow = { readonly instance_id: string | null } & Readonly<
  Record<'id' | 'version' | 'status' | 'drawer' | 'captured_at' | 'leased' | 'unconfirmed', Integer>
>

/** Existing letters in the given order: lanes are numbered as letters come. */
export async function readPlannables(session: Session, ids: readonly LetterId[]): Promise<Plannable[]> {
  const rows = await session.rows<PlannableRow>(readPlannable, ids)
  const byId = new Map(rows.map((row) => [letterId(row.id), row]))
  const found = ids.flatMap((id) => byId.get(id) ?? [])
  return found.map((row) => ({
    id: letterId(row.id),
    version: Number(row.version),
    status: Number(row.status),
    drawer: Number(row.drawer),
    capturedAt: at(row.captured_at),
    key: keyOf(row.instance_id),
    isUnconfirmed: Number(row.unconfirmed) === 1,
    isLeased: Number(row.leased) === 1,
  }))
}

const THESE = `SELECT ${BULK_LETTER.columns} FROM bartleby.letters WHERE id = ANY($1::bigint[])`

/** By primary key. */
const readThese = sql('letters.candidates', THESE, { bigints: true })

const lockThese = sql('letters.lockCandidates', `${THESE} ORDER BY id FOR UPDATE`, { bigints: true })

export const readBulkLetters = async (session: Session, ids: readonly LetterId[]) =>
  byId(await BULK_LETTER.all(session, readThese, ids))

export const lockBulkLetters = async (tx: Transaction, ids: readonly LetterId[]) =>
  byId(await BULK_LETTER.all(tx, lockThese, ids))

const byId = (letters: readonly RowOf<typeof BULK_LETTER>[]): Map<LetterId, BulkLetter> =>
  new Map(letters.map((letter) => [letter.id, toBulkLetter(letter)]))

const toBulkLetter = (letter: RowOf<typeof BULK_LETTER>): BulkLetter => ({
  ...letter,
  position: positionOf(letter),
  key: keyOf(letter.instanceId),
  isUnconfirmed: isUnconfirmed(letter),
  isLeased: letter.leased,
})

/** Position in the order of captures. */
export interface CapturePlace {
  readonly capturedAt: Instant
  readonly id: LetterId
}

export const isBefore = (one: CapturePlace, other: CapturePlace): boolean =>
  one.capturedAt < other.capturedAt || (one.capturedAt === other.capturedAt && one.id < other.id)

export interface LettersOfKey {
  readonly key: string
  readonly letters: number
  readonly last: CapturePlace
}

export function addToKey(keys: Map<string, LettersOfKey>, key: string, place: CapturePlace): void {
  const { letters, last } = keys.get(key) ?? { letters: 0, last: place }
  keys.set(key, { key, letters: letters + 1, last: isBefore(last, place) ? place : last })
}

/** Per key, steps along letters_pending_of_key up to its last letter; at most one more than the largest key has. */
const readMixed = sql(
  'letters.mixedKeys',
  `SELECT asked.key FROM jsonb_to_recordset($1::jsonb) AS asked (key text, letters int, captured_at bigint, id bigint)
   WHERE (SELECT count(*) FROM (
     SELECT 1 FROM bartleby.letters INDEXED BY letters_pending_of_key
     WHERE engine = $2 AND instance_id = asked.key AND status = ${STATUS.Pending}
       AND (captured_at, letters.id) <= (asked.captured_at, asked.id) LIMIT $3) AS those) > asked.letters`,
)

/** Keys, and steps of all of them, in one statement: it must stay short. */
const MOST_KEYS = 1_000
export const MOST_STEPS = 20_000

/** Keys of an engine with other letters pending before the last of these. */
export async function mixedKeys(
  session: Session,
  engine: string,
  keys: readonly LettersOfKey[],
): Promise<ReadonlySet<string>> {
  const mixed = new Set<string>()
  // Small keys first: each takes as many steps as the largest of its statement.
  const rest = keys.toSorted((a, b) => b.letters - a.letters)
  while (rest.length > 0) {
    const some: LettersOfKey[] = []
    let most = 0
    for (let next = rest.at(-1); next !== undefined && some.length < MOST_KEYS; next = rest.at(-1)) {
      if (some.length > 0 && (some.length + 1) * (next.letters + 1) > MOST_STEPS) break
      most = next.letters
      some.push(next)
      rest.pop()
    }
    // Text: numbers would lose digits of instants.
    const asked = some.map(({ key, letters, last: { capturedAt, id } }) => ({
      ...{ key, letters, captured_at: `${capturedAt}`, id: `${id}` },
    }))
    const rows = await session.rows<{ key: string }>(readMixed, JSON.stringify(asked), engine, most + 1)
    for (const { key } of rows) mixed.add(key)
  }
  return mixed
}

/** Per key, as many steps into letters_pending_of_key as it has letters here, and one. */
const readFirst = sql(
  'letters.firstOfKeys',
  `SELECT found.* FROM unnest($1::text[], $2::int[]) AS given (key, most) CROSS JOIN LATERAL (
     SELECT instance_id, captured_at, id FROM bartleby.letters INDEXED BY letters_pending_of_key
     WHERE engine = $3 AND instance_id = given.key AND status = ${STATUS.Pending}
     ORDER BY captured_at, id LIMIT given.most) AS found`,
  { bigints: true },
)

const FIRST = rowShape({ instanceId: text, capturedAt: at, id: letterId })

/** The first pending letter of each key that is not among these. Reads one more than the key has here, so that one must be another. */
export async function firstOthers(
  session: Session,
  engine: string,
  letters: readonly { readonly id: LetterId; readonly key: string }[],
): Promise<ReadonlyMap<string, CapturePlace>> {
  // Excluded in the statement, all of them would be compared at every step.
  const asked = [...Map.groupBy(letters, ({ key }) => key)].map(([key, its]) => ({
    ...{ key, most: its.length + 1 },
  }))
  const these = new Set(letters.map(({ id }) => id))
  const firsts = new Map<string, CapturePlace>()
  for (const row of await rowsGiven<object>(session, readFirst, asked, engine)) {
    const { instanceId, ...place } = FIRST.read(row)
    const first = firsts.get(instanceId)
    if (!these.has(place.id) && (first === undefined || isBefore(place, first))) firsts.set(instanceId, place)
  }
  return firsts
}

/** The source id is the instance of a message without one. */
function keyOf(instanceId: string | null): string | null {
  const isUnnamed = instanceId === null || instanceId === UNNAMED_INSTANCE || isEngineSourceId(instanceId)
  return isUnnamed ? null : instanceId
}
