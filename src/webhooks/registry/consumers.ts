/**
 * Who receives: the consumers of a channel, read anew for every use. The same id on two channels is two consumers. One that has
 * jobs, of whatever state, cannot be deleted.
 */
import { type Clock, type Instant, instant } from '../../core/clock.ts'
import { type Xid, type Xids, xid } from '../../core/xid.ts'
import { type Database, type Integer, type Session, sql, type Transaction } from '../../db/database.ts'
import {
  type Page,
  type PageRequest,
  type PageRow,
  pageOf,
  pageStatements,
  readSpan,
  spanOf,
} from '../pages.ts'
import { Refused } from '../refusal.ts'
import { type Channel, CONSUMER_TYPES, type Consumer, type ConsumerType } from '../webhook.ts'
import { parseCallbackUrl } from './callback-url.ts'
import { nextUpdate, type PutSteps, putConditionally } from './conditional.ts'
import { draftOf, type HolderDraft } from './draft.ts'
import { TAKEN_NUMBER, takeNumber } from './numbers.ts'
import { removeConsumer } from './removal.ts'
import { checkNames, checkTexts, given, isStorable } from './texts.ts'

const FIELDS = 'channel, consumer_id, name, token, callback_url, pulls, created_at, updated_at'

/**
 * One row, by the unique index on channel and public id. PostgreSQL is told so by an order that only this index has: on a table
 * that it knows nothing of, it would as soon read all consumers of the channel in the index of the list.
 */
const read = sql(
  'webhooks.readConsumer',
  {
    postgres: `SELECT id, number, ${FIELDS} FROM bartleby.webhook_consumers
               WHERE channel = $1 AND consumer_id BETWEEN $2 AND $2 ORDER BY consumer_id`,
    sqlite: `SELECT id, number, ${FIELDS} FROM webhook_consumers WHERE channel = $1 AND consumer_id = $2`,
  },
  { bigints: true },
)

/** One row; waits for a twin that is just being created, and then does nothing. */
const create = sql('webhooks.createConsumer', {
  postgres: `INSERT INTO bartleby.webhook_consumers (id, ${FIELDS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
             ON CONFLICT (channel, consumer_id) DO NOTHING RETURNING number`,
  sqlite: `INSERT INTO webhook_consumers (id, number, ${FIELDS})
           VALUES ($1, ${TAKEN_NUMBER}, $2, $3, $4, $5, $6, $7, $8, $8)
           ON CONFLICT (channel, consumer_id) DO NOTHING RETURNING number`,
})

/** One row by its number, if it is still the one that was read. Waits for another change of it, and then does nothing. */
const change = sql(
  'webhooks.changeConsumer',
  `UPDATE bartleby.webhook_consumers SET name = $3, token = $4, callback_url = $5, pulls = $6, updated_at = $7
   WHERE number = $1 AND updated_at = $2`,
)

const list = pageStatements('webhooks.listConsumers', {
  table: 'webhook_consumers',
  columns: `number, ${FIELDS}`,
  index: 'webhook_consumers_newest',
  at: 'created_at',
  where: 'channel = $4',
})

interface Row {
  readonly id: string
  readonly number: Integer
  readonly channel: Integer
  readonly consumer_id: string
  readonly name: string
  readonly token: string
  readonly callback_url: string
  readonly pulls: Integer
  readonly created_at: Integer
  readonly updated_at: Integer
}

/** What a consumer shall be. */
export interface ConsumerDraft extends HolderDraft {
  readonly callbackUrl: string
  readonly type: ConsumerType
}

/** What a request says of a consumer; null and the empty text are nothing. */
export interface ConsumerRequest {
  readonly name: string | null
  readonly token: string | null
  readonly callbackUrl: string | null
  readonly type: string | null
}

/** How a consumer is put, in a transaction of the caller. `draftOf` is asked once the condition is known to hold. */
export function consumerSteps(
  tx: Transaction,
  now: Instant,
  xids: Xids,
  channel: number,
  consumerId: string,
  draftOf: () => ConsumerDraft,
): PutSteps<Consumer> {
  return {
    read: () => readConsumer(tx, channel, consumerId),
    async create() {
      const { name, token, callbackUrl, type } = draftOf()
      checkTexts(consumerId, name, token)
      checkNames(consumerId, name)
      const id: Xid = xids.next()
      await takeNumber(tx)
      const [row] = await tx.rows<Pick<Row, 'number'>>(
        create,
        ...[id, channel, consumerId, name, token, callbackUrl, pullsOf(type), now],
      )
      if (row === undefined) return null
      const numbers = { number: Number(row.number), channel }
      return { id, ...numbers, consumerId, name, token, callbackUrl, type, createdAt: now, updatedAt: now }
    },
    async change(current) {
      const { keepsToken, name, callbackUrl, type, ...draft } = draftOf()
      const token = keepsToken ? current.token : draft.token
      checkTexts(name, token)
      // Without a name it has its id, which may be of an earlier version.
      if (name !== consumerId) checkNames(name)
      const updatedAt = nextUpdate(now, current)
      const changed: Consumer = { ...current, name, token, callbackUrl, type, updatedAt }
      if (isSame(changed, current)) return current
      const rows = await tx.run(
        change,
        ...[current.number, current.updatedAt, name, token, callbackUrl, pullsOf(type), updatedAt],
      )
      return rows === 0 ? null : changed
    },
  }
}

