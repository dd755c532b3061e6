/**
 * Records become letters: the letter with its count and its history row, its event and its entry in the register of records. An event
 * that died again after it was sent reopens its letter, whatever the letter's state. It stands for the new record from then on; the one
 * before goes to its chain. Who held it meanwhile finds its claim and its event id gone.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { bury, type Death, type Taking } from '../../../letters/bury.ts'
import { captureStatement } from '../../../letters/capture.ts'
import type { LetterId } from '../../../letters/letter.ts'
import { type CaseRow, lockLettersOf } from '../../../letters/locked.ts'
import type { Registers } from '../../../letters/numbers/drawers.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { sql, type Transaction } from '../../../store/database.ts'
import { takeNumbers } from '../../../store/numbers.ts'
import { type EventId, STATE } from '../event.ts'
import { type KnownSend, readSendsByIds } from './known-records.ts'
import type { Sorted } from './store.ts'
import { correlationOf, type Entry, packed, unpacked } from './store-incoming.ts'
import {
  insertRecord,
  type RedriveOf,
  registration,
  renewAll,
  type Settled,
  settleOpenSends,
} from './store-renew.ts'

/** The letters that records may reopen, locked until the transaction ends. */
interface Cases {
  readonly letters: ReadonlyMap<LetterId, CaseRow>
  /** The publishes of these letters. */
  readonly sends: ReadonlyMap<EventId, KnownSend>
}

const NO_CASES: Cases = { letters: new Map(), sends: new Map() }

/** Locks the letters of publishes that records may have died of, and tells what is true of them from then on. */
export async function holdCases(tx: Transaction, ids: readonly EventId[]): Promise<Cases> {
  if (ids.length === 0) return NO_CASES
  const asked = await readSendsByIds(tx, ids)
  const letters = await lockLettersOf(tx, [...new Set([...asked.values()].map((send) => send.letterId))])
  // Read again: another server may have reopened one before its lock was ours.
  const sends = await readSendsByIds(tx, ids)
  return {
    letters,
    sends: new Map([...sends].filter(([, send]) => letters.has(send.letterId))),
  }
}

/** A record that died; `send` is the publish that it died of, when its letter is known. */
interface RecordDeath extends Death {
  readonly entry: Entry
  readonly send: EventId | null
}

/** Makes letters of records, or reopens those that they have; gives what turned out to be published by it. */
export async function buryRecords(
  work: OfficeWork,
  registers: Registers,
  redriveOf: RedriveOf,
  { created, reopened }: Sorted,
  { letters }: Cases,
): Promise<readonly Settled[]> {
  const deaths = [
    ...created.map((entry) => deathOf(work, entry, null)),
    ...reopened.map(({ entry, ...known }) => deathOf(work, entry, known)),
  ]
  const settled: Settled[] = []
  await bury(work, registers, takingRecords(work, redriveOf, letters, created.length, settled), deaths)
  return settled
}

function deathOf(
  { now }: OfficeWork,
  entry: Entry,
  known: { readonly letterId: LetterId; readonly send: EventId } | null,
): RecordDeath {
  const { record, dlqId, sourceId } = entry
  const place = { topic: record.topic, partition: record.partition, offset: record.offset.toString() }
  const sent = known === null ? {} : { event_id: known.send }
  return {
    entry,
    send: known?.send ?? null,
    cause: entry.cause,
    caseId: known?.letterId ?? null,
    sourceId,
    diedAs: sourceId,
    attempts: 1,
    grave: null,
    correlationId: correlationOf(entry),
    lastFailureAt: failedAt(entry, now),
    output: Buffer.from(JSON.stringify({ ...place, dlq_id: dlqId, ...sent })),
  }
}

const DAY_US = 86_400_000_000n

/** When the record was written, by what it says; the present where that cannot be. */
function failedAt({ record: { timestampMs } }: Entry, now: Instant): Instant {
  const at = timestampMs * 1000n
  return timestampMs < 0n || at > now + DAY_US ? now : instant(at)
}

const EVENT = `letter_id, order_ts, record_offset, intake, record_ts, same_key, lease_until, partition, attempts, state, value_null,
  dlq_id, event_id, service, original_topic, topic, claim, claimed_by, record_key, facts`

/** All of them in one statement: only inserts, beside one look for the letter of each source id. */
const captureMany = captureStatement(
  'kafka.capture',
  `given AS (
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

const insertEvent = sql('kafka.insertEvent', {
  postgres: '',
  sqlite: `INSERT INTO kafka_events (${EVENT})
    VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, 1, ${STATE.pending}, $8, $9, NULL, $10, $11, $12, NULL, NULL, $13, $14)`,
})

/** Records leave nothing behind: their events are made, or those of their letters become theirs. */
function takingRecords(
  work: OfficeWork,
  redriveOf: RedriveOf,
  letters: ReadonlyMap<LetterId, CaseRow>,
  created: number,
  settled: Settled[],
): Taking<RecordDeath> {
  const { tx } = work
  let intakes: number[] | null = null
  return {
    letters,
    refiles: true,
    async end(deaths, letters) {
      const round = deaths.flatMap(({ entry, caseId, send }) =>
        caseId === null || send === null ? [] : { entry, letterId: caseId, send },
      )
      settled.push(...(await settleOpenSends(work, round, letters, redriveOf)))
      await renewAll(work, round)
    },
    // Each has a note of its own, in this order: records are told apart by their correlation ids.
    all: (deaths) => ({ statement: captureMany, values: packed(deaths.map(({ entry }) => entry)) }),
    async each({ entry }, id) {
      intakes ??= await takeNumbers(tx, 'kafkaIntake', created)
      const { record, facts } = entry
      const { key, facts: packedFacts, ...content } = entry.bytes
      const intake = intakes.shift() ?? null
      const place = [entry.orderTs, record.offset, intake, record.timestampMs, entry.sameKey] as const
      const valueNull = record.value === null ? 1 : 0
      const names = [entry.dlqId, facts.service, facts.originalTopic, record.topic] as const
      await tx.run(insertEvent, id, ...place, record.partition, valueNull, ...names, key, packedFacts)
      await tx.run(insertRecord, ...registration(entry, id))
      return {
        itemCreatedAt: null,
        dequeueCount: 1,
        partition: record.partition,
        encoding: null,
        kind: content.kind,
        reference: content.reference,
        headers: content.headers,
        payload: content.payload,
      }
    },
  }
}
