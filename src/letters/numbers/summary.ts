/**
 * Counts added up for display, so that all numbers agree and nothing counts letters. The cost is a row per place and status. Drawers are
 * read only where signatures are shown, and only those that hold letters.
 */

import { type Instant, instant } from '../../core/clock.ts'
import type { Integer, Session } from '../../store/database.ts'
import { type LetterStatus, STATUS, STATUSES } from '../letter.ts'
import { EVER, letterCounter, ofEachActivity } from './counts.ts'
import { readSignature } from './drawers.ts'
import {
  AMONG_FILED,
  type DrawerLabels,
  eachWay,
  OF_SIGNATURES,
  type PlaceFilter,
  type PlaceLabel,
  placeValues,
  readHolding,
} from './find-drawers.ts'
import { type ActivityName, COUNT_KEYS, type CountKey } from './shapes.ts'

export type StatusCounts = Readonly<Record<LetterStatus, number>>

interface Sums {
  readonly letters: StatusCounts
  /** Sent back, neither confirmed nor returned; part of the resolved ones. */
  readonly unconfirmed: number
  /** Ever, by act. */
  readonly ever: Readonly<Record<ActivityName, number>>
  readonly lastSeenAt: Instant
}

export interface PlaceCounts extends Sums {
  readonly place: PlaceLabel
  /** By retention or erasure. */
  readonly removed: number
}

/** Captures and removals are counted at the place alone. */
export interface DrawerCounts extends Sums {
  readonly drawer: number
  readonly place: PlaceLabel
  readonly fingerprint: string
}

export interface CountFilter extends PlaceFilter {
  /** A fingerprint. */
  readonly signature?: string | null | undefined
}

const COUNTED = [
  ...Object.values(STATUS),
  ...Object.values(EVER).filter((count) => count > STATUS.unconfirmed),
]

/** One column per status, so that a place is one row. */
const sumsFor = (statuses: readonly number[]): string =>
  statuses
    .map((status) => `sum(CASE WHEN status = ${status} THEN letters ELSE 0 END) AS s${status}`)
    .join(', ')
const SUMS = `${sumsFor(COUNTED)}, max(last_seen_at) AS last_seen_at`

type SumsRow = Readonly<Record<`s${number}` | 'last_seen_at', Integer>>

type PlaceRow = SumsRow & Omit<PlaceLabel, 'number'> & { readonly place: Integer }

const lettersOf = (row: SumsRow): StatusCounts => ({
  Pending: Number(row[`s${STATUS.Pending}`] ?? 0),
  Resolved: Number(row[`s${STATUS.Resolved}`] ?? 0),
  Expired: Number(row[`s${STATUS.Expired}`] ?? 0),
})

function sumsOf(row: SumsRow): Sums {
  const count = (status: number): number => Number(row[`s${status}`] ?? 0)
  return {
    letters: lettersOf(row),
    unconfirmed: count(STATUS.unconfirmed),
    ever: ofEachActivity((name) => count(EVER[name])),
    lastSeenAt: instant(BigInt(row.last_seen_at)),
  }
}

/** All totals of places, and the tail. Places are few; $1 to $3 are NULL where any matches. */
const readPlaces = letterCounter.read(
  'letterCounts.places',
  'places',
  (counted) => `
    SELECT source, engine, queue, counts.* FROM (SELECT place, ${SUMS} FROM ${counted} GROUP BY place) AS counts
    JOIN bartleby.places ON places.id = counts.place
    WHERE ($1::text IS NULL OR source = $1) AND ($2::text IS NULL OR engine = $2) AND ($3::text IS NULL OR queue = $3)
    ORDER BY source, engine, queue`,
  { bigints: true },
)

