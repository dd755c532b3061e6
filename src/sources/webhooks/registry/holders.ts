/** Who may send, and what messages are sent to: producers and channels. */
import type { Clock } from '../../../core/clock.ts'
import type { Xids } from '../../../core/xid.ts'
import { type Database, type Session, sql } from '../../../store/database.ts'
import { integer, rowShape, text } from '../../../store/row.ts'
import type { Channel, Holder, Producer } from '../webhook.ts'
import { draftOf, HOLDER, type HolderKind, holderKind, putConditionally } from './holder-kind.ts'
import { type Page, type PageRequest, spanOf } from './pages.ts'

const NOTHING = { own: [], ownOf: () => [] }

export const PRODUCERS = holderKind<Producer>({
  name: 'Producer',
  table: 'webhook_producers',
  unique: ['producer_id'],
  found: 'producer_id = $1',
  // Not by primary key: PostgreSQL may look for an id in the index of the list, all of it, where it is the second column.
  key: ['producer_id', ({ producerId }) => producerId],
  ...NOTHING,
  fromRow: rowShape({ ...HOLDER, producerId: text }).read,
})

export const CHANNELS = holderKind<Channel>({
  name: 'Channel',
  table: 'webhook_channels',
  unique: ['channel_id'],
  found: 'channel_id = $1',
  key: ['number', ({ number }) => number],
  ...NOTHING,
  fromRow: rowShape({ ...HOLDER, number: integer, channelId: text }).read,
})

/** The first by its public id: one step into the unique index. */
const any = sql(
  'webhooks.anyChannel',
  "SELECT number FROM bartleby.webhook_channels WHERE channel_id >= '' ORDER BY channel_id LIMIT 1",
)

/** Whether there is a channel at all. */
export const hasChannels = async (session: Session): Promise<boolean> => (await session.rows(any)).length > 0

/** Producers or channels. */
export class Holders<T extends Holder> {
  readonly #kind: HolderKind<T>
  readonly #db: Database
  readonly #clock: Clock
  readonly #xids: Xids

  constructor(kind: HolderKind<T>, db: Database, clock: Clock, xids: Xids) {
    this.#kind = kind
    this.#db = db
    this.#clock = clock
    this.#xids = xids
  }

  /** The one of exactly this id. */
  get(publicId: string): Promise<T | null> {
    const { name, read } = this.#kind
    return this.#db.session(`webhooks.read${name}`, (session) => read(session, [publicId]))
  }

  /** Creates or replaces it. Refuses to replace what the caller does not know. */
  put(
    publicId: string,
    request: { readonly name: string | null; readonly token: string | null },
    ifUnmodifiedSince: string | null,
  ): Promise<T> {
    const { name, steps } = this.#kind
    const draft = () => draftOf(publicId, request)
    return this.#db.transaction(`webhooks.put${name}`, (tx) =>
      putConditionally(steps(tx, this.#clock.now(), this.#xids, [publicId], draft), ifUnmodifiedSince),
    )
  }

  /** A page of all of them, newest first. */
  async list(page: PageRequest): Promise<Page<T>> {
    const { name, page: read } = this.#kind
    const span = spanOf(page)
    return this.#db.session(`webhooks.list${name}s`, (session) => read(session, span))
  }
}
