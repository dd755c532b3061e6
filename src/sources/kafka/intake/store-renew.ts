/**
 * Letters and events become those of the records that they died of again; what they were goes to their chains. Publishes that nobody
 * knew the end of, and whose event came back, did happen.
 */

import { change } from '../../../letters/change.ts'
import { renewContents, renewingContents } from '../../../letters/contents.ts'
import { type LetterId, letterId, RETRIED, type RedriveRef, sentBy } from '../../../letters/letter.ts'
import { type CaseRow, sentBack } from '../../../letters/locked.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { type Session, type Statement, sql, type Value } from '../../../store/database.ts'
import { takeNumbers } from '../../../store/numbers.ts'
import { orNull, rowShape, text } from '../../../store/row.ts'
import { dlqId, type EventFacts, eventId, KAFKA, SEND, STATE, stateOf } from '../event.ts'
import {
  correlationOf,
  type Entry,
  PACKED_PARAMETERS,
  packed,
  type Reopening,
  unpacked,
} from './store-incoming.ts'

const LINK = `letter_id, number, record_offset, record_ts, superseded_at, partition, value_null, dlq_id, event_id, topic, facts, record_key,
  headers, value`

/** What goes to the chain of a letter: its record so far. Its value too, unless the next record has the same. */
const linkOf = (next: {
  readonly payload: string
  readonly valueNull: string
  readonly empty: string
}): string =>
  `event.attempts, event.record_offset, event.record_ts, $now, event.partition, event.value_null, event.dlq_id, $send, event.topic,
   event.facts, event.record_key, letter.headers,
   CASE WHEN letter.payload IS NOT DISTINCT FROM ${next.payload} AND event.value_null = ${next.valueNull} THEN NULL
     ELSE coalesce(letter.payload, ${next.empty}) END`

const [IDS, CORRELATIONS, SENDS, NOW] = [1, 2, 3, 4].map((n) => `$${PACKED_PARAMETERS + n}`)

/** All of them in one statement: each event and each letter by primary key, one row more in the chain and in the register. */
const renewMany = sql('kafka.renewMany', {
  postgres: `
    WITH given AS (
      SELECT nextval('bartleby.kafka_intake') AS intake, reopened.letter_id, reopened.correlation_id, reopened.send, record.*
      FROM (${unpacked(1)}) AS record
      JOIN unnest(${IDS}::bigint[], ${CORRELATIONS}::text[], ${SENDS}::uuid[]) WITH ORDINALITY
        AS reopened (letter_id, correlation_id, send, n) ON reopened.n = record.n
    ), chained AS (
      INSERT INTO bartleby.kafka_chain (${LINK})
      SELECT given.letter_id, ${linkOf({
        payload: 'given.payload',
        valueNull: 'given.value_null',
        empty: "''::bytea",
      })
        .replace('$now', `${NOW}`)
        .replace('$send', 'given.send')}
      FROM given
      JOIN bartleby.kafka_events AS event ON event.letter_id = given.letter_id
      JOIN bartleby.letters AS letter ON letter.id = given.letter_id
    ), registered AS (
      INSERT INTO bartleby.kafka_records (topic, partition, record_offset, fingerprint, dlq_id, letter_id)
      SELECT topic, partition, record_offset, fingerprint, dlq_id, letter_id FROM given
    ), renewed AS (
      UPDATE bartleby.kafka_events AS event SET order_ts = given.order_ts, record_offset = given.record_offset,
        intake = given.intake, record_ts = given.record_ts, same_key = given.same_key, lease_until = NULL,
        partition = given.partition, attempts = event.attempts + 1, state = ${STATE.pending}, value_null = given.value_null,
        dlq_id = given.dlq_id, event_id = NULL, service = given.service, original_topic = given.original_topic,
        topic = given.topic, claim = NULL, claimed_by = NULL, record_key = given.key, facts = given.facts
      FROM given WHERE event.letter_id = given.letter_id
    )
    ${renewingContents('given', `${IDS}`)}`,
  sqlite: '',
})

const keepLink = sql('kafka.keepLink', {
  postgres: '',
  sqlite: `INSERT INTO kafka_chain (${LINK})
    SELECT event.letter_id, ${linkOf({ payload: '$4', valueNull: '$5', empty: "x''" })
      .replace('$now', '$2')
      .replace('$send', '$3')}
    FROM kafka_events AS event CROSS JOIN letters AS letter ON letter.id = event.letter_id WHERE event.letter_id = $1`,
})
const renewEvent = sql('kafka.renewEvent', {
  postgres: '',
  sqlite: `UPDATE kafka_events SET order_ts = $2, record_offset = $3, record_ts = $4, same_key = $5, lease_until = NULL,
      partition = $6, attempts = attempts + 1, state = ${STATE.pending}, value_null = $7, dlq_id = $8, event_id = NULL,
      service = $9, original_topic = $10, topic = $11, claim = NULL, claimed_by = NULL, record_key = $12, facts = $13, intake = $14
    WHERE letter_id = $1`,
})

