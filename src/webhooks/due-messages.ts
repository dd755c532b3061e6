/** Scheduled messages whose time has come: taking them, making messages of them, putting them back. */
import type { Instant } from '../core/clock.ts'
import { type Xid, xid } from '../core/xid.ts'
import { type Integer, sql, type Transaction, textList } from '../db/database.ts'
import type { JobBlock } from './dispatch.ts'

export interface DueMessage {
  readonly id: Xid
  /** The number of its channel. */
  readonly channel: number
  readonly priority: number
  /** How often it has failed. */
  readonly tries: number
}

const FIELDS = 'id, channel, priority, tries'

/**
 * The first of what is due, in the order of its index, webhook_messages_due; payloads are not read. Locks what it gives, and leaves
 * to others what they have locked.
 */
const takeFirst = sql(
  'webhooks.takeDue',
  ({ indexedBy, skipLocked }) => `
    SELECT ${FIELDS} FROM bartleby.webhook_messages ${indexedBy('webhook_messages_due')}
    WHERE next_try_at <= $1 ORDER BY next_try_at, id LIMIT $2 ${skipLocked}`,
)

/** One that has not gone out yet by primary key, in the same way. `received_at` and not `next_try_at`, which would invite its indexes. */
const takeById = sql(
  'webhooks.takeDueOne',
  ({ skipLocked }) =>
    `SELECT ${FIELDS} FROM bartleby.webhook_messages WHERE id = $1 AND received_at IS NULL ${skipLocked}`,
)

/** Makes locked rows messages that were received now, each by primary key; `$3` has its first job and how many there are. */
const mark = sql('webhooks.markDispatched', ({ among, json }) => {
  const given = (place: number, type: string) => `CAST(${json('$3')} -> id ->> ${place} AS ${type})`
  return `
    UPDATE bartleby.webhook_messages
    SET received_at = $1, next_try_at = NULL, first_job = ${given(0, 'text')}, jobs = ${given(1, 'int')}
    WHERE ${among('id', '$2', 'text')}`
})

/** Lets one wait on, by primary key, unless it was dispatched meanwhile. */
const delayOne = sql(
  'webhooks.putBack',
  'UPDATE bartleby.webhook_messages SET tries = tries + 1, next_try_at = $2 WHERE id = $1 AND received_at IS NULL',
)

interface Row {
  readonly id: string
  readonly channel: Integer
  readonly priority: Integer
  readonly tries: Integer
}

const toDue = ({ id, channel, priority, tries }: Row): DueMessage => ({
  id: xid(id),
  channel: Number(channel),
  priority: Number(priority),
  tries: Number(tries),
})

/** Takes those that are due and that nobody else has taken, at most `limit`, oldest first. */
export async function takeDue(tx: Transaction, now: Instant, limit: number): Promise<readonly DueMessage[]> {
  return (await tx.rows<Row>(takeFirst, now, limit)).map(toDue)
}

/** Takes this one, which was due, if it has not gone out meanwhile and nobody else has taken it. */
export async function takeOne(tx: Transaction, id: Xid): Promise<readonly DueMessage[]> {
  return (await tx.rows<Row>(takeById, id)).map(toDue)
}

/** Turns taken ones into messages with these jobs. */
export async function markDispatched(
  tx: Transaction,
  now: Instant,
  blocks: readonly JobBlock[],
): Promise<void> {
  const given = blocks.map(({ message, first, addressees }) => [message, [first, addressees.length]])
  const ids = blocks.map(({ message }) => message).sort()
  await tx.run(mark, now, textList(tx.dialect, ids), JSON.stringify(Object.fromEntries(given)))
}

/** Lets one that could not be dispatched wait until `nextTryAt`. */
export async function putBack(tx: Transaction, id: Xid, nextTryAt: Instant): Promise<void> {
  await tx.run(delayOne, id, nextTryAt)
}
