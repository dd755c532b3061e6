/**
 * The same store's dead events: the letters with the lowest numbers have one each. Half are of one service, a quarter are of nobody;
 * most are published, and every tenth of the open ones has the key that the statements under test ask for.
 */
import type { Instant } from '../../src/core/clock.ts'
import { UNKNOWN } from '../../src/sources/kafka/event.ts'
import { sameKeyOf } from '../../src/sources/kafka/stored-event.ts'

/** The service that has half of the events, and where they came from. */
export const SERVICE = 'service-0'
export const ORIGINAL_TOPIC = 'original'
export const TOPIC = 'dead'
export const KEY = 'key'
/** Services that have one event in flight each. */
export const FLYING = 10

const uuid = (kind: number, number: string) =>
  `('0000000${kind}-0000-4000-8000-' || lpad((${number})::text, 12, '0'))::uuid`
/** The nth id of a kind: 1 names records, 2 was minted for publishes. */
export const uuidOf = (kind: 1 | 2, number: number): string =>
  `0000000${kind}-0000-4000-8000-${String(number).padStart(12, '0')}`

/** SQL that fills the tables of Kafka with so many events, twice as many records, and a tenth as many services and partitions. */
export function kafkaScript(events: number, now: Instant): string {
  const state = `CASE WHEN n <= ${FLYING} THEN 2 WHEN n % 10 < 2 THEN 0 WHEN n % 10 = 2 THEN 5 ELSE 4 END`
  const service = `CASE WHEN n <= ${FLYING} THEN 'flying-' || n WHEN n % 4 < 2 THEN '${SERVICE}' WHEN n % 4 = 2 THEN '${UNKNOWN}'
    ELSE 'service-' || 1 + n % 20 END`
  return `
    INSERT INTO bartleby.kafka_partitions SELECT '${TOPIC}', n, ${now}, n, n, 0, n, 0, 0 FROM generate_series(0, ${events / 10}) AS n;
    INSERT INTO bartleby.kafka_services SELECT 'service-' || n FROM generate_series(0, ${events / 10}) AS n;
    INSERT INTO bartleby.kafka_records
      SELECT '${TOPIC}', n % 3, n, sha256(n::text::bytea), ${uuid(1, 'n')}, 1 + n % ${events} FROM generate_series(1, ${events * 2}) AS n;
    INSERT INTO bartleby.kafka_events (letter_id, order_ts, record_offset, intake, record_ts, same_key, lease_until, partition, attempts,
        state, value_null, dlq_id, event_id, service, original_topic, topic, claim, claimed_by, record_key, facts)
      SELECT n, ${now / 1000n} + n, n, n, ${now / 1000n} + n,
        CASE WHEN n % 10 = 1 THEN ${sameKeyOf(Buffer.from(KEY))} ELSE n END, CASE WHEN state = 2 THEN ${now} END, n % 3,
        CASE WHEN n % 10 = 0 THEN 2 ELSE 1 END, state, 0, ${uuid(1, 'n')}, CASE WHEN state IN (2, 4) THEN ${uuid(2, 'n')} END, ${service},
        CASE WHEN n % 100 < 90 THEN '${ORIGINAL_TOPIC}' ELSE 'original-' || n % 5 END, '${TOPIC}', CASE WHEN state = 2 THEN 'claim' END, CASE WHEN state = 2 THEN 'server' END,
        convert_to(CASE WHEN n % 10 = 1 THEN '${KEY}' ELSE n::text END, 'UTF8'), '\\x7b7d'
      FROM (SELECT n, ${state} AS state FROM generate_series(1, ${events}) AS n) AS event;
    INSERT INTO bartleby.kafka_sends (event_id, letter_id, made_at, settled_at, published_offset, published_partition, resends, outcome,
        reopened, value_kept, target, digest, actor, headers)
      SELECT ${uuid(2, 'n')}, n, ${now}, ${now}, n, n % 3, 0, CASE WHEN n <= ${FLYING} THEN 0 ELSE 2 END, 0, 1, 'retry', 'digest', 'actor',
        '\\x5b5d'
      FROM generate_series(1, ${events}) AS n;
    INSERT INTO bartleby.kafka_chain (letter_id, number, record_offset, record_ts, superseded_at, partition, value_null, dlq_id, event_id,
        topic, facts, headers)
      SELECT n, 1, n, n, ${now}, n % 3, 0, ${uuid(1, `${events} + n`)}, ${uuid(2, 'n')}, '${TOPIC}', '\\x7b7d', '\\x5b5d'
      FROM generate_series(10, ${events}, 10) AS n;
    INSERT INTO bartleby.places (source, engine, queue)
      SELECT 'kafka', 'kafka', 'service-' || n || '/original' FROM generate_series(0, 50) AS n;
    INSERT INTO bartleby.drawers (source, engine, queue, signature, place)
      SELECT source, engine, queue, 1, id FROM bartleby.places WHERE source = 'kafka';`
}
