/** What was sent of letters, one row for each id that was minted: so that it can be sent again as it was, and be recognised. */
import { createHash } from 'node:crypto'
import type { Instant } from '../../core/clock.ts'
import { type Integer, type Session, sql, type Transaction } from '../../db/database.ts'
import type { Caller, EventId, OutgoingRecord, StoredEvent } from '../event.ts'
import { SEND, type SendOutcome } from '../send.ts'
import { decodeHeaders, encodeHeaders } from '../wire/headers.ts'

const insertSend = sql(
  'kafka.insertSend',
  `INSERT INTO bartleby.kafka_sends (event_id, letter_id, made_at, resends, outcome, reopened, value_kept, target, digest, actor,
     request_id, record_key, value, headers)
   VALUES ($1, $2, $3, 0, ${SEND.publishing}, 0, $4, $5, $6, $7, $8, $9, $10, $11)`,
)

/** One row by primary key. */
const readSend = sql(
  'kafka.readSend',
  'SELECT value_kept, target, record_key, value, headers FROM bartleby.kafka_sends WHERE event_id = $1',
)
const countResend = sql(
  'kafka.countResend',
  `UPDATE bartleby.kafka_sends SET resends = resends + 1, outcome = ${SEND.publishing} WHERE event_id = $1`,
)
const endSend = sql(
  'kafka.endSend',
  'UPDATE bartleby.kafka_sends SET outcome = $2, settled_at = $3 WHERE event_id = $1',
)
const putReceipt = sql(
  'kafka.putReceipt',
  `UPDATE bartleby.kafka_sends SET outcome = ${SEND.published}, settled_at = $2, published_partition = $3, published_offset = $4
   WHERE event_id = $1`,
)

/** Where the broker put a record. */
export interface Receipt {
  readonly partition: number
  readonly offset: bigint
}

/** Keeps what is about to be sent. A value that is the letter's own is not kept twice. */
export async function keepSend(
  tx: Transaction,
  now: Instant,
  event: StoredEvent,
  send: { readonly eventId: EventId; readonly record: OutgoingRecord; readonly caller: Caller },
): Promise<void> {
  const { eventId, record, caller } = send
  const isOwn = sameBytes(record.value, event.value)
  await tx.run(
    insertSend,
    eventId,
    event.letterId,
    now,
    isOwn ? 1 : 0,
    record.topic,
    digestOf(record),
    caller.actor,
    caller.requestId,
    record.key,
    isOwn ? null : record.value,
    encodeHeaders(record.headers),
  )
}

/** What was sent under an id of this event. */
export async function sentRecord(
  session: Session,
  event: StoredEvent,
  eventId: EventId,
): Promise<OutgoingRecord> {
  const [row] = await session.rows<{
    value_kept: Integer
    target: string
    record_key: Uint8Array | null
    value: Uint8Array | null
    headers: Uint8Array
  }>(readSend, eventId)
  if (row === undefined) throw new Error(`what was sent as ${eventId} is not on file`)
  return {
    topic: row.target,
    key: row.record_key,
    value: Number(row.value_kept) === 1 ? event.value : row.value,
    headers: decodeHeaders(row.headers),
  }
}

/** It is sent once more. */
export const noteResend = (tx: Transaction, eventId: EventId): Promise<number> => tx.run(countResend, eventId)

/** What became of it, when the broker did not take it or nobody knows. */
export const noteSendEnd = (
  tx: Transaction,
  now: Instant,
  eventId: EventId,
  outcome: SendOutcome,
): Promise<number> => tx.run(endSend, eventId, outcome, now)

/** The broker took it. */
export const noteReceipt = (
  tx: Transaction,
  now: Instant,
  eventId: EventId,
  { partition, offset }: Receipt,
): Promise<number> => tx.run(putReceipt, eventId, now, partition, offset)

/** Of key and value, each with its length before it; −1 for none. */
function digestOf({ key, value }: OutgoingRecord): string {
  const hash = createHash('sha256')
  for (const bytes of [key, value]) {
    const length = Buffer.alloc(4)
    length.writeInt32BE(bytes?.length ?? -1)
    hash.update(length)
    if (bytes !== null) hash.update(bytes)
  }
  return hash.digest('hex')
}

const sameBytes = (one: Uint8Array | null, other: Uint8Array | null): boolean =>
  one === null || other === null ? one === other : Buffer.compare(one, other) === 0
