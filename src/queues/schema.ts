/**
 * The tables that queues own.
 *
 * `items` is the hot table, shaped by what a lease costs:
 * - The key is (part, shelf, id). A part is one partition of one queue. The shelf keeps scheduled and held items out of the range that
 *   leases scan.
 * - No index mentions a column that a lease changes (leased, lease_deadline, attempts). The update on PostgreSQL is then heap-only: 66,000
 *   leased and completed per second instead of 32,000 with an index on lease_deadline (decision 2). fillfactor 50 leaves room on the page
 *   for the second version of every row.
 * - `lease_batches` keeps when leases end: one row per lease statement with the runs of serials it leased.
 *
 * Instants are microseconds since 1970; NULL is the zero time. Callers' text is stored as bytes, because U+0000 is legal in it and not in
 * PostgreSQL's text; NULL is the empty string.
 */
import { inSqlite, type Migration } from '../store/migrations.ts'

export const SHELF = { queue: 0, scheduled: 1, held: 2 } as const

const QUEUES = `
    CREATE TABLE bartleby.queues (
      id int PRIMARY KEY,
      name text COLLATE "C" NOT NULL UNIQUE,
      -- Grows with every update; a cycle that worked with an older version is rolled back and run again.
      version int NOT NULL DEFAULT 1,
      namespace text NOT NULL,
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL,
      lease_timeout_ns bigint NOT NULL,
      expire_timeout_ns bigint NOT NULL,
      max_attempts int NOT NULL,
      requested_partitions int NOT NULL,
      dead_queue text COLLATE "C",
      reference bytea
    );
    CREATE INDEX queues_by_dead_queue ON bartleby.queues (dead_queue) WHERE dead_queue IS NOT NULL;

    CREATE TABLE bartleby.partitions (
      part int PRIMARY KEY,
      queue_id int NOT NULL,
      number int NOT NULL,
      id_prefix text NOT NULL,
      UNIQUE (queue_id, number)
    );`

const INDEXES = `
    CREATE INDEX items_expiring ON bartleby.items (expire_at) WHERE shelf = 0 AND expire_at IS NOT NULL;
    CREATE INDEX items_scheduled ON bartleby.items (enqueue_at, id) WHERE shelf = 1;
    CREATE INDEX items_held ON bartleby.items (part, id) WHERE shelf = 2;
    CREATE UNIQUE INDEX items_by_source ON bartleby.items (part, source_id) WHERE source_id IS NOT NULL;

    CREATE TABLE bartleby.lease_batches (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      part int NOT NULL,
      due_at bigint NOT NULL,
      deadline bigint NOT NULL,
      -- First and last serial of each run: {7,9,12,12} is 7, 8, 9 and 12.
      runs text NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);
    CREATE INDEX lease_batches_due ON bartleby.lease_batches (due_at);

    CREATE TABLE bartleby.partition_totals (
      part int PRIMARY KEY,
      ready bigint NOT NULL, leased bigint NOT NULL, scheduled bigint NOT NULL, held bigint NOT NULL, dead bigint NOT NULL,
      created_s bigint NOT NULL, created_us bigint NOT NULL, deadline_s bigint NOT NULL, deadline_us bigint NOT NULL
    );
    CREATE TABLE bartleby.partition_deltas (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      part int NOT NULL,
      ready bigint NOT NULL, leased bigint NOT NULL, scheduled bigint NOT NULL, held bigint NOT NULL, dead bigint NOT NULL,
      created_s bigint NOT NULL, created_us bigint NOT NULL, deadline_s bigint NOT NULL, deadline_us bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);
    CREATE INDEX partition_deltas_by_part ON bartleby.partition_deltas (part);

    CREATE TABLE bartleby.dedupe_keys (
      queue_id int NOT NULL,
      key bytea NOT NULL,
      item_id text NOT NULL,
      partition int NOT NULL,
      until bigint NOT NULL,
      PRIMARY KEY (queue_id, key)
    );
    CREATE INDEX dedupe_keys_until ON bartleby.dedupe_keys (until);

    -- Partitions of deleted queues, until their rows are gone.
    CREATE TABLE bartleby.dropped_parts (part int PRIMARY KEY, dropped_at bigint NOT NULL);`

