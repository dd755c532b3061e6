/**
 * Tables of letters. `letters` is large and cold, and a storm pays for each of its indexes. Source, engine, queue and signature are
 * therefore one column, a *drawer*: an index on (drawer, status, time) serves every filter by them, and counts stand per drawer and
 * status.
 *
 * A letter of a plain queue has NULL as instance and correlation, which stands for its source id and spares a storm three indexes. In
 * a dead queue a letter has a position (part, shelf, serial) and the lease columns of an item; elsewhere these are NULL and 0.
 *
 * Instants are microseconds since 1970. Texts that may hold U+0000 are bytes.
 */
import { inSqlite, type Migration } from '../store/migrations.ts'
import { STATUS } from './letter.ts'

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

/** SQLite: the number is the row id. */
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

/** The time of expiry, for retention; and the deliveries that each report named, which tell a repetition from a new failure. */
export const lifeMigration: Migration = {
  number: 13,
  name: 'expiry and reports of letters',
  postgres: `
    -- When it expired; NULL unless it is Expired. Those that are get the time of the upgrade.
    ALTER TABLE bartleby.letters ADD COLUMN expired_at bigint;
    UPDATE bartleby.letters SET expired_at = floor(extract(epoch FROM now()) * 1000000)::bigint WHERE status = ${STATUS.Expired};
    CREATE INDEX letters_expired ON bartleby.letters (greatest(expired_at, last_failure_at), id) WHERE status = ${STATUS.Expired};

    -- The dequeueCount of the report that the failure came with; NULL: nobody reported it, or an earlier version filed it.
    ALTER TABLE bartleby.letters ADD COLUMN reported_count int;
    ALTER TABLE bartleby.letter_attempts ADD COLUMN reported_count int;
  `,
  sqlite: `
    ALTER TABLE letters ADD COLUMN expired_at INTEGER;
    UPDATE letters SET expired_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE status = ${STATUS.Expired};
    CREATE INDEX letters_expired ON letters (max(expired_at, last_failure_at)) WHERE status = ${STATUS.Expired};

    ALTER TABLE letters ADD COLUMN reported_count INTEGER;
    ALTER TABLE letter_attempts ADD COLUMN reported_count INTEGER;
  `,
}

/** Imports into dead queues look for items whose letter died again since. */
export const deathIdMigration: Migration = {
  number: 17,
  name: 'letters by the ids that their items died as',
  postgres: `CREATE INDEX letters_by_death ON bartleby.letters (died_as) WHERE died_as IS NOT NULL;`,
  sqlite: `CREATE INDEX letters_by_death ON letters (died_as) WHERE died_as IS NOT NULL;`,
}

/** Clears what ends of earlier versions kept of a retry. An expired letter has no resolution time. */
const STALE_ENDS = `
  UPDATE bartleby.letters SET sent_as = NULL, sent_to = NULL, redrive = NULL,
    resolved_at = CASE WHEN status = ${STATUS.Expired} THEN NULL ELSE resolved_at END
  WHERE (resolution = 'discard' AND sent_as IS NOT NULL)
    OR (resolution = 'complete' AND dead_queue IS NOT NULL AND (sent_as IS NOT NULL OR redrive IS NOT NULL))
    OR (status = ${STATUS.Expired} AND (sent_as IS NOT NULL OR redrive IS NOT NULL OR resolved_at IS NOT NULL));`

export const endsMigration: Migration = {
  number: 18,
  name: 'ends of letters',
  postgres: STALE_ENDS,
  sqlite: STALE_ENDS.replaceAll('bartleby.', ''),
}

/**
 * Row keys end with the number of their row. Rows of earlier versions, and of servers that still run them, keep short keys that end
 * with a unique microsecond; only their letters are looked up by name and time.
 */
const ROW_KEYS = `
    -- 1: its row key ends with the microseconds. NULL: its number stands behind them.
    ALTER TABLE bartleby.letters ADD COLUMN short_key smallint DEFAULT 1;
    ALTER TABLE bartleby.history ADD COLUMN short_key smallint DEFAULT 1;
    -- coalesce, because letters_by_instance has the instance too: without statistics one index looks as good as the other.
    CREATE UNIQUE INDEX letters_by_short_key ON bartleby.letters (engine, coalesce(instance_id, ''), captured_at)
      WHERE short_key = 1 AND instance_id IS NOT NULL;
    DROP INDEX bartleby.letters_by_row_key;
`

export const keyMigration: Migration = {
  number: 19,
  name: 'row keys with numbers',
  postgres: ROW_KEYS,
  sqlite: inSqlite(ROW_KEYS),
}

/** The redrive that sent a letter, and counts of outcomes: a confirmation or return is counted in its own transaction. */
const OUTCOMES = `
    -- The redrive that sent it back last; NULL: none did, or something else was done to it since.
    ALTER TABLE bartleby.letters ADD COLUMN redrive int;
    -- What an operator made of these; NULL: nothing, empty: they are sent empty.
    ALTER TABLE bartleby.letters ADD COLUMN edited_encoding bytea;
    ALTER TABLE bartleby.letters ADD COLUMN edited_kind bytea;
    ALTER TABLE bartleby.letters ADD COLUMN edited_reference bytea;
    -- The first of a key that is still pending.
    CREATE INDEX letters_pending_of_key ON bartleby.letters (engine, instance_id, captured_at, id)
      WHERE status = ${STATUS.Pending} AND instance_id IS NOT NULL;

    CREATE TABLE bartleby.redrive_outcomes (
      redrive int PRIMARY KEY,
      confirmed bigint NOT NULL,
      returned bigint NOT NULL
    );
    CREATE TABLE bartleby.redrive_outcome_deltas (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      redrive int NOT NULL,
      confirmed bigint NOT NULL,
      returned bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);`

export const outcomesMigration: Migration = {
  number: 10,
  name: 'outcomes of redrives',
  postgres: OUTCOMES,
  sqlite: inSqlite(OUTCOMES),
}
