/**
 * Drawers: the combinations of source, engine, queue and signature that letters are filed under, each known by a
 * small number. There are few of them and they never change, so every server remembers those it has seen.
 */
import type { Instant } from '../core/clock.ts'
import type { Signature } from '../core/signature.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../db/database.ts'
import type { SeriesNumbers } from '../history/record.ts'
import type { SourceName } from './letter.ts'
import type { OfficeWork } from './work.ts'

/** The registers that every capture looks numbers up in. */
export interface Registers {
  readonly drawers: Drawers
  readonly series: SeriesNumbers
}

export interface DrawerLabel {
  readonly source: SourceName
  readonly engine: string
  /** The queue that the letters came from; '' when there is none. */
  readonly queue: string
  readonly signature: Signature
  /** When the failure happened for which the drawer is opened. */
  readonly failedAt: Instant
}

/** One row by its unique fingerprint. */
const readSignature = sql('signatures.read', 'SELECT id FROM bartleby.signatures WHERE fingerprint = $1')
const insertSignature = sql(
  'signatures.insert',
  `INSERT INTO bartleby.signatures (fingerprint, error_class, title, first_seen_at) VALUES ($1, $2, $3, $4)
   ON CONFLICT (fingerprint) DO NOTHING`,
)
/** How many there are, nearly: the highest number ever given. */
const readHighestSignature = sql(
  'signatures.highest',
  'SELECT id FROM bartleby.signatures ORDER BY id DESC LIMIT 1',
)

