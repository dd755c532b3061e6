/**
 * Drawers: the combinations of source, engine, queue and signature that letters are filed under, each known by a small number; and
 * places, the combinations without the signature. Places stay. A drawer that holds nothing goes after a while (`empty-drawers.ts`), and
 * its number is never given again: so every server remembers those it has seen, and whoever counts into one finds out whether it is
 * still there.
 */
import type { Instant } from '../../core/clock.ts'
import type { Signature } from '../../core/signature.ts'
import { SeriesNumbers } from '../../history/record.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../store/database.ts'
import { at, integer, rowShape, text } from '../../store/row.ts'
import { CaptureTimes } from '../capture-times.ts'
import type { SourceName } from '../kinds.ts'
import type { OfficeWork } from '../work.ts'

/** What a server remembers for captures: the numbers that every one looks up, and the times that were given. */
export interface Registers {
  readonly drawers: Drawers
  readonly series: SeriesNumbers
  readonly times: CaptureTimes
}

/** Those of a server that begins. */
export const newRegisters = (): Registers => ({
  drawers: new Drawers(),
  series: new SeriesNumbers(),
  times: new CaptureTimes(),
})

interface DrawerLabel {
  readonly source: SourceName
  readonly engine: string
  /** The queue that the letters came from; '' when there is none. */
  readonly queue: string
  readonly signature: Signature
  /** When the failure happened for which the drawer is opened. */
  readonly failedAt: Instant
}

const FILED = rowShape({ id: integer, errorClass: text, title: text, firstSeenAt: at })
/** One row by its unique fingerprint. */
const findSignature = sql(
  'signatures.read',
  `SELECT ${FILED.columns} FROM bartleby.signatures WHERE fingerprint = $1`,
  { bigints: true },
)
/** The same, where it has a drawer: one step into drawers_by_signature more. */
const findFiled = sql(
  'signatures.readFiled',
  `SELECT id FROM bartleby.signatures WHERE fingerprint = $1
   AND EXISTS (SELECT 1 FROM bartleby.drawers WHERE signature = signatures.id)`,
)
const insertSignature = sql(
  'signatures.insert',
  `INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at) VALUES ($1, $2, $3, $4)
   ON CONFLICT (fingerprint) DO NOTHING RETURNING id`,
)
/** Signatures that have a drawer, at most $1: one step into drawers_by_signature for each. */
const countSignatures = sql(
  'signatures.inUse',
  `WITH RECURSIVE used (signature) AS (
     SELECT (SELECT min(signature) FROM bartleby.drawers)
     UNION ALL
     SELECT (SELECT min(signature) FROM bartleby.drawers WHERE signature > used.signature) FROM used WHERE signature IS NOT NULL
   )
   SELECT count(signature) AS id FROM (SELECT signature FROM used LIMIT $1) AS counted`,
)

/** One row by its unique label. */
const LABEL = 'source = $1 AND engine = $2 AND queue = $3'
const readDrawer = sql('drawers.read', `SELECT id FROM bartleby.drawers WHERE ${LABEL} AND signature = $4`)
const insertPlace = sql(
  'places.insert',
  `INSERT INTO bartleby.places (source, engine, queue) VALUES ($1, $2, $3)
   ON CONFLICT (source, engine, queue) DO NOTHING`,
)
const insertDrawer = sql(
  'drawers.insert',
  `INSERT INTO bartleby.drawers (source, engine, queue, signature, place)
   VALUES ($1, $2, $3, $4, (SELECT id FROM bartleby.places WHERE ${LABEL}))
   ON CONFLICT (source, engine, queue, signature) DO NOTHING RETURNING id`,
)

/**
 * Errors that differ in words, not in numbers or ids, would make a group each and counts without end. From here on,
 * new groups are filed under one that says so.
 */
const MAX_SIGNATURES = 20_000
const TOO_MANY: Signature = {
  fingerprint: '0-overflow',
  errorClass: '',
  title: 'one of too many different errors to group',
}
/** They are counted so often, at most; what this server adds meanwhile it knows. */
const COUNT_EVERY_US = 60_000_000n

/** How many more signatures may be told apart, as this server knows it. */
interface Room {
  readonly countedAt: Instant
  left: number
}

