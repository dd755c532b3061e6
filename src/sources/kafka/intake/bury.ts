/**
 * Records become letters: one transaction for letter, count, history row, event and register. An event that died again after it was sent
 * reopens its letter, whatever its state; the record before goes to the chain, and whoever held the event finds its claim gone.
 */
import { type Instant, instant } from '../../../core/clock.ts'
import { bury, type Death, type Taking } from '../../../letters/bury.ts'
import { captureStatement } from '../../../letters/capture.ts'
import { change } from '../../../letters/change.ts'
import { renewContents, renewingContents } from '../../../letters/contents.ts'
import { type LetterId, letterId, RETRIED, type RedriveRef, sentBy } from '../../../letters/letter.ts'
import { type CaseRow, lockLettersOf, sentBack } from '../../../letters/locked.ts'
import type { Registers } from '../../../letters/registers.ts'
import type { OfficeWork } from '../../../letters/work.ts'
import { type Session, type Statement, sql, type Transaction, type Value } from '../../../store/database.ts'
import { takeNumbers } from '../../../store/numbers.ts'
import { orNull, rowShape, text } from '../../../store/row.ts'
import { dlqId, type EventFacts, type EventId, eventId, KAFKA, SEND, STATE, stateOf } from '../event.ts'
import { type KnownSend, readSendsByIds } from './known-records.ts'
import type { Sorted } from './store.ts'
import {
  correlationOf,
  type Entry,
  PACKED_PARAMETERS,
  packed,
  type Reopening,
  unpacked,
} from './store-incoming.ts'

interface Cases {
  readonly letters: ReadonlyMap<LetterId, CaseRow>
  readonly sends: ReadonlyMap<EventId, KnownSend>
}

const NO_CASES: Cases = { letters: new Map(), sends: new Map() }

/** Locks the letters of publishes that records may have died of. */
export async function holdCases(tx: Transaction, ids: readonly EventId[]): Promise<Cases> {
  if (ids.length === 0) return NO_CASES
  const asked = await readSendsByIds(tx, ids)
  const letters = await lockLettersOf(tx, [...new Set([...asked.values()].map((send) => send.letterId))])
  // Another server may have reopened one before we had its lock.
  const sends = await readSendsByIds(tx, ids)
  return {
    letters,
    sends: new Map([...sends].filter(([, send]) => letters.has(send.letterId))),
  }
}

/** `send` is the publish that the record died of, when its letter is known. */
interface RecordDeath extends Death {
  readonly entry: Entry
  readonly send: EventId | null
}

/** Makes letters of records, or reopens theirs. Returns the publishes that this settled. */
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
    position: null,
    correlationId: correlationOf(entry),
    lastFailureAt: failedAt(entry, now),
    output: Buffer.from(JSON.stringify({ ...place, dlq_id: dlqId, ...sent })),
  }
}

const DAY_US = 86_400_000_000n

/** When the record was written; now, where its own time cannot be true. */
function failedAt({ record: { timestampMs } }: Entry, now: Instant): Instant {
  const at = timestampMs * 1000n
  return timestampMs < 0n || at > now + DAY_US ? now : instant(at)
}

const EVENT = `letter_id, order_ts, record_offset, intake, record_ts, same_key, lease_until, partition, attempts, state, value_null,
  dlq_id, event_id, service, original_topic, topic, claim, claimed_by, record_key, facts`

/** One statement for all: inserts only, and one look for the letter of each source id. */
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
    // One note each, in this order: correlation ids tell records apart.
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

const LINK = `letter_id, number, record_offset, record_ts, superseded_at, partition, value_null, dlq_id, event_id, topic, facts, record_key,
  headers, value`

/** The row of the chain: the record so far, with its value unless the next record has the same. */
const linkOf = (next: Readonly<Record<'payload' | 'valueNull' | 'empty' | 'now' | 'send', string>>): string =>
  `event.attempts, event.record_offset, event.record_ts, ${next.now}, event.partition, event.value_null, event.dlq_id, ${next.send},
   event.topic, event.facts, event.record_key, letter.headers,
   CASE WHEN letter.payload IS NOT DISTINCT FROM ${next.payload} AND event.value_null = ${next.valueNull} THEN NULL
     ELSE coalesce(letter.payload, ${next.empty}) END`

const [IDS, CORRELATIONS, SENDS, NOW] = [1, 2, 3, 4].map((n) => `$${PACKED_PARAMETERS + n}`)