/** By source, engine and queue. */
export async function readPlaceCounts(session: Session, filter: PlaceFilter = {}): Promise<PlaceCounts[]> {
  const asked = placeValues(filter)
  const rows = asked === null ? [] : await session.rows<PlaceRow>(readPlaces, ...asked)
  return rows.map((row) => ({
    ...sumsOf(row),
    place: { number: Number(row.place), source: row.source, engine: row.engine, queue: row.queue },
    removed: Number(row[`s${STATUS.removed}`] ?? 0),
  }))
}

export const OF_LETTERS = `status <= ${STATUS.Expired} AND letters <> 0`
/** By primary key: there are more signatures than those of the drawers. */
export const WITH_SIGNATURE =
  'JOIN bartleby.signatures ON signatures.id = signature AND signatures.id = ANY(ARRAY(SELECT signature FROM filed))'

/** By primary key. No labels: PostgreSQL believes drawers to be few and would compare each with each. */
const readOfSignatures = letterCounter.read(
  'letterCounts.ofSignatures',
  'drawers',
  (counted) => `${OF_SIGNATURES} SELECT drawer, ${SUMS} FROM ${counted} GROUP BY drawer`,
  { among: AMONG_FILED, bigints: true },
)
const holdingDrawers = eachWay((way, withFiled, among) => {
  const which = among.among === undefined ? `WHERE drawer IN (${AMONG_FILED})` : ''
  const sums = sumsFor(STATUSES.map((name) => STATUS[name]))
  return letterCounter.read(
    `letterCounts.holding.${way}`,
    'drawers',
    (counted) => `${withFiled} SELECT drawer, ${sums} FROM ${counted} ${which} GROUP BY drawer`,
    { where: OF_LETTERS, ...among, bigints: true },
  )
})

type DrawerRow = SumsRow & { readonly drawer: Integer }

type HoldingDrawer = Pick<DrawerCounts, 'drawer' | 'letters'>

export async function readHoldingDrawers(session: Session, filter: PlaceFilter): Promise<HoldingDrawer[]> {
  const places = readPlaceCounts(session, filter).then(holding)
  const rows = await readHolding<DrawerRow>(session, holdingDrawers, filter, places)
  return rows.map((row) => ({ drawer: Number(row.drawer), letters: lettersOf(row) }))
}

export async function readDrawerCounts(
  session: Session,
  places: readonly number[],
  signatures: readonly number[],
  labels: DrawerLabels,
): Promise<DrawerCounts[]> {
  if (places.length === 0 || signatures.length === 0) return []
  const rows = await session.rows<DrawerRow>(readOfSignatures, places, signatures)
  const sums = new Map(rows.map((row) => [Number(row.drawer), sumsOf(row)]))
  const drawers = await labels.of(session, [...sums.keys()])
  return drawers.flatMap(({ number, fingerprint, ...label }) => {
    const counted = sums.get(number)
    return counted === undefined
      ? []
      : { ...counted, drawer: number, fingerprint, place: { ...label, number: label.place } }
  })
}

/** Of drawers where a signature is asked for, else of places. */
export async function readCounts(
  session: Session,
  filter: CountFilter,
  labels: DrawerLabels,
): Promise<readonly (PlaceCounts | DrawerCounts)[]> {
  const places = await readPlaceCounts(session, filter)
  if (filter.signature == null) return places
  const signature = await readSignature(session, filter.signature)
  return signature === null ? [] : readDrawerCounts(session, holding(places), [signature.number], labels)
}

export const holding = (places: readonly PlaceCounts[]): readonly number[] =>
  places.filter(({ letters }) => lettersIn(letters) > 0).map(({ place }) => place.number)

export interface Summary extends StatusCounts {
  /** Ever. */
  readonly captured: number
  /** Resolved by a retry, neither confirmed nor returned. */
  readonly unconfirmed: number
}

export function summaryOf(places: readonly PlaceCounts[]): Summary {
  const sum = (of: (counts: PlaceCounts) => number): number => places.reduce((sum, each) => sum + of(each), 0)
  return {
    Pending: sum(({ letters }) => letters.Pending),
    Resolved: sum(({ letters }) => letters.Resolved),
    Expired: sum(({ letters }) => letters.Expired),
    captured: sum(({ ever }) => ever.arrived),
    unconfirmed: sum(({ unconfirmed }) => unconfirmed),
  }
}