/** Remembered drawers of one server. */
const MAX_REMEMBERED = 50_000

export class Drawers {
  readonly #known = new Map<string, number>()
  /** Of those that this server has filed under. */
  readonly #fingerprints = new Map<number, string>()
  #room: Room | undefined
  readonly #counting = new WeakMap<Session, Promise<Room>>()

  /** The number of the drawer with this label; it is made when it is new. */
  async numberOf(work: OfficeWork, label: DrawerLabel): Promise<number> {
    const { source, engine, queue, signature } = label
    const key = JSON.stringify([source, engine, queue, signature.fingerprint])
    // A transaction that is run again may have met a drawer that was removed.
    const known = work.tx.isRerun === true ? undefined : this.#known.get(key)
    if (known !== undefined) return known
    const filed = await this.#signatureNumber(work, label)
    const values = [source, engine, queue, filed.number]
    const number =
      (await firstId(work.tx, readDrawer, values)) ??
      (await this.#insert(work.tx, values.slice(0, 3), values))
    this.#fingerprints.set(number, filed.fingerprint)
    // Only after the commit: a drawer of a transaction that was rolled back does not exist.
    work.afterCommit(() => {
      if (this.#known.size >= MAX_REMEMBERED) {
        this.#known.clear()
        this.#fingerprints.clear()
      }
      this.#known.set(key, number)
      this.#fingerprints.set(number, filed.fingerprint)
    })
    return number
  }

  /** The signature of a drawer whose number was asked for in this transaction; undefined when it is forgotten by now. */
  fingerprintOf(number: number): string | undefined {
    return this.#fingerprints.get(number)
  }

  async #insert(tx: Session, place: readonly Value[], values: readonly Value[]): Promise<number> {
    await tx.run(insertPlace, ...place)
    return insertOrRead(tx, insertDrawer, values, readDrawer, values)
  }

  /** One that has no drawer anywhere, new or known, is told apart only while there is room. */
  async #signatureNumber(
    work: OfficeWork,
    { signature, failedAt }: DrawerLabel,
  ): Promise<{ readonly number: number; readonly fingerprint: string }> {
    const known = await firstId(work.tx, findFiled, [signature.fingerprint])
    if (known !== null) return { number: known, fingerprint: signature.fingerprint }
    const { fingerprint, errorClass, title } = (await this.#hasRoom(work)) ? signature : TOO_MANY
    const values = [fingerprint, errorClass, title, failedAt]
    const number = await insertOrRead(work.tx, insertSignature, values, findSignature, [fingerprint])
    return { number, fingerprint }
  }

  /** Whether one more signature may be told apart from the others. Nearly: other servers make some too. */
  async #hasRoom({ tx, now }: OfficeWork): Promise<boolean> {
    const counted = this.#room
    const isFresh = counted !== undefined && now <= counted.countedAt + COUNT_EVERY_US
    const room = isFresh ? counted : await this.#count(tx, now)
    return room.left-- > 0
  }

  /**
   * A count that all who ask in one transaction share. No other transaction waits for it: its statement may stand behind one that waits
   * for a row of theirs.
   */
  #count(tx: Session, now: Instant): Promise<Room> {
    const asked = this.#counting.get(tx)
    if (asked !== undefined) return asked
    const counting = firstId(tx, countSignatures, [MAX_SIGNATURES])
      .then((found) => {
        this.#room = { countedAt: now, left: MAX_SIGNATURES - (found ?? 0) }
        return this.#room
      })
      .finally(() => this.#counting.delete(tx))
    this.#counting.set(tx, counting)
    return counting
  }
}

async function firstId(tx: Session, statement: Statement, values: readonly Value[]): Promise<number | null> {
  const [row] = await tx.rows<{ id: Integer }>(statement, ...values)
  return row === undefined ? null : Number(row.id)
}

/** Of two that insert the same at once, the second waits for the first and reads its row. */
async function insertOrRead(
  tx: Session,
  insert: Statement,
  inserted: readonly Value[],
  read: Statement,
  asked: readonly Value[],
): Promise<number> {
  const id = (await firstId(tx, insert, inserted)) ?? (await firstId(tx, read, asked))
  if (id === null) throw new Error('a row that was just inserted is not there')
  return id
}

