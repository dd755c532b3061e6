/**
 * Contents of messages under delivery: each read once for all its jobs of about the same time, and kept for a while, within a limit of
 * bytes.
 */
import { type Xid, xid } from '../../../core/xid.ts'
import { type Database, sql } from '../../../store/database.ts'
import { bytes, type RowOf, rowShape, text } from '../../../store/row.ts'
import { headerList } from '../webhook.ts'

const ROW = rowShape({
  id: xid,
  messageId: text,
  contentType: text,
  headers: headerList,
  /** Null: no room for it. */
  payload: bytes,
})
type Row = RowOf<typeof ROW>

export interface Content extends Omit<Row, 'id' | 'payload'> {
  readonly payload: Uint8Array
}

interface ContentLimits {
  /** Bytes that nobody uses at the moment. */
  readonly kept: number
  /** Bytes under delivery. At least one message always fits. */
  readonly used: number
}

const LIMITS: ContentLimits = { kept: 32_000_000, used: 64_000_000 }
/** Beside the payload. */
const ROW_BYTES = 1_000

/** By primary key, with payloads while those before are smaller than $2 together. No locks. Cost: the messages, and the bytes that fit. */
const readContents = sql(
  'webhooks.contents',
  `SELECT id, message_id, content_type, headers,
     CASE WHEN before < $2 THEN (SELECT payload FROM bartleby.webhook_messages AS whole WHERE whole.id = sized.id) END AS payload
   FROM (
     SELECT *, sum(size) OVER (ROWS UNBOUNDED PRECEDING) - size AS before FROM (
       SELECT id, message_id, content_type, headers, octet_length(payload) AS size
       FROM bartleby.webhook_messages WHERE id = ANY($1::text[])) AS asked
   ) AS sized`,
)

interface Entry {
  readonly content: Content
  readonly bytes: number
  users: number
}

export type Loaded = Content | 'no room' | 'gone'

export class Contents {
  readonly #db: Database
  readonly #limits: ContentLimits
  /** Those used last stand last. */
  readonly #entries = new Map<Xid, Entry>()
  #usedBytes = 0
  #keptBytes = 0
  #typicalBytes = ROW_BYTES

  constructor(db: Database, limits: ContentLimits = LIMITS) {
    this.#db = db
    this.#limits = limits
  }

  /** About how many more messages fit. */
  get room(): number {
    return Math.max(0, Math.ceil((this.#limits.used - this.#usedBytes) / this.#typicalBytes))
  }

  get bytes(): number {
    return this.#usedBytes + this.#keptBytes
  }

  /** In the order of the jobs. Release every content once for each job. */
  async load(messages: readonly Xid[]): Promise<readonly Loaded[]> {
    // Taken before anything is waited for: they could be forgotten meanwhile.
    const here = messages.map((id) => this.#take(id))
    const missing = [...new Set(messages.filter((_, i) => here[i] === null))]
    if (missing.length === 0) return here.map((content) => content ?? 'gone')
    const rows = await this.#read(missing).catch((error: unknown) => {
      for (const [i, id] of messages.entries()) if (here[i] !== null) this.release(id)
      throw error
    })
    const unread = new Set<Xid>()
    for (const { id, payload, ...row } of rows) {
      if (payload === null) unread.add(id)
      else this.#keep(id, { ...row, payload })
    }
    return messages.map((id, i) => here[i] ?? this.#take(id) ?? (unread.has(id) ? 'no room' : 'gone'))
  }

  release(message: Xid): void {
    const entry = this.#entries.get(message)
    if (entry === undefined) return
    entry.users -= 1
    if (entry.users > 0) return
    this.#usedBytes -= entry.bytes
    this.#keptBytes += entry.bytes
    this.#shrink()
  }

  #read(ids: readonly Xid[]): Promise<readonly Row[]> {
    const room = Math.max(1, this.#limits.used - this.#usedBytes)
    return this.#db.session('webhooks.contents', (session) =>
      ROW.all(session, readContents, ids.toSorted(), room),
    )
  }

  #keep(id: Xid, content: Content): void {
    const bytes = content.payload.length + ROW_BYTES
    this.#entries.set(id, { content, bytes, users: 0 })
    this.#keptBytes += bytes
    this.#typicalBytes += (bytes - this.#typicalBytes) / 16
  }

  #take(id: Xid): Content | null {
    const entry = this.#entries.get(id)
    if (entry === undefined) return null
    this.#entries.delete(id)
    this.#entries.set(id, entry)
    entry.users += 1
    if (entry.users === 1) {
      this.#keptBytes -= entry.bytes
      this.#usedBytes += entry.bytes
    }
    return entry.content
  }

  #shrink(): void {
    if (this.#keptBytes <= this.#limits.kept) return
    for (const [id, { users, bytes }] of this.#entries) {
      if (users > 0) continue
      this.#entries.delete(id)
      this.#keptBytes -= bytes
      if (this.#keptBytes <= this.#limits.kept) return
    }
  }
}
