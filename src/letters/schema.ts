/**
 * The tables that letters own.
 *
 * `letters` is large and cold, and every index on it is paid for by the storm that fills it. So the things that
 * letters are filtered and counted by (source, engine, queue, signature) are not columns of it: a combination of
 * them is a *drawer*, and a letter lies in one. One index on (drawer, status, time) then serves every such filter,
 * and counts are kept per drawer and status.
 *
 * A letter of a plain queue has no instance and no correlation of its own: NULL in both means its source id, which
 * spares a storm three indexes. A letter that lies in a dead queue has a place there (part, shelf, serial) and the
 * lease columns of an item; without a place they are NULL and 0.
 *
 * Instants are microseconds since 1970. Texts of callers that may hold U+0000 are bytes.
 */
import { inSqlite, type Migration } from '../store/migrations.ts'

const LETTERS = `
    CREATE TABLE bartleby.signatures (
      id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      -- The version of the algorithm and the hash: '1-9f86d081884c7d65'.
      fingerprint text COLLATE "C" NOT NULL UNIQUE,
      error_class text NOT NULL,
      title text NOT NULL,
      first_seen_at bigint NOT NULL
    );

    CREATE TABLE bartleby.drawers (
      id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      source text COLLATE "C" NOT NULL,
      engine text COLLATE "C" NOT NULL,
      -- The queue that the letter came from; '' when there is none.
      queue text COLLATE "C" NOT NULL,
      signature int NOT NULL,
      UNIQUE (source, engine, queue, signature)
    );

    CREATE TABLE bartleby.letters (
      id bigint NOT NULL,
      -- The time in the row key.
      captured_at bigint NOT NULL,
      first_failure_at bigint NOT NULL,
      last_failure_at bigint NOT NULL,
      -- When the item was produced.
      item_created_at bigint,
      resolved_at bigint,
      confirmed_at bigint,
      -- When it was laid into its dead queue: the created_at that queue calls show.
      laid_at bigint,
      lease_deadline bigint,
      enqueue_at bigint,
      serial bigint,
      part int,
      drawer int NOT NULL,
      -- Grows by one with every transition; the history row of the transition has the same number.
      version int NOT NULL,
      dequeue_count int NOT NULL,
      -- The partition it came from.
      partition int,
      attempts int NOT NULL DEFAULT 0,
      status smallint NOT NULL,
      shelf smallint,
      leased smallint NOT NULL DEFAULT 0,
      edited smallint NOT NULL DEFAULT 0,
      engine text COLLATE "C" NOT NULL,
      source_id text COLLATE "C" NOT NULL,
      -- The id of the item that died last, when that is another one: what its dead queue shows as source_id.
      died_as text COLLATE "C",
      instance_id text COLLATE "C",
      correlation_id text COLLATE "C",
      reason text NOT NULL,
      error_class text NOT NULL,
      error_message text NOT NULL,
      error_stack text,
      failed_by text,
      resolution text,
      resolved_by text,
      notes text,
      -- The item that the latest retry made, and its queue.
      sent_as text,
      sent_to text,
      -- The dead queue it belongs to, also while it is resolved.
      dead_queue text,
      leased_by text,
      encoding bytea,
      kind bytea,
      reference bytea,
      headers bytea,
      payload bytea,
      -- What an operator made of the payload, when edited = 1.
      edited_payload bytea
    ) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
    CREATE UNIQUE INDEX letters_by_source ON bartleby.letters (engine, source_id);
    CREATE UNIQUE INDEX letters_by_row_key ON bartleby.letters (engine, instance_id, captured_at) WHERE instance_id IS NOT NULL;
    CREATE INDEX letters_by_instance ON bartleby.letters (instance_id, last_failure_at, id) WHERE instance_id IS NOT NULL;
    CREATE INDEX letters_by_correlation ON bartleby.letters (correlation_id, last_failure_at, id) WHERE correlation_id IS NOT NULL;
    CREATE INDEX letters_in_drawer ON bartleby.letters (drawer, status, last_failure_at, id);
    CREATE INDEX letters_newest ON bartleby.letters (status, last_failure_at, id);
    CREATE INDEX letters_resolved ON bartleby.letters (resolved_at, id) WHERE status = 1;
    CREATE UNIQUE INDEX letters_lying ON bartleby.letters (part, shelf, serial) WHERE part IS NOT NULL;
    CREATE INDEX letters_scheduled ON bartleby.letters (enqueue_at, serial) WHERE shelf = 1;
    -- Last: on a table that is empty all indexes with an id in them cost the same, and the planner takes the youngest.
    ALTER TABLE bartleby.letters ADD PRIMARY KEY (id);

    -- Failures before the one that stands on the letter. Rows without a letter belong to an item that still lives.
    CREATE TABLE bartleby.letter_attempts (
      letter_id bigint NOT NULL,
      number int NOT NULL,
      failed_at bigint NOT NULL,
      -- When a newer failure took its place on the letter; NULL for failures before the capture.
      superseded_at bigint,
      failed_by text,
      error_class text NOT NULL,
      error_message text NOT NULL,
      error_stack text,
      correlation_id text COLLATE "C",
      PRIMARY KEY (letter_id, number)
    );
    CREATE INDEX letter_attempts_superseded ON bartleby.letter_attempts (superseded_at) WHERE superseded_at IS NOT NULL;

    -- Letters per drawer and status; status 3 counts those removed by retention, 4 all that were ever captured.
    CREATE TABLE bartleby.letter_totals (
      drawer int NOT NULL,
      status smallint NOT NULL,
      letters bigint NOT NULL,
      last_seen_at bigint NOT NULL,
      PRIMARY KEY (drawer, status)
    );
    CREATE TABLE bartleby.letter_deltas (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      drawer int NOT NULL,
      status smallint NOT NULL,
      letters bigint NOT NULL,
      last_seen_at bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);

    -- Letters whose texts are not searchable yet: one row per transaction, with the range of their ids.
    CREATE TABLE bartleby.letters_to_file (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      first_letter bigint NOT NULL,
      last_letter bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);`

const KEYS = `
    CREATE TABLE bartleby.idempotency_keys (
      -- Whose key it is and for what: caller, method and path.
      scope text COLLATE "C" NOT NULL,
      key text COLLATE "C" NOT NULL,
      answered_at bigint NOT NULL,
      status smallint NOT NULL,
      body text NOT NULL,
      PRIMARY KEY (scope, key)
    );
    CREATE INDEX idempotency_keys_answered ON bartleby.idempotency_keys (answered_at);`

/** By number in SQLite. */
const BY_NUMBER = LETTERS.replace('id bigint NOT NULL', 'id bigint PRIMARY KEY').replace(
  /ALTER TABLE .* ADD PRIMARY KEY.*;/,
  '',
)

export const letterMigration: Migration = {
  number: 3,
  name: 'letters',
  postgres: `
    CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
    CREATE SEQUENCE bartleby.letter_ids AS bigint;
    ${LETTERS}
    CREATE TABLE bartleby.letter_texts (letter_id bigint PRIMARY KEY, words text NOT NULL);
    CREATE INDEX letter_texts_words ON bartleby.letter_texts USING gin (words public.gin_trgm_ops);
    ${KEYS}
  `,
  sqlite: `
    INSERT INTO serials VALUES ('letters', 0);
    ${inSqlite(BY_NUMBER)}
    CREATE VIRTUAL TABLE letter_texts USING fts5 (words, tokenize = 'trigram', content = '', contentless_delete = 1);
    ${inSqlite(KEYS)}
  `,
}