export const lettersIn = (counts: StatusCounts): number =>
  STATUSES.reduce((sum, status) => sum + counts[status], 0)

/** null when there is none. */
export const queueOf = ({ queue }: Pick<PlaceLabel, 'queue'>): string | null => (queue === '' ? null : queue)

/** A key not counted by is left out; no count is zero. */
type CountedLetters = { readonly count: number } & { [Key in CountKey]?: string | null }

export interface LetterCounts {
  readonly items: readonly CountedLetters[]
  readonly totals: StatusCounts
}

export async function countLetters(
  session: Session,
  filter: CountFilter & { readonly status?: LetterStatus | null },
  by: readonly CountKey[],
  labels: DrawerLabels,
): Promise<LetterCounts> {
  const keys = COUNT_KEYS.filter((key) => by.includes(key))
  const totals = { Pending: 0, Resolved: 0, Expired: 0 }
  const items: CountedLetters[] = []
  const ofDrawers = keys.includes('signature') && filter.signature == null
  const found = ofDrawers
    ? await readLabelled(session, filter, labels)
    : await readCounts(session, filter, labels)
  for (const counts of found) {
    for (const status of STATUSES) {
      const count = counts.letters[status]
      if (count === 0 || (filter.status != null && filter.status !== status)) continue
      totals[status] += count
      items.push(countedBy(keys, counts, status, count))
    }
  }
  // Already in the order of all keys, each once.
  return { items: keys.length === COUNT_KEYS.length ? items : addedUp(keys, items), totals }
}

type Labelled = Pick<DrawerCounts, 'letters' | 'place' | 'fingerprint'>

/** In the order of all keys. Counts first: a counted drawer exists. */
async function readLabelled(
  session: Session,
  filter: CountFilter,
  labels: DrawerLabels,
): Promise<readonly Labelled[]> {
  const held = await readHoldingDrawers(session, filter)
  const letters = new Map(held.map((each) => [each.drawer, each.letters]))
  const drawers = await labels.of(session, [...letters.keys()])
  return drawers.map((place) => ({
    place,
    fingerprint: place.fingerprint,
    letters: letters.get(place.number) ?? { Pending: 0, Resolved: 0, Expired: 0 },
  }))
}

function countedBy(
  keys: readonly CountKey[],
  counts: PlaceCounts | Labelled,
  status: LetterStatus,
  count: number,
): CountedLetters {
  const { source, engine } = counts.place
  const signature = 'fingerprint' in counts ? counts.fingerprint : null
  const all = { source, engine, originalQueue: queueOf(counts.place), signature, status }
  const item: CountedLetters = { count }
  for (const key of keys) item[key] = all[key]
  return item
}

/** One per set of values, in the order of the keys. */
function addedUp(keys: readonly CountKey[], items: readonly CountedLetters[]): CountedLetters[] {
  const groups = Map.groupBy(items, (item) => JSON.stringify(keys.map((key) => item[key])))
  return [...groups.values()]
    .map((same) => ({ ...same[0], count: same.reduce((sum, { count }) => sum + count, 0) }))
    .sort((a, b) => inOrder(keys, a, b))
}

/** Key by key: null first, statuses in the order of a letter's life. */
function inOrder(keys: readonly CountKey[], a: CountedLetters, b: CountedLetters): number {
  for (const key of keys) {
    const [one, other] = [a[key] ?? null, b[key] ?? null]
    if (one === other) continue
    if (one === null || other === null) return one === null ? -1 : 1
    if (key === 'status') return statusPlace(one) - statusPlace(other)
    return one < other ? -1 : 1
  }
  return 0
}

// Widened: any text may be looked for.
const statusPlace = (name: string): number => (STATUSES as readonly string[]).indexOf(name)
