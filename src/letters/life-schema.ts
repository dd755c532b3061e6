/** What letters learned to tell since they have tables: of redrives, of their later life, in their keys. */
import { inSqlite, type Migration } from '../store/migrations.ts'
import { STATUS } from './letter.ts'

/**
 * What letters know of their later life: when they expired, which their retention goes by, and the deliveries that the report of
 * each failure named, by which a report that comes twice is told from a new failure.
 */
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

/** Imports into dead queues ask whether an id is that of an item whose letter died again since. */
export const deathIdMigration: Migration = {
  number: 17,
  name: 'letters by the ids that their items died as',
  postgres: `CREATE INDEX letters_by_death ON bartleby.letters (died_as) WHERE died_as IS NOT NULL;`,
  sqlite: `CREATE INDEX letters_by_death ON letters (died_as) WHERE died_as IS NOT NULL;`,
}

/** Ends that kept what an earlier retry had made: those of dead queues and of expiries of many. An expired letter has no resolution. */
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
 * Row keys have the number of their row behind the microseconds. Rows of earlier versions keep their keys, which end with a microsecond
 * that no other row of their name had: such a row has a short key. A server of an earlier version that still writes knows nothing of
 * the column, and its rows have one too. Only their letters are looked for by name and time; all others by their number.
 */
const KEYS = `
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
  postgres: KEYS,
  sqlite: inSqlite(KEYS),
}

/**
 * What letters know of the redrive that sent them, and the counts of what became of those: a letter that is confirmed, or that dies
 * again, is counted for its redrive in the transaction in which that happens. The edited headers are those of queue items.
 */
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