export const queueMigration: Migration = {
  number: 2,
  name: 'queues',
  postgres: `
    CREATE SEQUENCE bartleby.serials AS bigint;
    CREATE SEQUENCE bartleby.queue_ids AS int;
    CREATE SEQUENCE bartleby.parts AS int;
    ${QUEUES}
    CREATE TABLE bartleby.items (
      id bigint NOT NULL,
      created_at bigint NOT NULL,
      expire_at bigint,
      enqueue_at bigint,
      lease_deadline bigint,
      part int NOT NULL,
      attempts int NOT NULL,
      shelf smallint NOT NULL,
      leased smallint NOT NULL,
      max_attempts int,
      encoding bytea,
      kind bytea,
      reference bytea,
      payload bytea,
      source_id bytea,
      died_at bigint,
      death_reason text,
      death_queue text,
      death_partition int,
      death_attempts int,
      death_created_at bigint,
      PRIMARY KEY (part, shelf, id)
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
    ${INDEXES}
  `,
  sqlite: `
    CREATE TABLE serials (name TEXT PRIMARY KEY, last INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO serials VALUES ('items', 0), ('queues', 0), ('parts', 0);
    ${inSqlite(QUEUES)}
    -- The row id is the serial, so an index on (part, shelf) is already ordered by id.
    CREATE TABLE items (
      id INTEGER PRIMARY KEY,
      part INTEGER NOT NULL,
      shelf INTEGER NOT NULL,
      leased INTEGER NOT NULL,
      attempts INTEGER NOT NULL,
      lease_deadline INTEGER,
      created_at INTEGER NOT NULL,
      expire_at INTEGER,
      enqueue_at INTEGER,
      max_attempts INTEGER,
      encoding BLOB,
      kind BLOB,
      reference BLOB,
      source_id BLOB,
      died_at INTEGER,
      death_reason TEXT,
      death_queue TEXT,
      death_partition INTEGER,
      death_attempts INTEGER,
      death_created_at INTEGER,
      payload BLOB
    ) STRICT;
    CREATE INDEX items_in_order ON items (part, shelf);
    ${inSqlite(INDEXES)}
  `,
}

/** Letters that older stores kept among the items. */
const OLD_REASONS = `
  CASE death_reason WHEN 'attempts' THEN 'AttemptsExhausted' WHEN 'expired' THEN 'Expired' ELSE 'Rejected' END`

const oldLetters = (fresh: { letterId: string; text: (column: string) => string; prefix: string }) => `
    INSERT INTO ${fresh.prefix}signatures (fingerprint, error_class, title, first_seen_at)
    SELECT DISTINCT '0-' || death_reason, ${OLD_REASONS}, 'died before letters were grouped', 0
    FROM ${fresh.prefix}items WHERE died_at IS NOT NULL;
    INSERT INTO ${fresh.prefix}drawers (source, engine, queue, signature)
    SELECT DISTINCT 'queues', 'queues', death_queue, signatures.id
    FROM ${fresh.prefix}items JOIN ${fresh.prefix}signatures ON fingerprint = '0-' || death_reason WHERE died_at IS NOT NULL;
    INSERT INTO ${fresh.prefix}letters (id, captured_at, first_failure_at, last_failure_at, item_created_at, laid_at, serial,
      part, drawer, version, dequeue_count, partition, attempts, status, shelf, leased, lease_deadline, enqueue_at, engine,
      source_id, reason, error_class, error_message, dead_queue, encoding, kind, reference, payload)
    SELECT ${fresh.letterId}, died_at, died_at, died_at, death_created_at, items.created_at, items.id, items.part,
      drawers.id, 1, death_attempts, death_partition, attempts, 0, shelf, leased, lease_deadline, enqueue_at, 'queues',
      ${fresh.text('source_id')}, death_reason, ${OLD_REASONS}, 'it died before letters were grouped',
      (SELECT queues.name FROM ${fresh.prefix}partitions JOIN ${fresh.prefix}queues ON queues.id = partitions.queue_id
       WHERE partitions.part = items.part),
      encoding, kind, items.reference, payload
    FROM ${fresh.prefix}items
    JOIN ${fresh.prefix}signatures ON fingerprint = '0-' || death_reason
    JOIN ${fresh.prefix}drawers ON drawers.queue = death_queue AND drawers.signature = signatures.id
    WHERE died_at IS NOT NULL;
    DELETE FROM ${fresh.prefix}items WHERE died_at IS NOT NULL;
    INSERT INTO ${fresh.prefix}letter_totals (drawer, status, letters, last_seen_at)
    SELECT drawer, 0, count(*), max(last_failure_at) FROM ${fresh.prefix}letters GROUP BY drawer;
    INSERT INTO ${fresh.prefix}letter_totals (drawer, status, letters, last_seen_at)
    SELECT drawer, 4, letters, 0 FROM ${fresh.prefix}letter_totals WHERE status = 0;
    INSERT INTO ${fresh.prefix}letters_to_file (first_letter, last_letter)
    SELECT min(id), max(id) FROM ${fresh.prefix}letters HAVING count(*) > 0;
    INSERT INTO ${fresh.prefix}history_series (engine, operation, status) VALUES ('queues', 'capture', 0);
    INSERT INTO ${fresh.prefix}history (created_at, duration_ms, letter_id, series, letter_version)
    SELECT captured_at, 0, letters.id, (SELECT history_series.id FROM ${fresh.prefix}history_series), 1
    FROM ${fresh.prefix}letters;`

