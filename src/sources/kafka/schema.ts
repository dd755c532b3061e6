/**
 * The tables of Kafka.
 *
 * - `kafka_records`: the register of all records, by place and fingerprint. A record in it is never taken in again, even when its letter is
 *   long gone. Clients name the event by `dlq_id`; one that another record has taken over is spent.
 * - `kafka_events`: one row per letter, for the record that it stands for now. Open ones (state below 4) are the queue of their service, in
 *   the order of the contract; `kafka_in_flight` allows one in flight per service.
 * - `kafka_sends`: one row per minted id, with what was sent, to be sent again as it was.
 * - `kafka_chain`: earlier records of letters that died again.
 * - `kafka_partitions`: how far each partition was read. Whoever stores its records locks the row.
 * - `kafka_services`: one row per service, locked by whoever claims for it.
 *
 * Value and headers are the letter's. Instants are microseconds since 1970, times of records milliseconds.
 */
import { inSqlite, type Migration } from '../../store/migrations.ts'
import { STATE, UNPLACED } from './event.ts'

const OPEN = `state < ${STATE.published}`
const IN_FLIGHT = `state IN (${STATE.claimed}, ${STATE.publishing})`
const KEPT = `state <> ${STATE.discarded}`
const ORDER = 'order_ts, topic, partition, record_offset, intake'

const REGISTER = `
    CREATE TABLE bartleby.kafka_partitions (
      topic text COLLATE "C" NOT NULL,
      partition int NOT NULL,
      -- The order time of the record that was stored last.
      order_ts bigint NOT NULL,
      -- The offset behind the record that was stored last.
      next_offset bigint NOT NULL,
      received bigint NOT NULL,
      duplicates bigint NOT NULL,
      created bigint NOT NULL,
      reopened bigint NOT NULL,
      gaps bigint NOT NULL,
      PRIMARY KEY (topic, partition)
    );

    CREATE TABLE bartleby.kafka_records (
      topic text COLLATE "C" NOT NULL,
      partition int NOT NULL,
      record_offset bigint NOT NULL,
      fingerprint bytea NOT NULL,
      dlq_id uuid NOT NULL UNIQUE,
      letter_id bigint NOT NULL,
      PRIMARY KEY (topic, partition, record_offset, fingerprint)
    );
`

const EVENTS = `
    CREATE TABLE bartleby.kafka_events (
      letter_id bigint PRIMARY KEY,
      order_ts bigint NOT NULL,
      record_offset bigint NOT NULL,
      intake bigint NOT NULL,
      record_ts bigint NOT NULL,
      -- A hash of the key; NULL when there is no key.
      same_key bigint,
      lease_until bigint,
      partition int NOT NULL,
      attempts int NOT NULL,
      state smallint NOT NULL,
      value_null smallint NOT NULL,
      dlq_id uuid NOT NULL,
      -- The id of the current publish.
      event_id uuid,
      service text COLLATE "C" NOT NULL,
      original_topic text COLLATE "C" NOT NULL,
      topic text COLLATE "C" NOT NULL,
      -- Who holds it: one token for each claim.
      claim text,
      claimed_by text,
      record_key bytea,
      -- What was understood of the record: EventFacts.
      facts bytea NOT NULL
    ) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
    CREATE INDEX kafka_queue ON bartleby.kafka_events (service, ${ORDER}) WHERE ${OPEN};
    CREATE INDEX kafka_queue_of_topic ON bartleby.kafka_events (service, original_topic, ${ORDER}) WHERE ${OPEN};
    CREATE INDEX kafka_same_key ON bartleby.kafka_events (service, original_topic, same_key, ${ORDER}) WHERE same_key IS NOT NULL AND ${KEPT};
    CREATE UNIQUE INDEX kafka_in_flight ON bartleby.kafka_events (service) WHERE ${IN_FLIGHT};

    CREATE TABLE bartleby.kafka_sends (
      event_id uuid PRIMARY KEY,
      letter_id bigint NOT NULL,
      made_at bigint NOT NULL,
      settled_at bigint,
      -- Where the broker put it.
      published_offset bigint,
      published_partition int,
      resends int NOT NULL,
      -- 0 publishing, 1 uncertain, 2 published, 3 failed.
      outcome smallint NOT NULL,
      -- 1 when a record with this id as its original was taken in: it reopens its letter once.
      reopened smallint NOT NULL,
      -- 1 when the value sent is that of the letter at the time: then value is NULL.
      value_kept smallint NOT NULL,
      target text COLLATE "C" NOT NULL,
      -- SHA-256 of key and value.
      digest text NOT NULL,
      actor text NOT NULL,
      request_id text,
      record_key bytea,
      value bytea,
      headers bytea NOT NULL
    );
    CREATE INDEX kafka_sends_of_letter ON bartleby.kafka_sends (letter_id);
    CREATE INDEX kafka_sends_at ON bartleby.kafka_sends (target, published_partition, published_offset) WHERE published_offset IS NOT NULL;

    CREATE TABLE bartleby.kafka_chain (
      letter_id bigint NOT NULL,
      number int NOT NULL,
      record_offset bigint NOT NULL,
      record_ts bigint NOT NULL,
      superseded_at bigint NOT NULL,
      partition int NOT NULL,
      value_null smallint NOT NULL,
      dlq_id uuid NOT NULL,
      -- What was sent of it.
      event_id uuid,
      topic text COLLATE "C" NOT NULL,
      facts bytea NOT NULL,
      record_key bytea,
      headers bytea,
      value bytea,
      PRIMARY KEY (letter_id, number)
    );
`

export const kafkaMigration: Migration = {
  number: 7,
  name: 'kafka',
  postgres: `
    CREATE SEQUENCE bartleby.kafka_intake AS bigint;
    CREATE TABLE bartleby.kafka_services (service text COLLATE "C" PRIMARY KEY);
    ${REGISTER}
    ${EVENTS}
  `,
  sqlite: `
    INSERT INTO serials VALUES ('kafka_intake', 0);
    CREATE TABLE kafka_services (service TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    ${inSqlite(REGISTER)}
    ${inSqlite(EVENTS, 'STRICT')}
  `,
}

/** For a record that comes back from an unknown place. */
export const unplacedSendsMigration: Migration = {
  number: 14,
  name: 'unplaced sends',
  postgres: `CREATE INDEX kafka_sends_unplaced ON bartleby.kafka_sends (target, made_at) WHERE ${UNPLACED};`,
  sqlite: `CREATE INDEX kafka_sends_unplaced ON kafka_sends (target, made_at) WHERE ${UNPLACED};`,
}