/** A signature that was ever filed under, also when its letters and drawers are gone. */
export interface FiledSignature extends Signature {
  readonly number: number
  readonly firstSeenAt: Instant
}

/** The signature with this fingerprint; null when there never was a letter of it. */
export async function readSignature(session: Session, fingerprint: string): Promise<FiledSignature | null> {
  // PostgreSQL would refuse to look for U+0000.
  if (fingerprint.includes('\0')) return null
  const [row] = await session.rows<object>(findSignature, fingerprint)
  if (row === undefined) return null
  const { id, ...signature } = FILED.read(row)
  return { number: id, fingerprint, ...signature }
}

/** Numbers of the places that match; places are few. $1 to $3 are NULL where any matches. */
const matchingPlaces = sql(
  'places.matching',
  `SELECT id FROM bartleby.places
   WHERE ($1::text IS NULL OR source = $1) AND ($2::text IS NULL OR engine = $2) AND ($3::text IS NULL OR queue = $3)`,
)
/** The drawers of a signature at these places: drawers_by_signature. */
const drawersOfSignature = sql(
  'drawers.ofSignature',
  `SELECT id FROM bartleby.drawers
   WHERE signature = (SELECT id FROM bartleby.signatures WHERE fingerprint = $2) AND place = ANY($1::int[])`,
)

/** Drawers that statements begin with: each by primary key, so that what joins them need not read all there are. */
const filed = (which: string): string =>
  `filed AS MATERIALIZED (SELECT * FROM bartleby.drawers WHERE ${which} AND place = ANY($1::int[]))`

/**
 * Those of places ($1) that hold letters, and a few that hold none: `filed`. Cost: what holds letters, not what ever existed.
 *
 * Where there are few drawers: all of them, which is much less than a step for each. Of any place: a step into letters_in_drawer for
 * each. Of few places: from one drawer of a place to the next drawer that holds letters, wherever that is, and on to the next of the
 * place (drawers_by_place). Empty drawers are leapt over, and so are those of other places.
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

/** Those of signatures ($2) at places ($1), by drawers_by_signature. */
export const OF_SIGNATURES = `WITH ${filed('signature = ANY($2::int[])')}`

/** A statement for each way to those that hold letters; `among` has their numbers where it pays to look them up. */
export const eachWay = (
  declare: (way: Way, withFiled: string, among: { readonly among?: string }) => Statement,
): Readonly<Record<Way, Statement>> => ({
  few: declare('few', HOLDING.few, {}),
  anywhere: declare('anywhere', HOLDING.anywhere, { among: AMONG_FILED }),
  ofPlaces: declare('ofPlaces', HOLDING.ofPlaces, { among: AMONG_FILED }),
})

/** The numbers of those that a statement begins with. */
export const AMONG_FILED = 'SELECT id FROM filed'

/** Which places are asked for; all parts given must hold. */
export interface PlaceFilter {
  readonly source?: SourceName | null | undefined
  readonly engine?: string | null | undefined
  readonly originalQueue?: string | null | undefined
}

/** Places that are asked about one by one; each may leap onto all drawers that hold letters. */
const MOST_LEAPT = 10
/** Drawers that are read together, empty or not. */
const FEW = 1_000

/** From the first number to the last: there are no more drawers than that. */
const readSpan = sql(
  'drawers.span',
  'SELECT (SELECT max(id) FROM bartleby.drawers) - (SELECT min(id) FROM bartleby.drawers) + 1 AS numbers',
)

/** Whether few drawers exist, as far as that is quickly told. */
export async function areDrawersFew(session: Session): Promise<boolean> {
  const [row] = await session.rows<{ numbers: Integer | null }>(readSpan)
  return Number(row?.numbers ?? 0) <= FEW
}

/** The shortest way to the drawers of these places, which are those that match. */
export function wayTo(
  { source, engine, originalQueue }: PlaceFilter,
  places: readonly number[],
  areFew: boolean,
): Way {
  if (areFew) return 'few'
  return places.length > MOST_LEAPT || (source ?? engine ?? originalQueue) == null ? 'anywhere' : 'ofPlaces'
}

