/**
 * The books: every place with its counts. What the office tells in numbers is added up from them, so that all of it agrees and nothing
 * ever counts letters. Cost: a row per place and status, whatever the number of letters and of different errors. Drawers, which tell
 * errors apart, are read only where signatures are shown, and only those that hold letters.
 */
import { type Instant, instant } from '../../core/clock.ts'
import type { Integer, Session } from '../../store/database.ts'
import type { SourceName } from '../kinds.ts'
import { type LetterStatus, STATUS, STATUSES } from '../letter.ts'
import { type ActivityName, EVER, ofEachActivity } from './activity.ts'
import { letterCounter } from './counts.ts'
import {
  AMONG_FILED,
  areDrawersFew,
  type DrawerLabels,
  eachWay,
  OF_SIGNATURES,
  type PlaceFilter,
  type PlaceLabel,
  readSignature,
  wayTo,
} from './drawers.ts'

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
  /** Of its signature. */
  readonly fingerprint: string
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
const sumsFor = (statuses: readonly number[]): string =>
  statuses
    .map((status) => `sum(CASE WHEN status = ${status} THEN letters ELSE 0 END) AS s${status}`)
    .join(', ')
const SUMS = `${sumsFor(COUNTED)}, max(last_seen_at) AS last_seen_at`

type SumsRow = Readonly<Record<`s${number}` | 'last_seen_at', Integer>>

type PlaceRow = SumsRow & {
  readonly place: Integer
  readonly source: SourceName
  readonly engine: string
  readonly queue: string
}

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

/** Counts of letters; those of none add nothing, neither as totals nor as what is not folded yet. */
export const OF_LETTERS = `status <= ${STATUS.Expired} AND letters <> 0`
/** Signatures are more than those of the drawers that are asked for: each by primary key. */
export const WITH_SIGNATURE =
  'JOIN bartleby.signatures ON signatures.id = signature AND signatures.id = ANY(ARRAY(SELECT signature FROM filed))'

/** Counts by primary key, of the drawers that are filed. No labels: PostgreSQL would compare each with each, because it believes that they are few. */
const readOfSignatures = letterCounter.read(
  'letterCounts.ofSignatures',
  'drawers',
  (counted) => `${OF_SIGNATURES} SELECT drawer, ${SUMS} FROM ${counted} GROUP BY drawer`,
  { among: AMONG_FILED, bigints: true },
)
/** The same of those that hold letters. */
const readHolding = eachWay((way, withFiled, among) => {
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

/** What a drawer holds at the moment, whatever it ever did. */
type HoldingDrawer = Pick<DrawerAccount, 'drawer' | 'letters'>

/** The drawers that hold letters, of the places that match. */
export async function readHoldingDrawers(session: Session, filter: PlaceFilter): Promise<HoldingDrawer[]> {
  const [accounts, areFew] = await Promise.all([readAccounts(session, filter), areDrawersFew(session)])
  const places = holding(accounts)
  if (places.length === 0) return []
  const rows = await session.rows<DrawerRow>(readHolding[wayTo(filter, places, areFew)], places)
  return rows.map((row) => ({ drawer: Number(row.drawer), letters: lettersOf(row) }))
}

/** The accounts of the drawers of these signatures at these places, by source, engine, queue and signature. */
export async function readDrawerAccounts(
  session: Session,
  places: readonly number[],
  signatures: readonly number[],
  labels: DrawerLabels,
): Promise<DrawerAccount[]> {
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

/** The accounts of what matches: of drawers where a signature is asked for, else of places. */
export async function readFiled(
  session: Session,
  filter: AccountFilter,
  labels: DrawerLabels,
): Promise<readonly (Account | DrawerAccount)[]> {
  const accounts = await readAccounts(session, filter)
  if (filter.signature == null) return accounts
  const signature = await readSignature(session, filter.signature)
  return signature === null ? [] : readDrawerAccounts(session, holding(accounts), [signature.number], labels)
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
export const queueOf = ({ queue }: Pick<PlaceLabel, 'queue'>): string | null => (queue === '' ? null : queue)