const DEATH_COLUMNS = [
  'died_at',
  'death_reason',
  'death_queue',
  'death_partition',
  'death_attempts',
  'death_created_at',
]

/** Moves dead letters from the table of items to that of letters. */
export const deadLetterMigration: Migration = {
  number: 5,
  name: 'dead letters',
  postgres: `
    ALTER TABLE bartleby.queues ADD COLUMN holds_letters boolean NOT NULL DEFAULT false;
    UPDATE bartleby.queues SET holds_letters = true, version = version + 1
    WHERE name IN (SELECT dead_queue FROM bartleby.queues)
       OR id IN (SELECT queue_id FROM bartleby.partitions JOIN bartleby.items USING (part) WHERE died_at IS NOT NULL);
    ${oldLetters({ letterId: "nextval('bartleby.letter_ids')", text: (column) => `convert_from(${column}, 'UTF8')`, prefix: 'bartleby.' })}
    ALTER TABLE bartleby.items ${DEATH_COLUMNS.map((column) => `DROP COLUMN ${column}`).join(', ')};
    -- The letter that this item is the retry of, or will become: where its failures are filed.
    ALTER TABLE bartleby.items ADD COLUMN case_id bigint;
    CREATE UNIQUE INDEX items_by_case ON bartleby.items (case_id) WHERE case_id IS NOT NULL;
  `,
  sqlite: `
    ALTER TABLE queues ADD COLUMN holds_letters INTEGER NOT NULL DEFAULT 0;
    UPDATE queues SET holds_letters = 1, version = version + 1
    WHERE name IN (SELECT dead_queue FROM queues)
       OR id IN (SELECT queue_id FROM partitions JOIN items USING (part) WHERE died_at IS NOT NULL);
    ${oldLetters({ letterId: 'items.id', text: (column) => `CAST(${column} AS TEXT)`, prefix: '' })}
    UPDATE serials SET last = (SELECT coalesce(max(id), 0) FROM letters) WHERE name = 'letters';
    ${DEATH_COLUMNS.map((column) => `ALTER TABLE items DROP COLUMN ${column};`).join('\n    ')}
    ALTER TABLE items ADD COLUMN case_id INTEGER;
    CREATE UNIQUE INDEX items_by_case ON items (case_id) WHERE case_id IS NOT NULL;
  `,
}

const DEATHS = `
    -- What becomes of an item that dies while the queue has no dead queue: 'letter' or 'delete'. NULL: letter; the queue is
    -- older than the choice, and nobody was told yet.
    ALTER TABLE bartleby.queues ADD COLUMN on_death text;

    -- The engine whose letters the items become that die in a queue. A row outlives its queue.
    CREATE TABLE bartleby.engine_queues (
      queue text COLLATE "C" PRIMARY KEY,
      engine text COLLATE "C" NOT NULL
    );`

export const deathMigration: Migration = {
  number: 12,
  name: 'deaths of queues',
  postgres: DEATHS,
  sqlite: inSqlite(DEATHS),
}
