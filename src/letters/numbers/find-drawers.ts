/** Finding drawers by signature or by the letters they hold. The cost grows with drawers that hold letters, not with all that ever existed. */
import { type Integer, type Session, type Statement, sql, type Value } from '../../store/database.ts'
import type { SourceName } from '../kinds.ts'

/** Places are few. $1 to $3 are NULL where any matches. */
const matchingPlaces = sql(
  'places.matching',
  `SELECT id FROM bartleby.places
   WHERE ($1::text IS NULL OR source = $1) AND ($2::text IS NULL OR engine = $2) AND ($3::text IS NULL OR queue = $3)`,
)
/** On drawers_by_signature. */
const drawersOfSignature = sql(
  'drawers.ofSignature',
  `SELECT id FROM bartleby.drawers
   WHERE signature = (SELECT id FROM bartleby.signatures WHERE fingerprint = $2) AND place = ANY($1::int[])`,
)

/** By primary key, so that joins need not read all drawers. */
const filed = (which: string): string =>
  `filed AS MATERIALIZED (SELECT * FROM bartleby.drawers WHERE ${which} AND place = ANY($1::int[]))`

/**
 * `filed`: drawers of places ($1) that hold letters, and a few that hold none.
 *
 * few: all drawers, cheaper than a step for each. anywhere: one step into letters_in_drawer per drawer. ofPlaces: from a drawer of a
 * place to the next drawer with letters anywhere, and on to the next of the place (drawers_by_place), leaping over all others.
 */
const HOLDING = {
  few: 'WITH filed AS (SELECT * FROM bartleby.drawers WHERE place = ANY($1::int[]))',
  anywhere: `WITH RECURSIVE held (drawer) AS (
      SELECT (SELECT min(drawer) FROM bartleby.letters)
      UNION ALL
      SELECT (SELECT min(drawer) FROM bartleby.letters WHERE letters.drawer > held.drawer) FROM held WHERE held.drawer IS NOT NULL
    ), ${filed('id = ANY(ARRAY(SELECT drawer FROM held))')}`,
  ofPlaces: `WITH RECURSIVE held (place, drawer) AS (
      SELECT id, 0 FROM bartleby.places WHERE id = ANY($1::int[])
      UNION ALL
      SELECT place, (SELECT min(id) FROM bartleby.drawers WHERE drawers.place = held.place
        AND id >= (SELECT min(letters.drawer) FROM bartleby.letters WHERE letters.drawer > held.drawer))
      FROM held WHERE held.drawer IS NOT NULL
    ), ${filed('id = ANY(ARRAY(SELECT drawer FROM held))')}`,
} as const
type Way = keyof typeof HOLDING
export type Ways = Readonly<Record<Way, Statement>>

/** On drawers_by_signature. */
export const OF_SIGNATURES = `WITH ${filed('signature = ANY($2::int[])')}`

export const AMONG_FILED = 'SELECT id FROM filed'

/** All given must hold. */
export interface PlaceFilter {
  readonly source?: SourceName | null | undefined
  readonly engine?: string | null | undefined
  readonly originalQueue?: string | null | undefined
}

/** Parameters, NULL where any matches; null: no label has U+0000, and PostgreSQL refuses to look for it. */
export function placeValues({ source, engine, originalQueue }: PlaceFilter): (string | null)[] | null {
  const values = [source, engine, originalQueue].map((text) => text ?? null)
  return values.some((text) => text?.includes('\0')) ? null : values
}

/** One statement per way; `among` selects drawers where looking them up pays. */
export const eachWay = (
  declare: (way: Way, withFiled: string, among: { readonly among?: string }) => Statement,
): Ways => ({
  few: declare('few', HOLDING.few, {}),
  anywhere: declare('anywhere', HOLDING.anywhere, { among: AMONG_FILED }),
  ofPlaces: declare('ofPlaces', HOLDING.ofPlaces, { among: AMONG_FILED }),
})

/** No more drawers than numbers in between. */
const readSpan = sql(
  'drawers.span',
  'SELECT (SELECT max(id) FROM bartleby.drawers) - (SELECT min(id) FROM bartleby.drawers) + 1 AS numbers',
)
const FEW = 1_000
/** Places asked about one by one; each may leap to every drawer with letters. */
const MOST_LEAPT = 10

