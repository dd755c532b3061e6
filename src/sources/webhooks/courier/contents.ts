/**
 * The contents of messages that are being delivered. Each is read once for all its jobs that are claimed at about the same
 * time, and kept for a while after that; never more of them than memory has room for, whatever their size.
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
  /** null: there was no room for it. */
  payload: bytes,
})
type Row = RowOf<typeof ROW>

export interface Content extends Omit<Row, 'id' | 'payload'> {
  readonly payload: Uint8Array
}

export interface ContentLimits {
  /** Bytes that are kept of what nobody uses at the moment. */
  readonly kept: number
  /** Bytes that are being delivered. A message that is larger than what is left still comes in: at least one always does. */
  readonly used: number
}

const LIMITS: ContentLimits = { kept: 32_000_000, used: 64_000_000 }
/** What a row takes beside its payload. */
const ROW_BYTES = 1_000

/**
 * Messages by primary key, with their payloads as long as those before them are smaller than $2 together: what does not
 * fit is not read. No locks. Cost: the messages, and the bytes that fit.
 */
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

/** What became of a message: its content, nothing because there is no room for it now, or nothing because it is gone. */
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

  /** About how many more messages there is room for. */
  get room(): number {
    return Math.max(0, Math.ceil((this.#limits.used - this.#usedBytes) / this.#typicalBytes))
  }

  /** Bytes that are held. */
  get bytes(): number {
    return this.#usedBytes + this.#keptBytes
  }

  /** Reads the messages of jobs, each job's in its place. Every content that is given must be released once for each job. */
  async load(messages: readonly Xid[]): Promise<readonly Loaded[]> {
    // Those that are here are taken before anything is waited for: they could be forgotten meanwhile.
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

  /** A job is done with its message. */
  release(message: Xid): void {
    const entry = this.#entries.get(message)
    if (entry === undefined) return
    entry.users -= 1
    if (entry.users > 0) return
    this.#usedBytes -= entry.bytes
    this.#keptBytes += entry.bytes
    this.#shrink()
  }

  async #read(ids: readonly Xid[]): Promise<readonly Row[]> {
    const list = ids.toSorted()
    const rows = await this.#db.session('webhooks.contents', (session) =>
      session.rows<object>(readContents, list, Math.max(1, this.#limits.used - this.#usedBytes)),
    )
    return rows.map(ROW.read)
  }

  #keep(id: Xid, content: Content): void {
    const bytes = content.payload.length + ROW_BYTES
    this.#entries.set(id, { content, bytes, users: 0 })
    this.#keptBytes += bytes
    this.#typicalBytes += (bytes - this.#typicalBytes) / 16
  }

  /** The content of a message that is here, for one more job. */
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
