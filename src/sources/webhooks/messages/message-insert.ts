/** New messages in the store: of equal ids of a channel one is taken. */
import type { Instant } from '../../../core/clock.ts'
import { type Xid, xid } from '../../../core/xid.ts'
import { sql, type Transaction, type Value } from '../../../store/database.ts'
import type { MessageContent } from '../webhook.ts'
import type { JobBlock } from './dispatch.ts'

export interface NewMessage {
  readonly id: Xid
  readonly channel: number
  readonly messageId: string
  readonly producer: Xid
  readonly content: MessageContent
  /** Null: dispatched at once. */
  readonly scheduledFor: Instant | null
}

/** Null for one that waits for its time. */
interface PlacedMessage extends NewMessage {
  readonly jobs: JobBlock | null
}

/**
 * All in one statement; known ones are left out, by unique (channel, message_id), and others' fresh inserts are waited for. Payloads travel
 * in one parameter, cut apart by offsets: node-postgres sends an array of bytea as hex text.
 */
const insertMany = sql('webhooks.insertMessages', {
  postgres: `
    INSERT INTO bartleby.webhook_messages (id, channel, message_id, producer, created_at, received_at, scheduled_for,
      next_try_at, priority, first_job, jobs, content_type, headers, payload)
    SELECT made.id, made.channel, made.message_id, made.producer, $1, CASE WHEN made.scheduled_for IS NULL THEN $1::bigint END,
      made.scheduled_for, made.scheduled_for, made.priority, made.first_job, made.jobs, made.content_type, made.headers,
      substring($2::bytea FROM made.payload_at FOR made.payload_size)
    FROM unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::text[], $10::int[],
                $11::text[], $12::text[], $13::int[], $14::int[])
      AS made (id, channel, message_id, producer, scheduled_for, priority, first_job, jobs,
               content_type, headers, payload_at, payload_size)
    ON CONFLICT (channel, message_id) DO NOTHING RETURNING id`,
  sqlite: '',
})
const insertOne = sql('webhooks.insertMessage', {
  postgres: '',
  sqlite: `
    INSERT INTO webhook_messages (id, channel, message_id, producer, created_at, received_at, scheduled_for,
      next_try_at, priority, first_job, jobs, content_type, headers, payload)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (channel, message_id) DO NOTHING`,
})

/** Returns the new ids. */
export async function insertMessages(
  tx: Transaction,
  now: Instant,
  messages: readonly PlacedMessage[],
): Promise<ReadonlySet<Xid>> {
  if (tx.dialect === 'postgres') {
    const rows = await tx.rows<{ id: string }>(insertMany, ...valuesOf(now, messages))
    return new Set(rows.map(({ id }) => xid(id)))
  }
  const inserted = new Set<Xid>()
  for (const message of messages) {
    if ((await tx.run(insertOne, ...rowOf(now, message))) === 1) inserted.add(message.id)
  }
  return inserted
}

const rowOf = (now: Instant, message: PlacedMessage): Value[] => {
  const { id, channel, messageId, producer, content, scheduledFor, jobs } = message
  return [
    id,
    channel,
    messageId,
    producer,
    now,
    scheduledFor === null ? now : null,
    scheduledFor,
    content.priority,
    jobs?.first ?? null,
    jobs?.addressees.length ?? 0,
    content.contentType,
    JSON.stringify(content.headers),
    content.payload,
  ]
}

function valuesOf(now: Instant, messages: readonly PlacedMessage[]): Value[] {
  // Two servers that insert the same ids in another order would wait for each other for ever.
  const sorted = messages.toSorted(
    (a, b) => a.channel - b.channel || (a.messageId < b.messageId ? -1 : a.messageId > b.messageId ? 1 : 0),
  )
  const texts = (get: (message: PlacedMessage) => string | null) => sorted.map(get)
  const integers = (get: (message: PlacedMessage) => number) => sorted.map(get)
  const payloads = sorted.map(({ content }) => content.payload)
  return [
    now,
    joined(payloads),
    texts(({ id }) => id),
    integers(({ channel }) => channel),
    texts(({ messageId }) => messageId),
    texts(({ producer }) => producer),
    `{${sorted.map(({ scheduledFor }) => scheduledFor ?? 'NULL').join(',')}}`,
    integers(({ content }) => content.priority),
    texts(({ jobs }) => jobs?.first ?? null),
    integers(({ jobs }) => jobs?.addressees.length ?? 0),
    texts(({ content }) => content.contentType),
    texts(({ content }) => JSON.stringify(content.headers)),
    offsetsOf(payloads),
    payloads.map(({ length }) => length),
  ]
}

const joined = (payloads: readonly Uint8Array[]): Uint8Array => {
  const [first] = payloads
  return first !== undefined && payloads.length === 1 ? first : Buffer.concat(payloads)
}

/** Counted from 1. */
function offsetsOf(payloads: readonly Uint8Array[]): number[] {
  let next = 1
  return payloads.map(({ length }) => {
    next += length
    return next - length
  })
}

/** By primary key. */
const readIds = sql(
  'webhooks.messagesExist',
  `SELECT id FROM bartleby.webhook_messages WHERE id = ANY($1::text[])`,
)

export async function storedAmong(tx: Transaction, ids: readonly Xid[]): Promise<ReadonlySet<Xid>> {
  if (ids.length === 0) return new Set()
  const rows = await tx.rows<{ id: string }>(readIds, ids)
  return new Set(rows.map(({ id }) => xid(id)))
}