/** Reads drawers with letters at the given places, by the shortest way. */
export async function readHolding<Row>(
  session: Session,
  ways: Ways,
  { source, engine, originalQueue }: PlaceFilter,
  placesOf: Promise<readonly number[]>,
  ...values: readonly Value[]
): Promise<Row[]> {
  const [places, [span]] = await Promise.all([placesOf, session.rows<{ numbers: Integer | null }>(readSpan)])
  if (places.length === 0) return []
  const isAnywhere = places.length > MOST_LEAPT || (source ?? engine ?? originalQueue) == null
  const leaping = isAnywhere ? ways.anywhere : ways.ofPlaces
  return session.rows<Row>(Number(span?.numbers ?? 0) <= FEW ? ways.few : leaping, places, ...values)
}

/** One more step each tells whether they hold letters. */
const holdingDrawers = eachWay((way, withFiled) =>
  sql(
    `drawers.holding.${way}`,
    way === 'few'
      ? `${withFiled} SELECT id FROM filed`
      : `${withFiled} SELECT id FROM filed WHERE (SELECT letters.id FROM bartleby.letters WHERE letters.drawer = filed.id
       ORDER BY letters.drawer, status, last_failure_at, letters.id LIMIT 1) IS NOT NULL`,
  ),
)

/** Drawers of a signature, or those that hold letters. */
export async function findDrawers(
  session: Session,
  filter: PlaceFilter & { readonly signature?: string | null | undefined },
): Promise<number[]> {
  const { signature } = filter
  const values = placeValues(filter)
  if (values === null || signature?.includes('\0')) return []
  const places = session.rows<Numbered>(matchingPlaces, ...values).then(numbersOf)
  return numbersOf(
    signature == null
      ? await readHolding<Numbered>(session, holdingDrawers, filter, places)
      : await session.rows<Numbered>(drawersOfSignature, await places, signature),
  )
}

interface Numbered {
  readonly id: Integer
}

const numbersOf = (rows: readonly Numbered[]): number[] => rows.map(({ id }) => Number(id))

export interface PlaceLabel {
  readonly number: number
  readonly source: SourceName
  readonly engine: string
  /** '' when there is none. */
  readonly queue: string
}

export interface Drawer extends PlaceLabel {
  readonly place: number
  readonly fingerprint: string
}

const DRAWER = `SELECT id, source, engine, queue, place,
  (SELECT fingerprint FROM bartleby.signatures WHERE signatures.id = drawers.signature) AS fingerprint FROM bartleby.drawers`
/** Every drawer, for `verify`. */
const readAll = sql('drawers.labels', DRAWER)
/** By primary key. */
const readSome = sql('drawers.byNumber', `${DRAWER} WHERE id = ANY($1::int[])`)

/** Left out: every drawer. */
export async function readDrawers(session: Session, numbers?: readonly number[]): Promise<Drawer[]> {
  type Row = Omit<Drawer, 'number' | 'place'> & { readonly id: Integer; readonly place: Integer }
  const rows =
    numbers === undefined ? await session.rows<Row>(readAll) : await session.rows<Row>(readSome, numbers)
  return rows.map(({ id, place, ...label }) => ({ ...label, number: Number(id), place: Number(place) }))
}

const MOST_REMEMBERED = 50_000

/** Labels that a server has read: they never change, and no number is given twice. Not for a transaction that may make one. */
export class DrawerLabels {
  #known = new Map<number, Drawer>()

  /** By source, engine, queue and signature; drawers that are gone are left out. */
  async of(session: Session, numbers: readonly number[]): Promise<Drawer[]> {
    const unknown = numbers.filter((number) => !this.#known.has(number))
    const known = numbers.flatMap((number) => this.#known.get(number) ?? [])
    const read = unknown.length === 0 ? [] : await readDrawers(session, unknown)
    if (this.#known.size + read.length > MOST_REMEMBERED && read.length > 0) this.#known = new Map()
    for (const drawer of read.slice(0, MOST_REMEMBERED)) this.#known.set(drawer.number, drawer)
    return [...known, ...read].sort(byLabel)
  }
}

function byLabel(a: Drawer, b: Drawer): number {
  return (
    compare(a.source, b.source) ||
    compare(a.engine, b.engine) ||
    compare(a.queue, b.queue) ||
    compare(a.fingerprint, b.fingerprint)
  )
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
