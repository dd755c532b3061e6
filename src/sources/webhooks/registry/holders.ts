/** Producers and channels. */
import { type Session, sql, type Value } from '../../../store/database.ts'
import { integer, rowShape, text } from '../../../store/row.ts'
import type { Parts } from '../settings.ts'
import type { Channel, Holder, Producer } from '../webhook.ts'
import { draftOf, HOLDER, type HolderKind, holderKind } from './holder-kind.ts'
import { type Page, type PageRequest, spanOf } from './pages.ts'

export const PRODUCERS = holderKind<Producer>({
  name: 'Producer',
  table: 'webhook_producers',
  unique: ['producer_id'],
  // Not by primary key: PostgreSQL may walk the index of the list, where the id is the second column.
  key: ['producer_id', ({ producerId }) => producerId],
  fromRow: rowShape({ ...HOLDER, producerId: text }).read,
})

export const CHANNELS = holderKind<Channel>({
  name: 'Channel',
  table: 'webhook_channels',
  unique: ['channel_id'],
  key: ['number', ({ number }) => number],
  fromRow: rowShape({ ...HOLDER, number: integer, channelId: text }).read,
})

/** One step into the unique index. */
const any = sql(
  'webhooks.anyChannel',
  "SELECT number FROM bartleby.webhook_channels WHERE channel_id >= '' ORDER BY channel_id LIMIT 1",
)

export const hasChannels = async (session: Session): Promise<boolean> => (await session.rows(any)).length > 0

type HolderParts = Pick<Parts, 'db' | 'clock' | 'xids'>

export class Holders<T extends Holder> {
  readonly #kind: HolderKind<T>
  readonly #parts: HolderParts

  constructor(kind: HolderKind<T>, parts: HolderParts) {
    this.#kind = kind
    this.#parts = parts
  }

  get(publicId: string, ...scope: readonly number[]): Promise<T | null> {
    const { name, read } = this.#kind
    return this.#parts.db.session(`webhooks.read${name}`, (session) => read(session, [...scope, publicId]))
  }

  /** Refuses to replace what the caller does not know. */
  put(
    publicId: string,
    request: { readonly name: string | null; readonly token: string | null },
    ifUnmodifiedSince: string | null,
    { scope = [], own = () => [] }: { scope?: readonly number[]; own?: () => readonly Value[] } = {},
  ): Promise<T> {
    const { db, clock, xids } = this.#parts
    const { name, put } = this.#kind
    const place = [...scope, publicId] as const
    const draft = () => draftOf(publicId, request, own())
    return db.transaction(`webhooks.put${name}`, (tx) =>
      put({ tx, now: clock.now(), xids, place, draft }, ifUnmodifiedSince),
    )
  }

  async list(page: PageRequest, ...scope: readonly number[]): Promise<Page<T>> {
    const { name, page: read } = this.#kind
    const span = spanOf(page)
    return this.#parts.db.session(`webhooks.list${name}s`, (session) => read(session, span, ...scope))
  }
}