/** One row by its unique label. */
const readDrawer = sql(
  'drawers.read',
  'SELECT id FROM bartleby.drawers WHERE source = $1 AND engine = $2 AND queue = $3 AND signature = $4',
)
/** With the origin of any that has the same; the first of them, or one of several that are made at once, has none but itself. */
const insertDrawer = sql(
  'drawers.insert',
  `INSERT INTO bartleby.drawers (source, engine, queue, signature, origin) VALUES ($1, $2, $3, $4, (
     SELECT coalesce(origin, id) FROM bartleby.drawers WHERE source = $1 AND engine = $2 AND queue = $3
     ORDER BY source, engine, queue, signature LIMIT 1))
   ON CONFLICT (source, engine, queue, signature) DO NOTHING`,
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

/** Remembered drawers of one server. */
const MAX_REMEMBERED = 50_000

export class Drawers {
  readonly #known = new Map<string, number>()

  /** The number of the drawer with this label; it is made when it is new. */
  async numberOf(work: OfficeWork, label: DrawerLabel): Promise<number> {
    const key = JSON.stringify([label.source, label.engine, label.queue, label.signature.fingerprint])
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const signature = await signatureNumber(work, label)
    const values = [label.source, label.engine, label.queue, signature] as const
    const number =
      (await firstId(work.tx, readDrawer, values)) ??
      (await insertThenRead(work.tx, insertDrawer, values, readDrawer, values))
    // Only after the commit: a drawer of a transaction that was rolled back does not exist.
    work.afterCommit(() => {
      if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
      this.#known.set(key, number)
    })
    return number
  }
}

async function signatureNumber({ tx }: OfficeWork, { signature, failedAt }: DrawerLabel): Promise<number> {
  const known = await firstId(tx, readSignature, [signature.fingerprint])
  if (known !== null) return known
  const highest = (await firstId(tx, readHighestSignature, [])) ?? 0
  const { fingerprint, errorClass, title } = highest < MAX_SIGNATURES ? signature : TOO_MANY
  return insertThenRead(tx, insertSignature, [fingerprint, errorClass, title, failedAt], readSignature, [
    fingerprint,
  ])
}

async function firstId(tx: Session, statement: Statement, values: readonly Value[]): Promise<number | null> {
  const [row] = await tx.rows<{ id: Integer }>(statement, ...values)
  return row === undefined ? null : Number(row.id)
}

/** Of two that insert the same at once, the second waits for the first and reads its row. */
async function insertThenRead(
  tx: Session,
  insert: Statement,
  inserted: readonly Value[],
  read: Statement,
  asked: readonly Value[],
): Promise<number> {
  await tx.run(insert, ...inserted)
  const id = await firstId(tx, read, asked)
  if (id === null) throw new Error('a row that was just inserted is not there')
  return id
}

/** The drawers that match, of all there are; $1 to $4 are NULL where anything matches. */
const matchingDrawers = sql(
  'drawers.matching',
  `SELECT id, coalesce(origin, id) AS origin FROM bartleby.drawers
   WHERE (CAST($1 AS text) IS NULL OR source = $1) AND (CAST($2 AS text) IS NULL OR engine = $2)
     AND (CAST($3 AS text) IS NULL OR queue = $3)
     AND (CAST($4 AS text) IS NULL OR signature = (SELECT id FROM bartleby.signatures WHERE fingerprint = $4))`,
)

/** A drawer's number, and the number of the one that stands for all of its source, engine and queue. */
export interface FoundDrawer {
  readonly number: number
  readonly origin: number
}

/** The drawers whose labels match; all parts given must hold. */
export async function findDrawers(
  session: Session,
  label: {
    readonly source?: string | null | undefined
    readonly engine?: string | null | undefined
    readonly originalQueue?: string | null | undefined
    readonly signature?: string | null | undefined
  },
): Promise<FoundDrawer[]> {
  const { source, engine, originalQueue, signature } = label
  const values = [source, engine, originalQueue, signature].map((text) => text ?? null)
  // No label has U+0000, and PostgreSQL would refuse to look for it.
  if (values.some((text) => text?.includes('\0'))) return []
  const rows = await session.rows<{ id: Integer; origin: Integer }>(matchingDrawers, ...values)
  return rows.map(({ id, origin }) => ({ number: Number(id), origin: Number(origin) }))
}

/** All drawers, and the signature of each by primary key: PostgreSQL might as well look for the drawers of each signature. */
const readLabels = sql(
  'drawers.labels',
  {
    postgres: `SELECT drawers.id, source, engine, queue, fingerprint, error_class, title, first_seen_at
      FROM bartleby.drawers
      CROSS JOIN LATERAL (SELECT * FROM bartleby.signatures WHERE id = drawers.signature LIMIT 1) AS signature`,
    sqlite: `SELECT drawers.id, source, engine, queue, fingerprint, error_class, title, first_seen_at
      FROM drawers CROSS JOIN signatures ON signatures.id = drawers.signature`,
  },
  { bigints: true },
)

/** A drawer with its label, as lists and counts show it. */
export interface Drawer {
  readonly number: number
  readonly source: SourceName
  readonly engine: string
  readonly queue: string
  readonly signature: Signature
  readonly firstSeenAt: bigint
}

/** Every drawer there is. */
export async function readDrawers(session: Session): Promise<Drawer[]> {
  const rows = await session.rows<{
    id: Integer
    source: SourceName
    engine: string
    queue: string
    fingerprint: string
    error_class: string
    title: string
    first_seen_at: Integer
  }>(readLabels)
  return rows.map((row) => ({
    number: Number(row.id),
    source: row.source,
    engine: row.engine,
    queue: row.queue,
    signature: { fingerprint: row.fingerprint, errorClass: row.error_class, title: row.title },
    firstSeenAt: BigInt(row.first_seen_at),
  }))
}

/** The drawers that a server has read. Their labels never change, so they are read again only when one is new. */
export class DrawerLabels {
  #drawers: readonly Drawer[] = []
  #numbers: ReadonlySet<number> = new Set()

  /** Every drawer, by source, engine, queue and signature; among them all of `numbers`. */
  async covering(session: Session, numbers: Iterable<number>): Promise<readonly Drawer[]> {
    for (const number of numbers) {
      if (this.#numbers.has(number)) continue
      this.#drawers = (await readDrawers(session)).sort(byLabel)
      this.#numbers = new Set(this.#drawers.map((drawer) => drawer.number))
      break
    }
    return this.#drawers
  }
}

function byLabel(a: Drawer, b: Drawer): number {
  return (
    compare(a.source, b.source) ||
    compare(a.engine, b.engine) ||
    compare(a.queue, b.queue) ||
    compare(a.signature.fingerprint, b.signature.fingerprint)
  )
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
