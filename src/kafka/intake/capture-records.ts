/** Records become letters: the letter with its count and its history row, its event and its entry in the register of records. */
import { sql, type Transaction, type Value } from '../../db/database.ts'
import {
  type CapturedRow,
  capture,
  captureStatement,
  countCaptured,
  noteList,
} from '../../letters/capture.ts'
import type { DeathNote } from '../../letters/death-note.ts'
import type { LetterId } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { KAFKA, STATE } from '../event.ts'
import type { Entry } from './store-incoming.ts'
import { bytesOf, packed, sameKey, unpacked } from './store-packed.ts'

const EVENT = `letter_id, order_ts, record_offset, intake, record_ts, same_key, lease_until, partition, attempts, state, value_null,
  dlq_id, event_id, service, original_topic, topic, claim, claimed_by, record_key, facts`

/** All of them in one statement: only inserts, beside one look for the letter of each source id. */
const captureMany = captureStatement(
  'kafka.capture',
  `given AS MATERIALIZED (
     SELECT nextval('bartleby.letter_ids') AS letter_id, nextval('bartleby.kafka_intake') AS intake, record.*
     FROM (${unpacked(2)}) AS record
   ), events AS (
     INSERT INTO bartleby.kafka_events (${EVENT})
     SELECT letter_id, order_ts, record_offset, intake, record_ts, same_key, NULL, partition, 1, ${STATE.pending}, value_null, dlq_id,
       NULL, service, original_topic, topic, NULL, NULL, key, facts FROM given
   ), records AS (
     INSERT INTO bartleby.kafka_records (topic, partition, record_offset, fingerprint, dlq_id, letter_id)
     SELECT topic, partition, record_offset, fingerprint, dlq_id, letter_id FROM given
   ), taken AS (
     SELECT letter_id, n::int AS note, topic || ':' || partition || ':' || record_offset || ':' || encode(fingerprint, 'hex') AS source_id,
       false AS skipped, NULL::bigint AS item_created_at, NULL::bigint AS laid_at, NULL::bigint AS serial, NULL::int AS part,
       1 AS dequeue_count, partition, NULL::text AS dead_queue, NULL::bytea AS encoding, kind, reference, headers, payload FROM given
   )`,
)

const nextIntake = sql('kafka.nextIntake', {
  postgres: '',
  sqlite: `UPDATE serials SET last = last + $1 WHERE name = 'kafka_intake' RETURNING last`,
})

const insertEvent = sql('kafka.insertEvent', {
  postgres: '',
  sqlite: `INSERT INTO kafka_events (${EVENT})
    VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, 1, ${STATE.pending}, $8, $9, NULL, $10, $11, $12, NULL, NULL, $13, $14)`,
})

/** The register of records. */
export const insertRecord = sql('kafka.insertRecord', {
  postgres: '',
  sqlite: `INSERT INTO kafka_records (topic, partition, record_offset, fingerprint, dlq_id, letter_id)
    VALUES ($1, $2, $3, $4, $5, $6)`,
})

/** Makes a letter of each; `notes` are theirs, in their order. */
export async function captureRecords(
  work: OfficeWork,
  entries: readonly Entry[],
  notes: readonly DeathNote[],
): Promise<void> {
  if (entries.length === 0) return
  if (work.tx.dialect === 'sqlite') return captureEach(work, entries, notes)
  const rows = await work.tx.rows<CapturedRow>(captureMany, noteList(notes), ...packed(entries))
  const { captured } = countCaptured(work, notes, rows)
  if (captured !== entries.length) {
    throw new Error(`of ${entries.length} ${KAFKA} records only ${captured} became letters`)
  }
}

async function captureEach(
  work: OfficeWork,
  entries: readonly Entry[],
  notes: readonly DeathNote[],
): Promise<void> {
  const { tx } = work
  const before = await takeIntakes(tx, entries.length)
  const events: Value[][] = []
  const records: Value[][] = []
  for (const [index, entry] of entries.entries()) {
    const note = notes[index]
    if (note === undefined) throw new Error('a record died of nothing')
    const { record, facts, dlqId, orderTs } = entry
    const bytes = bytesOf(entry)
    const id = await capture(work, note, {
      caseId: null,
      sourceId: entry.sourceId,
      itemCreatedAt: null,
      dequeueCount: 1,
      partition: record.partition,
      grave: null,
      encoding: null,
      kind: bytes.kind,
      reference: bytes.reference,
      headers: bytes.headers,
      payload: bytes.payload,
    })
    if (id === null) throw new Error(`record ${entry.sourceId} is not known, and its letter is`)
    events.push([
      id,
      orderTs,
      record.offset,
      before + index + 1,
      record.timestampMs,
      sameKey(entry),
      record.partition,
      record.value === null ? 1 : 0,
      dlqId,
      facts.service,
      facts.originalTopic,
      record.topic,
      bytes.key,
      bytes.facts,
    ])
    records.push(registration(entry, id))
  }
  await tx.runEach(insertEvent, events)
  await tx.runEach(insertRecord, records)
}

/** Takes numbers of the intake sequence on SQLite; gives the one before the first of them. */
export async function takeIntakes(tx: Transaction, count: number): Promise<number> {
  const [row] = await tx.rows<{ last: number }>(nextIntake, count)
  if (row === undefined) throw new Error('there is no intake sequence')
  return row.last - count
}

/** The values of `insertRecord`. */
export const registration = ({ record, dlqId, fingerprint }: Entry, id: LetterId): Value[] => [
  record.topic,
  record.partition,
  record.offset,
  fingerprint,
  dlqId,
  id,
]
