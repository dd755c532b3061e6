/**
 * The books: every place with its counts. What the office tells in numbers is added up from them, so that all of it agrees and nothing
 * ever counts letters. Cost: a row per place and status, whatever the number of letters and of different errors. Drawers, which tell
 * errors apart, are read only where signatures are shown, and only those of places that hold letters.
 */
import { type Instant, instant } from '../core/clock.ts'
import type { Signature } from '../core/signature.ts'
import type { Integer, Session, Statement } from '../db/database.ts'
import { type ActivityName, EVER } from './activity.ts'
import { letterCounter } from './counts.ts'
import { type PlaceLabel, readSignature } from './drawers.ts'
import { type LetterStatus, type SourceName, STATUS, STATUSES } from './letter.ts'

/** Letters of each status. */
export type StatusCounts = Readonly<Record<LetterStatus, number>>

/** What is counted of a place or a drawer. */
interface Sums {
  readonly letters: StatusCounts
  /** Sent back, and neither confirmed nor back yet; they are among the resolved ones. */
  readonly unconfirmed: number
  /** How often each was ever done. */
  readonly ever: Readonly<Record<ActivityName, number>>
  /** The newest failure that was ever filed there. */
  readonly lastSeenAt: Instant
}

/** A place and what it holds; letters that were ever captured there are those that arrived. */
export interface Account extends Sums {
  readonly place: PlaceLabel
  /** Letters that were removed from it when their time was over, or erased. */
  readonly removed: number
}

/** A drawer and what it holds. Captures and removals are counted at the place alone. */
export interface DrawerAccount extends Sums {
  readonly drawer: number
  readonly place: PlaceLabel
  /** The number of its signature. */
  readonly group: number
  readonly signature: Signature
}

/** Which places are asked for; all parts given must hold. */
export interface PlaceFilter {
  readonly source?: SourceName | null | undefined
  readonly engine?: string | null | undefined
  readonly originalQueue?: string | null | undefined
}

/** Which letters are asked for. */
export interface AccountFilter extends PlaceFilter {
  /** A fingerprint. */
  readonly signature?: string | null | undefined
}

const COUNTED = [
  ...Object.values(STATUS),
  ...Object.values(EVER).filter((count) => count > STATUS.unconfirmed),
]

/** A column for each status, so that a place is one row. */
const SUMS = `${COUNTED.map((status) => `sum(CASE WHEN status = ${status} THEN letters ELSE 0 END) AS s${status}`).join(', ')},
  max(last_seen_at) AS last_seen_at`

type SumsRow = Readonly<Record<`s${number}` | 'last_seen_at', Integer>>

type PlaceRow = SumsRow & {
  readonly place: Integer
  readonly source: SourceName
  readonly engine: string
  readonly queue: string
}

function sumsOf(row: SumsRow): Sums {
  const count = (status: number): number => Number(row[`s${status}`] ?? 0)
  return {
    letters: {
      Pending: count(STATUS.Pending),
      Resolved: count(STATUS.Resolved),
      Expired: count(STATUS.Expired),
    },
    unconfirmed: count(STATUS.unconfirmed),
    ever: {
      arrived: count(EVER.arrived),
      retried: count(EVER.retried),
      confirmed: count(EVER.confirmed),
      returned: count(EVER.returned),
      discarded: count(EVER.discarded),
      expired: count(EVER.expired),
    },
    lastSeenAt: instant(BigInt(row.last_seen_at)),
  }
}

const placeOf = ({ place, source, engine, queue }: PlaceRow): PlaceLabel => ({
  number: Number(place),
  source,
  engine,
  queue,
})

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

/** The accounts of the places that match, by source, engine and queue. */
export async function readAccounts(session: Session, filter: PlaceFilter = {}): Promise<Account[]> {
  const asked = [filter.source, filter.engine, filter.originalQueue].map((text) => text ?? null)
  // No label has U+0000, and PostgreSQL would refuse to look for it.
  if (asked.some((text) => text?.includes('\0'))) return []
  const rows = await session.rows<PlaceRow>(readPlaces, ...asked)
  return rows.map((row) => ({
    ...sumsOf(row),
    place: placeOf(row),
    removed: Number(row[`s${STATUS.removed}`] ?? 0),
  }))
}

