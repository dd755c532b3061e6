/**
 * The books: every place with its counts. What the office tells in numbers is added up from them, so that all of it agrees and nothing
 * ever counts letters. Cost: a row per place and status, whatever the number of letters and of different errors. Drawers, which tell
 * errors apart, are read only where signatures are shown, and only those that hold letters.
 */
import { type Instant, instant } from '../core/clock.ts'
import type { Signature } from '../core/signature.ts'
import type { ReadOptions } from '../db/counter.ts'
import { type Integer, type Session, type Statement, sql } from '../db/database.ts'
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
const sumsOfStatuses = (statuses: readonly number[]): string =>
  statuses
    .map((status) => `sum(CASE WHEN status = ${status} THEN letters ELSE 0 END) AS s${status}`)
    .join(', ')
const SUMS = `${sumsOfStatuses(COUNTED)}, max(last_seen_at) AS last_seen_at`

/** The statuses of letters, as they are stored. */
const LETTERS = { Pending: STATUS.Pending, Resolved: STATUS.Resolved, Expired: STATUS.Expired }

const lettersOf = (row: SumsRow): StatusCounts => ({
  Pending: Number(row[`s${LETTERS.Pending}`] ?? 0),
  Resolved: Number(row[`s${LETTERS.Resolved}`] ?? 0),
  Expired: Number(row[`s${LETTERS.Expired}`] ?? 0),
})

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
    letters: lettersOf(row),
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

/**
 * The drawers that hold letters, by one step into letters_in_drawer for each: in one moment of the store these are the drawers whose
 * counts are not zero, and those that are empty by now are not even looked at.
 */
export const HOLDING = `WITH RECURSIVE held (drawer) AS (
      SELECT (SELECT min(drawer) FROM bartleby.letters)
      UNION ALL
      SELECT (SELECT min(drawer) FROM bartleby.letters WHERE letters.drawer > held.drawer) FROM held WHERE held.drawer IS NOT NULL
    )`
/** Counts of letters; those of none add nothing, neither as totals nor as what is not folded yet. */
export const HELD = `status <= ${STATUS.Expired} AND letters <> 0`
export const AMONG_HOLDING = 'SELECT drawer FROM held'

/** Counts by primary key, of the drawers that `where` is about. */
const readingDrawers = (
  name: string,
  columns: string,
  sums: string,
  options: ReadOptions,
  head = '',
): Statement =>
  letterCounter.read(
    name,
    'drawers',
    (counted) => `${head}
      SELECT drawers.place, source, engine, queue, fingerprint, ${columns}counts.*
      FROM (SELECT drawer, ${sums} FROM ${counted} GROUP BY drawer) AS counts
      JOIN bartleby.drawers ON drawers.id = counts.drawer
      JOIN bartleby.signatures ON signatures.id = drawers.signature
      ORDER BY source, engine, queue, fingerprint`,
    { ...options, bigints: true },
  )

const readOfSignatures = readingDrawers(
  'letterCounts.ofSignatures',
  'drawers.signature, error_class, title, ',
  SUMS,
  {
    where:
      'drawer IN (SELECT id FROM bartleby.drawers WHERE signature = ANY($2::int[]) AND place = ANY($1::int[]))',
  },
)
/** Nothing but letters: whoever reads these reads hundreds of them. */
const readingHolding = (name: string, options: ReadOptions, head?: string): Statement =>
  readingDrawers(name, '', sumsOfStatuses(Object.values(LETTERS)), options, head)
const readHolding = readingHolding('letterCounts.holding', { where: HELD, among: AMONG_HOLDING }, HOLDING)
/** All totals of all drawers: for where these are few. */
const readHeld = readingHolding('letterCounts.held', { where: HELD })
/** A step for each drawer of the places, because others may hold far more: the empty ones are passed over by the store. */
const readHoldingOfPlaces = readingHolding('letterCounts.holdingOfPlaces', {
  where: `${HELD} AND drawer IN (SELECT id FROM bartleby.drawers WHERE place = ANY($1::int[]))`,
})

/** Drawers, at most $1. */
const countDrawers = sql(
  'drawers.many',
  'SELECT count(*) AS drawers FROM (SELECT 1 AS one FROM bartleby.drawers LIMIT $1) AS counted',
)
/** As many drawers as are read, empty or not, in less time than those that hold letters are found from the letters. */
const FEW_DRAWERS = 500

/** Whether drawers are found from the letters: those of the whole office, where many may be empty. */
export async function areFoundByLetters(session: Session, filter: PlaceFilter): Promise<boolean> {
  if (!isOfAll(filter)) return false
  const [row] = await session.rows<{ drawers: Integer }>(countDrawers, FEW_DRAWERS + 1)
  return Number(row?.drawers ?? 0) > FEW_DRAWERS
}

type HoldingRow = PlaceRow & { readonly drawer: Integer; readonly fingerprint: string }

type DrawerRow = HoldingRow &
  Readonly<{ signature: Integer }> &
  Readonly<Record<'error_class' | 'title', string>>

const accountOf = (row: DrawerRow): DrawerAccount => ({
  ...sumsOf(row),
  drawer: Number(row.drawer),
  place: placeOf(row),
  group: Number(row.signature),
  signature: { fingerprint: row.fingerprint, errorClass: row.error_class, title: row.title },
})

/** What a drawer holds at the moment, whatever it ever did. */
export interface HoldingDrawer extends Pick<DrawerAccount, 'drawer' | 'place' | 'letters'> {
  readonly fingerprint: string
}

/** The drawers that hold letters, of the places that match. */
export async function readHoldingDrawers(session: Session, filter: PlaceFilter): Promise<HoldingDrawer[]> {
  const rows = isOfAll(filter)
    ? await session.rows<HoldingRow>((await areFoundByLetters(session, filter)) ? readHolding : readHeld)
    : await session.rows<HoldingRow>(readHoldingOfPlaces, holding(await readAccounts(session, filter)))
  return rows.map((row) => ({
    drawer: Number(row.drawer),
    place: placeOf(row),
    fingerprint: row.fingerprint,
    letters: lettersOf(row),
  }))
}

/** Whether every place matches. */
const isOfAll = ({ source, engine, originalQueue }: PlaceFilter): boolean =>
  source == null && engine == null && originalQueue == null

/** The accounts of the drawers of these signatures at these places. */
export async function readDrawerAccounts(
  session: Session,
  places: readonly number[],
  signatures: readonly number[],
): Promise<DrawerAccount[]> {
  if (places.length === 0 || signatures.length === 0) return []
  return (await session.rows<DrawerRow>(readOfSignatures, places, signatures)).map(accountOf)
}

/** The accounts of what matches: of drawers where a signature is asked for, else of places. */
export async function readFiled(
  session: Session,
  filter: AccountFilter,
): Promise<readonly (Account | DrawerAccount)[]> {
  const accounts = await readAccounts(session, filter)
  if (filter.signature == null) return accounts
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
