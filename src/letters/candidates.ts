/** Letters as bulk work looks at them: what decides whether they are acted on, and nothing of what is large. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, type Session, sql, type Transaction } from '../db/database.ts'
import { at, integer, oneOf, orNull, type RowOf, rowShape, text } from '../db/row.ts'
import { PLACED, placeOf } from './detail.ts'
import { isEngineSourceId } from './item-source-id.ts'
import {
  type Act,
  isUnconfirmed,
  type LetterId,
  letterId,
  type Placed,
  STATUS,
  UNNAMED_INSTANCE,
} from './letter.ts'

const CANDIDATE = rowShape({
  ...PLACED,
  version: integer,
  /** As it is stored. */
  status: integer,
  drawer: integer,
  engine: text,
  sourceId: text,
  instanceId: orNull(text),
  capturedAt: at,
  confirmedAt: orNull(at),
  resolution: orNull(oneOf<Act>()),
  sentTo: orNull(text),
  /** The redrive that sent it, or is about to. */
  redrive: orNull(integer),
})

export interface Candidate extends RowOf<typeof CANDIDATE>, Placed {
  /** What letters are kept in order by: the instance; null when it has none. */
  readonly key: string | null
  readonly isUnconfirmed: boolean
  readonly isLeased: boolean
}

const THESE = `SELECT ${CANDIDATE.columns} FROM bartleby.letters WHERE id = ANY($1::bigint[])`

/** Letters by primary key. */
const readThese = sql('letters.candidates', THESE, { bigints: true })

/** The same, locked in the order of their numbers until the transaction ends. */
const lockThese = sql('letters.lockCandidates', `${THESE} ORDER BY id FOR UPDATE`, { bigints: true })

/** Those of the letters that are there, by their numbers. */
export async function readCandidates(
  session: Session,
  ids: readonly LetterId[],
): Promise<Map<LetterId, Candidate>> {
  return byId(await session.rows<object>(readThese, ids))
}

/** The same, locked until the transaction ends. */
export async function lockCandidates(
  tx: Transaction,
  ids: readonly LetterId[],
): Promise<Map<LetterId, Candidate>> {
  return byId(await tx.rows<object>(lockThese, ids))
}

const byId = (rows: readonly object[]): Map<LetterId, Candidate> =>
  new Map(rows.map(toCandidate).map((letter) => [letter.id, letter]))

function toCandidate(row: object): Candidate {
  const letter = CANDIDATE.read(row)
  const { instanceId } = letter
  return {
    ...letter,
    place: placeOf(letter),
    key: instanceId === null || isUnnamed(instanceId) ? null : instanceId,
    isUnconfirmed: isUnconfirmed(letter),
    isLeased: letter.leased,
  }
}

/** A place in the order of captures. */
export interface CapturePlace {
  readonly capturedAt: Instant
  readonly id: LetterId
}

/** Whether the one was captured before the other. */
export const isBefore = (one: CapturePlace, other: CapturePlace): boolean =>
  one.capturedAt < other.capturedAt || (one.capturedAt === other.capturedAt && one.id < other.id)

/**
 * The first pending letter of each key that is none of `$3`: as many steps into letters_pending_of_key as the key has letters
 * among those, and one more.
 */
const readFirstOthers = sql(
  'letters.firstOfKeys',
  {
    postgres: `
      SELECT asked.key, first.captured_at, first.id FROM unnest($2::text[]) AS asked (key) CROSS JOIN LATERAL (
        SELECT captured_at, id FROM bartleby.letters
        WHERE engine = $1 AND instance_id = asked.key AND status = ${STATUS.Pending} AND id <> ALL($3::bigint[])
        ORDER BY engine, instance_id, captured_at, id LIMIT 1) AS first`,
    sqlite: `
      SELECT $2 AS key, captured_at, id FROM letters INDEXED BY letters_pending_of_key
      WHERE engine = $1 AND instance_id = $2 AND status = ${STATUS.Pending} AND id NOT IN (SELECT value FROM json_each($3))
      ORDER BY captured_at, id LIMIT 1`,
  },
  { bigints: true },
)

interface FirstRow {
  readonly key: string
  readonly captured_at: Integer
  readonly id: Integer
}

/** Of each key of an engine, the first letter that is pending beside these; keys that have none are left out. */
export async function firstOthers(
  session: Session,
  engine: string,
  letters: readonly { readonly id: LetterId; readonly key: string }[],
): Promise<ReadonlyMap<string, CapturePlace>> {
  const keys = Map.groupBy(letters, ({ key }) => key)
  if (keys.size === 0) return new Map()
  const idsOf = (group: readonly { readonly id: LetterId }[]) => group.map(({ id }) => id)
  const rows: FirstRow[] = []
  if (session.dialect === 'postgres') {
    rows.push(...(await session.rows<FirstRow>(readFirstOthers, engine, [...keys.keys()], idsOf(letters))))
  } else {
    for (const [key, group] of keys)
      rows.push(...(await session.rows<FirstRow>(readFirstOthers, engine, key, idsOf(group))))
  }
  return new Map(
    rows.map(({ key, captured_at, id }) => [
      key,
      { capturedAt: instant(BigInt(captured_at)), id: letterId(id) },
    ]),
  )
}

/** The source id stands for the instance of a message that names none. */
const isUnnamed = (instanceId: string): boolean =>
  instanceId === UNNAMED_INSTANCE || isEngineSourceId(instanceId)