/** By primary key, after a look at the index of drawers that `which` is. */
const readingDrawers = (name: string, which: string): Statement =>
  letterCounter.read(
    name,
    'drawers',
    (counted) => `
      SELECT drawers.place, source, engine, queue, drawers.signature, fingerprint, error_class, title, counts.*
      FROM (SELECT drawer, ${SUMS} FROM ${counted} GROUP BY drawer) AS counts
      JOIN bartleby.drawers ON drawers.id = counts.drawer
      JOIN bartleby.signatures ON signatures.id = drawers.signature
      ORDER BY source, engine, queue, fingerprint`,
    { where: `drawer IN (SELECT id FROM bartleby.drawers WHERE ${which})`, bigints: true },
  )

const readOfPlaces = readingDrawers('letterCounts.ofPlaces', 'place = ANY($1::int[])')
const readOfSignatures = readingDrawers(
  'letterCounts.ofSignatures',
  'signature = ANY($2::int[]) AND place = ANY($1::int[])',
)

/** The accounts of drawers of these places; of some signatures only, if their numbers are given. */
export async function readDrawerAccounts(
  session: Session,
  places: readonly number[],
  signatures?: readonly number[],
): Promise<DrawerAccount[]> {
  if (places.length === 0 || signatures?.length === 0) return []
  type Row = PlaceRow &
    Readonly<Record<'drawer' | 'signature', Integer>> &
    Readonly<Record<'fingerprint' | 'error_class' | 'title', string>>
  const rows =
    signatures === undefined
      ? await session.rows<Row>(readOfPlaces, places)
      : await session.rows<Row>(readOfSignatures, places, signatures)
  return rows.map((row) => ({
    ...sumsOf(row),
    drawer: Number(row.drawer),
    place: placeOf(row),
    group: Number(row.signature),
    signature: { fingerprint: row.fingerprint, errorClass: row.error_class, title: row.title },
  }))
}

/** The accounts of what matches: of drawers where signatures are to be told apart or one is asked for, else of places. */
export async function readFiled(
  session: Session,
  filter: AccountFilter,
  bySignature: boolean,
): Promise<readonly (Account | DrawerAccount)[]> {
  const accounts = await readAccounts(session, filter)
  if (filter.signature == null) return bySignature ? readDrawerAccounts(session, holding(accounts)) : accounts
  const signature = await readSignature(session, filter.signature)
  return signature === null ? [] : readDrawerAccounts(session, holding(accounts), [signature.number])
}

/** The numbers of the places that hold letters. */
export const holding = (accounts: readonly Account[]): readonly number[] =>
  accounts.filter(({ letters }) => lettersIn(letters) > 0).map(({ place }) => place.number)

/** Where the office stands: letters of each status, all that were ever captured, and those of which nothing was heard. */
export interface Standing extends StatusCounts {
  /** All that were ever captured. */
  readonly captured: number
  /** Resolved by a retry, and neither confirmed nor back yet. */
  readonly unconfirmed: number
}

/** The sums of accounts. */
export function standingOf(accounts: readonly Account[]): Standing {
  const sum = (of: (account: Account) => number): number => accounts.reduce((sum, each) => sum + of(each), 0)
  return {
    Pending: sum(({ letters }) => letters.Pending),
    Resolved: sum(({ letters }) => letters.Resolved),
    Expired: sum(({ letters }) => letters.Expired),
    captured: sum(({ ever }) => ever.arrived),
    unconfirmed: sum(({ unconfirmed }) => unconfirmed),
  }
}

/** Letters of any status. */
export const lettersIn = (counts: StatusCounts): number =>
  STATUSES.reduce((sum, status) => sum + counts[status], 0)

/** The queue as everybody sees it; null when there is none. */
export const queueOf = ({ queue }: PlaceLabel): string | null => (queue === '' ? null : queue)
