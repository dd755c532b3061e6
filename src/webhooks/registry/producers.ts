/** Who may send: producers, read anew for every use, so that what is changed on one server holds on all at once. */
import { type Clock, type Instant, instant } from '../../core/clock.ts'
import { type Xid, type Xids, xid } from '../../core/xid.ts'
import { type Database, type Integer, type Session, sql, type Transaction } from '../../db/database.ts'
import { type PageRow, pageStatements } from '../pages.ts'
import type { Producer } from '../webhook.ts'
import { nextUpdate, type PutSteps } from './conditional.ts'
import type { HolderDraft } from './draft.ts'
import { type HolderKind, Holders } from './holders.ts'
import { checkNames, checkTexts, isStorable } from './texts.ts'

const FIELDS = 'producer_id, name, token, created_at, updated_at'

/** One row, by the unique index on the public id. */
const read = sql(
  'webhooks.readProducer',
  `SELECT id, ${FIELDS} FROM bartleby.webhook_producers WHERE producer_id = $1`,
  { bigints: true },
)

/** One row; waits for a twin that is just being created, and then does nothing. */
const create = sql(
  'webhooks.createProducer',
  `INSERT INTO bartleby.webhook_producers (id, ${FIELDS}) VALUES ($1, $2, $3, $4, $5, $5)
   ON CONFLICT (producer_id) DO NOTHING`,
)

/**
 * One row by the unique index on the public id, if it is still the one that was read. Waits for another change of it, and then
 * does nothing. Not by primary key: PostgreSQL may look for an id in the index of the list, all of it, where it is the second column.
 */
const change = sql(
  'webhooks.changeProducer',
  `UPDATE bartleby.webhook_producers SET name = $3, token = $4, updated_at = $5
   WHERE producer_id = $1 AND updated_at = $2`,
)

const list = pageStatements('webhooks.listProducers', {
  table: 'webhook_producers',
  columns: FIELDS,
  index: 'webhook_producers_newest',
  at: 'created_at',
})

interface Row {
  readonly id: string
  readonly producer_id: string
  readonly name: string
  readonly token: string
  readonly created_at: Integer
  readonly updated_at: Integer
}

/** How a producer is put, in a transaction of the caller. */
export function producerSteps(
  tx: Transaction,
  now: Instant,
  xids: Xids,
  draft: HolderDraft,
): PutSteps<Producer> {
  const { publicId: producerId, name } = draft
  return {
    read: () => readProducer(tx, producerId),
    async create() {
      const { token } = draft
      checkTexts(producerId, name, token)
      checkNames(producerId, name)
      const id: Xid = xids.next()
      const created = await tx.run(create, id, producerId, name, token, now)
      return created === 0 ? null : { id, producerId, name, token, createdAt: now, updatedAt: now }
    },
    async change(current) {
      const token = draft.keepsToken ? current.token : draft.token
      checkTexts(name, token)
      // Without a name it has its id, which may be of an earlier version.
      if (name !== producerId) checkNames(name)
      if (current.name === name && current.token === token) return current
      const updatedAt = nextUpdate(now, current)
      const changed = await tx.run(change, producerId, current.updatedAt, name, token, updatedAt)
      return changed === 0 ? null : { ...current, name, token, updatedAt }
    },
  }
}

async function readProducer(session: Session, producerId: string): Promise<Producer | null> {
  const [row] = isStorable(producerId) ? await session.rows<Row>(read, producerId) : []
  return row === undefined ? null : toProducer(row)
}

const toProducer = (row: Row): Producer => ({
  id: xid(row.id),
  producerId: row.producer_id,
  name: row.name,
  token: row.token,
  createdAt: instant(BigInt(row.created_at)),
  updatedAt: instant(BigInt(row.updated_at)),
})

const KIND: HolderKind<Producer, Row & PageRow> = {
  name: 'Producer',
  listed: list,
  read: readProducer,
  steps: producerSteps,
  fromRow: toProducer,
}

export class Producers extends Holders<Producer, Row & PageRow> {
  constructor(db: Database, clock: Clock, xids: Xids) {
    super(KIND, db, clock, xids)
  }
}
