/** Letters as bulk work looks at them: what decides whether they are acted on, and nothing of what is large. */
import { type Instant, instant } from '../core/clock.ts'
import { type Integer, integerList, type Session, sql, type Transaction, textList } from '../db/database.ts'
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
import { optionalInstant } from './lying/place.ts'

export interface Candidate extends Placed {
  readonly version: number
  /** As it is stored. */
  readonly status: number
  readonly drawer: number
  readonly engine: string
  readonly sourceId: string
  /** What letters are kept in order by: the instance; null when it has none. */
  readonly key: string | null
  readonly capturedAt: Instant
  readonly confirmedAt: unknown
  readonly isUnconfirmed: boolean
  readonly sentTo: string | null
  readonly isLeased: boolean
  readonly resolution: Act | null
  /** The redrive that sent it, or is about to. */
  readonly redrive: number | null
}

const COLUMNS = `id, version, status, drawer, engine, source_id, instance_id, captured_at, confirmed_at, resolution, sent_to, leased, redrive,
  part, shelf, serial, laid_at, lease_deadline, dead_queue`

const these = { postgres: 'id = ANY($1::bigint[])', sqlite: 'id IN (SELECT value FROM json_each($1))' }

/** Letters by primary key. */
const readThese = sql(
  'letters.candidates',
  {
    postgres: `SELECT ${COLUMNS} FROM bartleby.letters WHERE ${these.postgres}`,
    sqlite: `SELECT ${COLUMNS} FROM letters WHERE ${these.sqlite}`,
  },
  { bigints: true },
)

/** The same, locked in the order of their numbers until the transaction ends. */
const lockThese = sql(
  'letters.lockCandidates',
  {
    postgres: `SELECT ${COLUMNS} FROM bartleby.letters WHERE ${these.postgres} ORDER BY id FOR UPDATE`,
    sqlite: `SELECT ${COLUMNS} FROM letters WHERE ${these.sqlite}`,
  },
  { bigints: true },
)

interface Row {
  readonly id: Integer
  readonly version: Integer
  readonly status: Integer
  readonly drawer: Integer
  readonly engine: string
  readonly source_id: string
  readonly instance_id: string | null
  readonly captured_at: Integer
  readonly confirmed_at: Integer | null
  readonly sent_to: string | null
  readonly resolution: Act | null
  readonly leased: Integer
  readonly redrive: Integer | null
  readonly part: Integer | null
  readonly shelf: Integer | null
  readonly serial: Integer | null
  readonly laid_at: Integer | null
  readonly lease_deadline: Integer | null
  readonly dead_queue: string | null
}

/** Those of the letters that are there, by their numbers. */
export async function readCandidates(
  session: Session,
  ids: readonly LetterId[],
): Promise<Map<LetterId, Candidate>> {
  return byId(await session.rows<Row>(readThese, integerList(session.dialect, ids.map(Number))))
}

/** The same, locked until the transaction ends. */
export async function lockCandidates(
  tx: Transaction,
  ids: readonly LetterId[],
): Promise<Map<LetterId, Candidate>> {
  return byId(await tx.rows<Row>(lockThese, integerList(tx.dialect, ids.map(Number))))
}

const byId = (rows: readonly Row[]): Map<LetterId, Candidate> =>
  new Map(rows.map((row) => [letterId(row.id), toCandidate(row)]))

function toCandidate(row: Row): Candidate {
  const { part, shelf, serial, laid_at } = row
  const isLeased = Number(row.leased) === 1
  return {
    id: letterId(row.id),
    version: Number(row.version),
    status: Number(row.status),
    drawer: Number(row.drawer),
    engine: row.engine,
    sourceId: row.source_id,
    key: row.instance_id === null || isUnnamed(row.instance_id) ? null : row.instance_id,
    capturedAt: instant(BigInt(row.captured_at)),
    confirmedAt: row.confirmed_at,
    sentTo: row.sent_to,
    isUnconfirmed: isUnconfirmed({ resolution: row.resolution, confirmedAt: row.confirmed_at }),
    isLeased,
    resolution: row.resolution,
    redrive: row.redrive === null ? null : Number(row.redrive),
    deadQueue: row.dead_queue,
    place:
      part === null || shelf === null || serial === null || laid_at === null
        ? null
        : {
            part: Number(part),
            shelf: Number(shelf),
            serial: Number(serial),
            leased: isLeased,
            leaseDeadline: optionalInstant(row.lease_deadline),
            laidAt: instant(BigInt(laid_at)),
          },
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
  const { dialect } = session
  const keys = Map.groupBy(letters, ({ key }) => key)
  if (keys.size === 0) return new Map()
  const idsOf = (group: readonly { readonly id: LetterId }[]): string =>
    integerList(
      dialect,
      group.map(({ id }) => Number(id)),
    )
  const rows: FirstRow[] = []
  if (dialect === 'postgres') {
    const list = textList(dialect, [...keys.keys()])
    rows.push(...(await session.rows<FirstRow>(readFirstOthers, engine, list, idsOf(letters))))
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