/** Renews the letters and events of these reopenings, each of another letter. */
export async function renewAll(work: OfficeWork, round: readonly Reopening[]): Promise<void> {
  const { tx, now } = work
  if (tx.dialect === 'postgres') {
    await tx.run(
      renewMany,
      ...packed(round.map(({ entry }) => entry)),
      round.map(({ letterId }) => letterId),
      round.map(({ entry }) => correlationOf(entry)),
      round.map(({ send }) => send),
      now,
    )
    return
  }
  const intakes = await takeNumbers(tx, 'kafkaIntake', round.length)
  const write = (
    statement: Statement,
    values: (each: Reopening, index: number) => Value[],
  ): Promise<unknown> => tx.runEach(statement, round.map(values))
  const isNull = ({ record }: Entry): number => (record.value === null ? 1 : 0)
  await write(keepLink, ({ entry, letterId, send }) => [
    ...[letterId, now, send, entry.bytes.payload, isNull(entry)],
  ])
  await write(renewEvent, ({ entry, letterId }, index) => [
    ...[letterId, entry.orderTs, entry.record.offset, entry.record.timestampMs, entry.sameKey],
    ...[entry.record.partition, isNull(entry), entry.dlqId, entry.facts.service, entry.facts.originalTopic],
    ...[entry.record.topic, entry.bytes.key, entry.bytes.facts, intakes[index] ?? null],
  ])
  await write(renewContents, ({ entry, letterId }) => [
    ...[letterId, correlationOf(entry), entry.record.partition, entry.bytes.kind, entry.bytes.reference],
    ...[entry.bytes.headers, entry.bytes.payload],
  ])
  await write(insertRecord, ({ entry, letterId }) => registration(entry, letterId))
}

export const insertRecord = sql('kafka.insertRecord', {
  postgres: '',
  sqlite: `INSERT INTO kafka_records (topic, partition, record_offset, fingerprint, dlq_id, letter_id)
    VALUES ($1, $2, $3, $4, $5, $6)`,
})

export const registration = ({ record, dlqId, fingerprint }: Entry, id: LetterId): Value[] => [
  record.topic,
  record.partition,
  record.offset,
  fingerprint,
  dlqId,
  id,
]

/** Names the redrive with a number; null when there is none any more. */
export type RedriveOf = (session: Session, number: number) => Promise<RedriveRef | null>

/** The queue of an event that turned out to be published. */
export type Settled = Pick<EventFacts, 'service' | 'originalTopic'>

const IS_OPEN = `event.event_id = send.event_id AND event.state IN (${STATE.claimed}, ${STATE.publishing}, ${STATE.uncertain})`

const OPEN = rowShape({
  ...{ letterId, eventId, target: text, actor: text, requestId: orNull(text) },
  ...{ dlqId, service: text, originalTopic: text, state: stateOf },
})

/** The current publishes of events that are not settled, and their events; both by primary key. */
const readOpen = sql(
  'kafka.openSends',
  `SELECT send.letter_id, send.event_id, send.target, send.actor, send.request_id, event.dlq_id, event.service,
     event.original_topic, event.state
   FROM bartleby.kafka_sends AS send JOIN bartleby.kafka_events AS event ON event.letter_id = send.letter_id
   WHERE send.event_id = ANY($1::uuid[]) AND ${IS_OPEN}`,
  { bigints: true },
)

/** By primary key. What came back was published, whatever was known of it; it reopens its letter once. */
const spendSends = sql(
  'kafka.spendSends',
  `UPDATE bartleby.kafka_sends SET reopened = 1, outcome = ${SEND.published}, settled_at = coalesce(settled_at, $2)
   WHERE event_id = ANY($1::uuid[])`,
)

/**
 * Notes that what came back was published, whatever was known of it. Where nobody knew, its letter is resolved by it now, before it dies
 * again; gives those that were uncertain.
 */
export async function settleOpenSends(
  work: OfficeWork,
  round: readonly Reopening[],
  cases: Map<LetterId, CaseRow>,
  redriveOf: RedriveOf,
): Promise<Settled[]> {
  const { tx, now } = work
  const ids = round.map(({ send }) => send)
  const open = (await tx.rows<object>(readOpen, ids)).map(OPEN.read)
  await tx.run(spendSends, ids, now)
  for (const { letterId: id, eventId: sentAs, target: sentTo, actor, requestId, dlqId } of open) {
    const known = cases.get(id)
    if (known === undefined) throw new Error(`letter ${id} is gone although it was locked`)
    const redrive = known.redrive === null ? undefined : ((await redriveOf(tx, known.redrive)) ?? undefined)
    const details = {
      request_id: requestId,
      dlq_id: dlqId,
      event_id: sentAs,
      topic: sentTo,
      ...sentBy(redrive),
    }
    const sent = { id, engine: KAFKA, sentAs, sentTo, details }
    await change(work, 'retry', [sent], { actor, notes: RETRIED, redrive })
    cases.set(id, sentBack(known))
  }
  // Who is publishing it counts it when the broker answers.
  return open.filter(({ state }) => state === STATE.uncertain)
}