export class Consumers {
  readonly #db: Database
  readonly #clock: Clock
  readonly #xids: Xids
  readonly #checkAddress: (url: URL) => boolean

  /** `checkAddress` tells whether deliveries may go to an address, as far as the URL alone can tell. Default: to every one. */
  constructor(db: Database, clock: Clock, xids: Xids, checkAddress: (url: URL) => boolean = () => true) {
    this.#db = db
    this.#clock = clock
    this.#xids = xids
    this.#checkAddress = checkAddress
  }

  /** The consumer of exactly this id on a channel. */
  get(channel: Channel, consumerId: string): Promise<Consumer | null> {
    return this.#db.session('webhooks.readConsumer', (session) =>
      readConsumer(session, channel.number, consumerId),
    )
  }

  /** Creates or replaces it. Refuses to replace what the caller does not know, and addresses that cannot be called. */
  put(
    channel: Channel,
    consumerId: string,
    request: ConsumerRequest,
    ifUnmodifiedSince: string | null,
  ): Promise<Consumer> {
    const holder = draftOf(consumerId, request.name, request.token)
    const draft = () => ({ ...holder, ...this.#checked(request) })
    return this.#db.transaction('webhooks.putConsumer', (tx) =>
      putConditionally(
        consumerSteps(tx, this.#clock.now(), this.#xids, channel.number, consumerId, draft),
        ifUnmodifiedSince,
      ),
    )
  }

  /** Deletes it with its counts. Refuses while it has jobs. */
  delete(channel: Channel, consumerId: string, ifUnmodifiedSince: string | null): Promise<void> {
    return this.#db.transaction('webhooks.deleteConsumer', (tx) =>
      removeConsumer(
        tx,
        channel.number,
        () => readConsumer(tx, channel.number, consumerId),
        ifUnmodifiedSince,
      ),
    )
  }

  /** A page of a channel's consumers, newest first. */
  async list(channel: Channel, page: PageRequest): Promise<Page<Consumer>> {
    const span = spanOf(page)
    const rows = await this.#db.session('webhooks.listConsumers', (session) =>
      readSpan<Row & PageRow>(session, list, span, channel.number),
    )
    return pageOf(rows, toConsumer)
  }

  #checked({ callbackUrl, type }: ConsumerRequest): Pick<ConsumerDraft, 'callbackUrl' | 'type'> {
    const address = given(callbackUrl) ?? ''
    const url = parseCallbackUrl(address)
    if (url === null) throw new Refused('callback_invalid')
    if (!this.#checkAddress(url)) throw new Refused('callback_refused')
    const wanted = given(type) ?? 'push'
    const known = CONSUMER_TYPES.find((each) => each === wanted)
    if (known === undefined) throw new Refused('type_invalid')
    return { callbackUrl: address, type: known }
  }
}

async function readConsumer(session: Session, channel: number, consumerId: string): Promise<Consumer | null> {
  const [row] = isStorable(consumerId) ? await session.rows<Row>(read, channel, consumerId) : []
  return row === undefined ? null : toConsumer(row)
}

const pullsOf = (type: ConsumerType): number => (type === 'pull' ? 1 : 0)

const isSame = (a: Consumer, b: Consumer): boolean =>
  a.name === b.name && a.token === b.token && a.callbackUrl === b.callbackUrl && a.type === b.type

const toConsumer = (row: Row): Consumer => ({
  id: xid(row.id),
  number: Number(row.number),
  channel: Number(row.channel),
  consumerId: row.consumer_id,
  name: row.name,
  token: row.token,
  callbackUrl: row.callback_url,
  type: Number(row.pulls) === 1 ? 'pull' : 'push',
  createdAt: instant(BigInt(row.created_at)),
  updatedAt: instant(BigInt(row.updated_at)),
})