/** Those that do hold letters, by one more step each; where there are few, all of them. */
const holdingDrawers = eachWay((way, withFiled) =>
  sql(
    `drawers.holding.${way}`,
    way === 'few'
      ? `${withFiled} SELECT id FROM filed`
      : `${withFiled} SELECT id FROM filed WHERE (SELECT letters.id FROM bartleby.letters WHERE letters.drawer = filed.id
       ORDER BY letters.drawer, status, last_failure_at, letters.id LIMIT 1) IS NOT NULL`,
  ),
)

/** The numbers of the drawers of a signature, or of those that hold letters; all parts given must hold. */
export async function findDrawers(
  session: Session,
  filter: PlaceFilter & { readonly signature?: string | null | undefined },
): Promise<number[]> {
  const { source, engine, originalQueue, signature } = filter
  const values = [source, engine, originalQueue].map((text) => text ?? null)
  // No label has U+0000, and PostgreSQL would refuse to look for it.
  if ([...values, signature].some((text) => text?.includes('\0'))) return []
  const [found, areFew] = await Promise.all([
    session.rows<{ id: Integer }>(matchingPlaces, ...values),
    areDrawersFew(session),
  ])
  const places = numbersOf(found)
  return numbersOf(
    signature == null
      ? await session.rows<{ id: Integer }>(holdingDrawers[wayTo(filter, places, areFew)], places)
      : await session.rows<{ id: Integer }>(drawersOfSignature, places, signature),
  )
}

const numbersOf = (rows: readonly { readonly id: Integer }[]): number[] => rows.map(({ id }) => Number(id))

/** A source, engine and queue, as lists and counts show them. */
export interface PlaceLabel {
  readonly number: number
  readonly source: SourceName
  readonly engine: string
  /** '' when there is none. */
  readonly queue: string
}

/** A drawer with its label. */
export interface Drawer extends Omit<PlaceLabel, 'number'> {
  readonly number: number
  readonly place: number
  readonly fingerprint: string
}

const DRAWER = `SELECT id, source, engine, queue, place,
  (SELECT fingerprint FROM bartleby.signatures WHERE signatures.id = drawers.signature) AS fingerprint FROM bartleby.drawers`
/** All drawers, and the signature of each by primary key: for those who check everything. */
const readAll = sql('drawers.labels', DRAWER)
/** Drawers by primary key. */
const readSome = sql('drawers.byNumber', `${DRAWER} WHERE id = ANY($1::int[])`)

/** Drawers by their numbers; left out: every one there is. */
export async function readDrawers(session: Session, numbers?: readonly number[]): Promise<Drawer[]> {
  type Row = Omit<Drawer, 'number' | 'place'> & { readonly id: Integer; readonly place: Integer }
  const rows =
    numbers === undefined ? await session.rows<Row>(readAll) : await session.rows<Row>(readSome, numbers)
  return rows.map(({ id, place, ...label }) => ({ ...label, number: Number(id), place: Number(place) }))
}

/**
 * Labels of drawers that a server has read: they never change, and no number is given twice once it was seen by others. Not for a
 * transaction that may have made one.
 */
export class DrawerLabels {
  #known = new Map<number, Drawer>()

  /** The drawers with these numbers, by source, engine, queue and signature; those that are gone are left out. */
  async of(session: Session, numbers: readonly number[]): Promise<Drawer[]> {
    const unknown = numbers.filter((number) => !this.#known.has(number))
    const known = numbers.flatMap((number) => this.#known.get(number) ?? [])
    const read = unknown.length === 0 ? [] : await readDrawers(session, unknown)
    if (this.#known.size + read.length > MAX_REMEMBERED && read.length > 0) this.#known = new Map()
    for (const drawer of read.slice(0, MAX_REMEMBERED)) this.#known.set(drawer.number, drawer)
    return [...known, ...read].sort(byLabel)
  }
}

/** By source, engine, queue and signature. */
function byLabel(a: Drawer, b: Drawer): number {
  return (
    compare(a.source, b.source) ||
    compare(a.engine, b.engine) ||
    compare(a.queue, b.queue) ||
    compare(a.fingerprint, b.fingerprint)
  )
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
