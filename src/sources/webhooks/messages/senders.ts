/**
 * Who may send: a producer with its own token and the channel's. Both are read anew for every broadcast, so that a change holds at once on
 * every server; broadcasts of the same moment share one statement.
 */
import { Batcher } from '../../../core/batcher.ts'
import { sameToken } from '../../../core/same-token.ts'
import { type Xid, xid } from '../../../core/xid.ts'
import { type Database, type Integer, StoreUnavailable, sql } from '../../../store/database.ts'
import { Refused } from '../refusal.ts'
import { isStorable } from '../registry/texts.ts'

export interface Credentials {
  readonly channelId: string
  readonly channelToken: string
  readonly producerId: string
  readonly producerToken: string
}

export interface Sender {
  readonly channel: number
  readonly channelId: string
  readonly producer: Xid
}

/** By unique indexes; one row per id that exists. */
const readParties = sql(
  'webhooks.parties',
  `
    SELECT channel_id AS name, number, NULL AS id, token FROM bartleby.webhook_channels WHERE channel_id = ANY($1::text[])
    UNION ALL
    SELECT producer_id, NULL, id, token FROM bartleby.webhook_producers WHERE producer_id = ANY($2::text[])`,
)

interface PartyRow {
  readonly name: string
  readonly number: Integer | null
  readonly id: string | null
  readonly token: string
}

interface Parties {
  readonly channel: { readonly number: number; readonly token: string } | undefined
  readonly producer: { readonly id: Xid; readonly token: string } | undefined
}

type Pair = Pick<Credentials, 'channelId' | 'producerId'>

export class Senders {
  readonly #db: Database
  readonly #reading: Batcher<Pair, Parties>

  constructor(db: Database) {
    this.#db = db
    this.#reading = new Batcher((pairs) => this.#read(pairs), {
      atOnce: db.dialect === 'postgres' ? 2 : 1,
      meetsAll: (error) => error instanceof StoreUnavailable,
    })
  }

  /** The refusal says which of the two is unknown or not proved. */
  async authorise(credentials: Credentials): Promise<Sender> {
    const { channelId, channelToken, producerId, producerToken } = credentials
    const { channel, producer } = await this.#reading.do({ channelId, producerId })
    if (channel === undefined) throw new Refused('resource_unknown')
    if (!sameToken(channel.token, channelToken)) throw new Refused('channel_token_wrong')
    if (producer === undefined) throw new Refused('producer_unknown')
    if (!sameToken(producer.token, producerToken)) throw new Refused('producer_token_wrong')
    return { channel: channel.number, channelId, producer: producer.id }
  }

  async #read(pairs: readonly Pair[]): Promise<readonly Parties[]> {
    const list = (get: (pair: Pair) => string) => [...new Set(pairs.map(get))].filter(isStorable)
    const rows = await this.#db.session('webhooks.authorise', (session) =>
      session.rows<PartyRow>(
        readParties,
        list(({ channelId }) => channelId),
        list(({ producerId }) => producerId),
      ),
    )
    const channels = new Map<string, NonNullable<Parties['channel']>>()
    const producers = new Map<string, NonNullable<Parties['producer']>>()
    for (const { name, number, id, token } of rows) {
      if (number !== null) channels.set(name, { number: Number(number), token })
      else if (id !== null) producers.set(name, { id: xid(id), token })
    }
    return pairs.map(({ channelId, producerId }) => ({
      channel: channels.get(channelId),
      producer: producers.get(producerId),
    }))
  }
}
