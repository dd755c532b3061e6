/**
 * Drawers, the combinations of source, engine, queue and signature that letters are filed under, each with a small number; places lack
 * the signature. Places stay. An empty drawer goes after a while (`empty-drawers.ts`) and its number is never given again, so servers
 * remember drawers, and whoever counts into one finds out whether it is still there.
 */
import type { Instant } from '../../core/clock.ts'
import type { Signature } from '../../core/signature.ts'
import { type Integer, type Session, type Statement, sql, type Value } from '../../store/database.ts'
import { at, integer, rowShape, text } from '../../store/row.ts'
import type { SourceName } from '../kinds.ts'
import type { OfficeWork } from '../work.ts'

interface DrawerLabel {
  readonly source: SourceName
  readonly engine: string
  /** '' when there is none. */
  readonly queue: string
  readonly signature: Signature
  readonly failedAt: Instant
}

const FILED = rowShape({ id: integer, errorClass: text, title: text, firstSeenAt: at })
const findSignature = sql(
  'signatures.read',
  `SELECT ${FILED.columns} FROM bartleby.signatures WHERE fingerprint = $1`,
  { bigints: true },
)
/** Only with a drawer: one more step into drawers_by_signature. */
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
/** Signatures with a drawer, at most $1: one step into drawers_by_signature each. */
const countSignatures = sql(
  'signatures.inUse',
  `WITH RECURSIVE used (signature) AS (
     SELECT (SELECT min(signature) FROM bartleby.drawers)
     UNION ALL
     SELECT (SELECT min(signature) FROM bartleby.drawers WHERE signature > used.signature) FROM used WHERE signature IS NOT NULL
   )
   SELECT count(signature) AS id FROM (SELECT signature FROM used LIMIT $1) AS counted`,
)

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

/** Errors that differ in words would make a group each and counts without end. Beyond this, new groups share one. */
const MAX_SIGNATURES = 20_000
const TOO_MANY: Signature = {
  fingerprint: '0-overflow',
  errorClass: '',
  title: 'one of too many different errors to group',
}
/** Counted no more often; the server knows what it adds meanwhile. */
const COUNT_EVERY_US = 60_000_000n

/** How many more signatures this server may tell apart. */
interface Room {
  readonly countedAt: Instant
  left: number
}

const MAX_REMEMBERED = 50_000

export class Drawers {
  readonly #known = new Map<string, number>()
  /** By drawer, of those filed under by this server. */
  readonly #fingerprints = new Map<number, string>()
  #room: Room | undefined
  readonly #counting = new WeakMap<Session, Promise<Room>>()

  async numberOf(work: OfficeWork, label: DrawerLabel): Promise<number> {
    const { source, engine, queue, signature } = label
    const key = JSON.stringify([source, engine, queue, signature.fingerprint])
    // A rerun may have met a drawer that was removed.
    const known = work.tx.isRerun === true ? undefined : this.#known.get(key)
    if (known !== undefined) return known
    const filed = await this.#signatureNumber(work, label)
    const values = [source, engine, queue, filed.number]
    const number =
      (await firstId(work.tx, readDrawer, values)) ??
      (await this.#insert(work.tx, values.slice(0, 3), values))
    this.#fingerprints.set(number, filed.fingerprint)
    // Only after the commit: a rollback takes the drawer with it.
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

  /** For drawers asked for in this transaction; undefined once forgotten. */
  fingerprintOf(number: number): string | undefined {
    return this.#fingerprints.get(number)
  }

  async #insert(tx: Session, place: readonly Value[], values: readonly Value[]): Promise<number> {
    await tx.run(insertPlace, ...place)
    return insertOrRead(tx, insertDrawer, values, readDrawer, values)
  }

  /** A signature without a drawer is told apart only while there is room. */
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

  /** Approximate: other servers add signatures too. */
  async #hasRoom({ tx, now }: OfficeWork): Promise<boolean> {
    const counted = this.#room
    const isFresh = counted !== undefined && now <= counted.countedAt + COUNT_EVERY_US
    const room = isFresh ? counted : await this.#count(tx, now)
    return room.left-- > 0
  }

  /** Shared within a transaction, but not between them: its statement may stand behind one that waits for another's row. */
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

/** Of two equal inserts the second waits for the first and reads its row. */
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

/** Stays when its letters and drawers are gone. */
export interface FiledSignature extends Signature {
  readonly number: number
  readonly firstSeenAt: Instant
}

/** null: no letter ever had it. */
export async function readSignature(session: Session, fingerprint: string): Promise<FiledSignature | null> {
  // PostgreSQL refuses to look for U+0000.
  if (fingerprint.includes('\0')) return null
  const [row] = await session.rows<object>(findSignature, fingerprint)
  if (row === undefined) return null
  const { id, ...signature } = FILED.read(row)
  return { number: id, fingerprint, ...signature }
}