const GIVEN_LINK = linkOf({
  ...{ payload: 'given.payload', valueNull: 'given.value_null', empty: "''::bytea" },
  ...{ now: `${NOW}`, send: 'given.send' },
})

/** One statement for all: event and letter by primary key, one more row in chain and register. */
const renewMany = sql('kafka.renewMany', {
  postgres: `
    WITH given AS (
      SELECT nextval('bartleby.kafka_intake') AS intake, reopened.letter_id, reopened.correlation_id, reopened.send, record.*
      FROM (${unpacked(1)}) AS record
      JOIN unnest(${IDS}::bigint[], ${CORRELATIONS}::text[], ${SENDS}::uuid[]) WITH ORDINALITY
        AS reopened (letter_id, correlation_id, send, n) ON reopened.n = record.n
    ), chained AS (
      INSERT INTO bartleby.kafka_chain (${LINK})
      SELECT given.letter_id, ${GIVEN_LINK}
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
    SELECT event.letter_id, ${linkOf({ payload: '$4', valueNull: '$5', empty: "x''", now: '$2', send: '$3' })}
    FROM kafka_events AS event CROSS JOIN letters AS letter ON letter.id = event.letter_id WHERE event.letter_id = $1`,
})
const renewEvent = sql('kafka.renewEvent', {
  postgres: '',
  sqlite: `UPDATE kafka_events SET order_ts = $2, record_offset = $3, record_ts = $4, same_key = $5, lease_until = NULL,
      partition = $6, attempts = attempts + 1, state = ${STATE.pending}, value_null = $7, dlq_id = $8, event_id = NULL,
      service = $9, original_topic = $10, topic = $11, claim = NULL, claimed_by = NULL, record_key = $12, facts = $13, intake = $14
    WHERE letter_id = $1`,
})

async function renewAll(work: OfficeWork, round: readonly Reopening[]): Promise<void> {
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

const insertRecord = sql('kafka.insertRecord', {
  postgres: '',
  sqlite: `INSERT INTO kafka_records (topic, partition, record_offset, fingerprint, dlq_id, letter_id)
    VALUES ($1, $2, $3, $4, $5, $6)`,
})

const registration = ({ record, dlqId, fingerprint }: Entry, id: LetterId): Value[] => [
  record.topic,
  record.partition,
  record.offset,
  fingerprint,
  dlqId,
  id,
]

export type RedriveOf = (session: Session, number: number) => Promise<RedriveRef | null>

export type Settled = Pick<EventFacts, 'service' | 'originalTopic'>

const IS_OPEN = `event.event_id = send.event_id AND event.state IN (${STATE.claimed}, ${STATE.publishing}, ${STATE.uncertain})`

const OPEN = rowShape({
  ...{ letterId, eventId, target: text, actor: text, requestId: orNull(text) },
  ...{ dlqId, service: text, originalTopic: text, state: stateOf },
})

/** Unsettled publishes and their events, both by primary key. */
const readOpen = sql(
  'kafka.openSends',
  `SELECT send.letter_id, send.event_id, send.target, send.actor, send.request_id, event.dlq_id, event.service,
     event.original_topic, event.state
   FROM bartleby.kafka_sends AS send JOIN bartleby.kafka_events AS event ON event.letter_id = send.letter_id
   WHERE send.event_id = ANY($1::uuid[]) AND ${IS_OPEN}`,
  { bigints: true },
)

/** By primary key. A record that came back was published, and reopens its letter once. */
const spendSends = sql(
  'kafka.spendSends',
  `UPDATE bartleby.kafka_sends SET reopened = 1, outcome = ${SEND.published}, settled_at = coalesce(settled_at, $2)
   WHERE event_id = ANY($1::uuid[])`,
)

/**
 * Settles publishes whose record came back: it was published, so its letter is resolved before it dies again. Returns those that were
 * uncertain.
 */
async function settleOpenSends(
  work: OfficeWork,
  round: readonly Reopening[],
  cases: Map<LetterId, CaseRow>,
  redriveOf: RedriveOf,
): Promise<Settled[]> {
  const { tx, now } = work
  const ids = round.map(({ send }) => send)
  const open = await OPEN.all(tx, readOpen, ids)
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
  // The server that is publishing it counts it when the broker answers.
  return open.filter(({ state }) => state === STATE.uncertain)
}
