/**
 * The way back of letters that came from DLQ topics, as the office sees it. They leave over a network, so the return path claims,
 * sends and settles them itself; here is what happens to the dead event of a letter that an operator discards, lets expire or
 * restores, and of letters that are removed for good.
 */
import { failure } from '../core/errors.ts'
import { type Integer, type Statement, sql } from '../db/database.ts'
import { idList } from '../letters/id-list.ts'
import type { Departing, LetterSource, Refused } from '../letters/source.ts'
import { KAFKA, KAFKA_OPERATIONS, STATE } from './event.ts'
import { SEND } from './send.ts'

/** How letters go back to their service; the return path does it. */
export type LetterReturn = Required<Pick<LetterSource, 'render' | 'sendOutside'>>

export interface KafkaSourceOptions {
  /** null: Kafka is not enabled on this server. */
  readonly returnWay: () => LetterReturn | null
  /** Told of events that the office discards or lets expire. */
  readonly discarded?: (service: string, topic: string) => void
}

/** The source of letters that came from Kafka. */
export function kafkaLetterSource({ returnWay, discarded }: KafkaSourceOptions): LetterSource {
  return {
    name: KAFKA,
    operations: { discard: KAFKA_OPERATIONS.discarded },
    render: async (read, letters, edits) =>
      returnWay()?.render(read, letters, edits) ?? letters.map(notEnabled),
    sendOutside: async (letters, edits, sending) =>
      returnWay()?.sendOutside(letters, edits, sending) ?? letters.map(notEnabled),
    // What is on a topic cannot be taken back.
    recall: async () => ({ outcome: 'gone' }),
    async lift(work, letters) {
      const { tx } = work
      const ids = idList(tx.dialect, letters)
      const events = await tx.rows<LiftedEvent>(lockEvents, ids)
      const busy = events.find(
        ({ state }) => Number(state) === STATE.claimed || Number(state) === STATE.publishing,
      )
      if (busy !== undefined) throw failure('letter_service_busy', { service: busy.service })
      await tx.run(discardEvents, ids)
      work.afterCommit(() => {
        for (const { service, original_topic: topic } of events) discarded?.(service, topic)
      })
    },
    async lay({ tx }, letters) {
      await tx.run(layEvents, idList(tx.dialect, letters))
    },
    async forget({ tx }, letters) {
      const ids = idList(
        tx.dialect,
        letters.map((id) => ({ id })),
      )
      await Promise.all(FORGETTING.map((statement) => tx.run(statement, ids)))
    },
  }
}

const notEnabled = (letter: Departing): Refused => ({ letter, refusal: failure('kafka_not_enabled') })

interface LiftedEvent {
  readonly service: string
  readonly original_topic: string
  readonly state: Integer
}

const THESE = {
  postgres: 'letter_id = ANY($1::bigint[])',
  sqlite: 'letter_id IN (SELECT value FROM json_each($1))',
}

/** Events by primary key, locked in its order; their letters are locked. */
const lockEvents = sql('kafka.lockEventsToLift', {
  postgres: `SELECT service, original_topic, state FROM bartleby.kafka_events WHERE ${THESE.postgres} ORDER BY letter_id FOR UPDATE`,
  sqlite: `SELECT service, original_topic, state FROM kafka_events WHERE ${THESE.sqlite}`,
})

/** By primary key. The id of a publish that nobody knows the end of stays: the event may have been published. */
const DISCARD = `UPDATE bartleby.kafka_events SET state = ${STATE.discarded}, claim = NULL, claimed_by = NULL, lease_until = NULL`
const discardEvents = sql('kafka.discardEvents', {
  postgres: `${DISCARD} WHERE ${THESE.postgres}`,
  sqlite: `${DISCARD} WHERE ${THESE.sqlite}`,
})

/**
 * By primary key, and the send of each by its own. An event whose publish has no known end is what it was before it was discarded:
 * pending, it would be published a second time without a word.
 */
const OPEN_END = `(SELECT outcome FROM bartleby.kafka_sends AS send WHERE send.event_id = kafka_events.event_id) = ${SEND.uncertain}`
const LAY = `UPDATE bartleby.kafka_events SET claim = NULL, claimed_by = NULL, lease_until = NULL,
  state = CASE WHEN ${OPEN_END} THEN ${STATE.uncertain} ELSE ${STATE.pending} END,
  event_id = CASE WHEN ${OPEN_END} THEN event_id END`
const layEvents = sql('kafka.layEvents', {
  postgres: `${LAY} WHERE ${THESE.postgres}`,
  sqlite: `${LAY} WHERE ${THESE.sqlite}`,
})

/** What is kept about letters, by primary keys and kafka_sends_of_letter. The register of records stays: it keeps copies out. */
const FORGETTING: readonly Statement[] = (['kafka_events', 'kafka_chain', 'kafka_sends'] as const).map(
  (table) =>
    sql(`kafka.forget.${table}`, {
      postgres: `DELETE FROM bartleby.${table} WHERE ${THESE.postgres}`,
      sqlite: `DELETE FROM ${table} WHERE ${THESE.sqlite}`,
    }),
)
