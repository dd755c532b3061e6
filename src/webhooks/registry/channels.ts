/** What messages are sent to: channels, read anew for every use, so that what is changed on one server holds on all at once. */
import { type Clock, type Instant, instant } from '../../core/clock.ts'
import { type Xid, type Xids, xid } from '../../core/xid.ts'
import { type Database, type Integer, type Session, sql, type Transaction } from '../../db/database.ts'
import { type PageRow, pageStatements } from '../pages.ts'
import type { Channel } from '../webhook.ts'
import { nextUpdate, type PutSteps } from './conditional.ts'
import type { HolderDraft } from './draft.ts'
import { type HolderKind, Holders } from './holders.ts'
import { TAKEN_NUMBER, takeNumber } from './numbers.ts'
import { checkNames, checkTexts, isStorable } from './texts.ts'

const FIELDS = 'channel_id, name, token, created_at, updated_at'

/** One row, by the unique index on the public id. */
const read = sql(
  'webhooks.readChannel',
  `SELECT id, number, ${FIELDS} FROM bartleby.webhook_channels WHERE channel_id = $1`,
  { bigints: true },
)

/** One row; waits for a twin that is just being created, and then does nothing. */
const create = sql('webhooks.createChannel', {
  postgres: `INSERT INTO bartleby.webhook_channels (id, ${FIELDS}) VALUES ($1, $2, $3, $4, $5, $5)
             ON CONFLICT (channel_id) DO NOTHING RETURNING number`,
  sqlite: `INSERT INTO webhook_channels (id, number, ${FIELDS}) VALUES ($1, ${TAKEN_NUMBER}, $2, $3, $4, $5, $5)
           ON CONFLICT (channel_id) DO NOTHING RETURNING number`,
})

/** One row by its number, if it is still the one that was read. Waits for another change of it, and then does nothing. */
const change = sql(
  'webhooks.changeChannel',
  `UPDATE bartleby.webhook_channels SET name = $3, token = $4, updated_at = $5
   WHERE number = $1 AND updated_at = $2`,
)

const list = pageStatements('webhooks.listChannels', {
  table: 'webhook_channels',
  columns: `number, ${FIELDS}`,
  index: 'webhook_channels_newest',
  at: 'created_at',
})

interface Row {
  readonly id: string
  readonly number: Integer
  readonly channel_id: string
  readonly name: string
  readonly token: string
  readonly created_at: Integer
  readonly updated_at: Integer
}

/** How a channel is put, in a transaction of the caller. */
export function channelSteps(
  tx: Transaction,
  now: Instant,
  xids: Xids,
  draft: HolderDraft,
): PutSteps<Channel> {
  const { publicId: channelId, name } = draft
  return {
    read: () => readChannel(tx, channelId),
    async create() {
      const { token } = draft
      checkTexts(channelId, name, token)
      checkNames(channelId, name)
      const id: Xid = xids.next()
      await takeNumber(tx)
      const [row] = await tx.rows<Pick<Row, 'number'>>(create, id, channelId, name, token, now)
      if (row === undefined) return null
      return { id, number: Number(row.number), channelId, name, token, createdAt: now, updatedAt: now }
    },
    async change(current) {
      const token = draft.keepsToken ? current.token : draft.token
      checkTexts(name, token)
      // Without a name it has its id, which may be of an earlier version.
      if (name !== channelId) checkNames(name)
      if (current.name === name && current.token === token) return current
      const updatedAt = nextUpdate(now, current)
      const changed = await tx.run(change, current.number, current.updatedAt, name, token, updatedAt)
      return changed === 0 ? null : { ...current, name, token, updatedAt }
    },
  }
}

/** The channel of exactly this id, as the session sees it. */
export async function readChannel(session: Session, channelId: string): Promise<Channel | null> {
  const [row] = isStorable(channelId) ? await session.rows<Row>(read, channelId) : []
  return row === undefined ? null : toChannel(row)
}

/** The first by its public id: one step into the unique index. */
const any = sql(
  'webhooks.anyChannel',
  "SELECT number FROM bartleby.webhook_channels WHERE channel_id >= '' ORDER BY channel_id LIMIT 1",
)

/** Whether there is one at all. */
export const hasChannels = async (session: Session): Promise<boolean> => (await session.rows(any)).length > 0

const toChannel = (row: Row): Channel => ({
  id: xid(row.id),
  number: Number(row.number),
  channelId: row.channel_id,
  name: row.name,
  token: row.token,
  createdAt: instant(BigInt(row.created_at)),
  updatedAt: instant(BigInt(row.updated_at)),
})

const KIND: HolderKind<Channel, Row & PageRow> = {
  name: 'Channel',
  listed: list,
  read: readChannel,
  steps: channelSteps,
  fromRow: toChannel,
}

export class Channels extends Holders<Channel, Row & PageRow> {
  constructor(db: Database, clock: Clock, xids: Xids) {
    super(KIND, db, clock, xids)
  }
}
