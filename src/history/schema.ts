/**
 * The append-only table of history. Engine, operation and status are one column, `series` (the operation kind), like drawers of letters:
 * an index on (series, time) serves every such filter, and all series together every other list.
 *
 * The capture of a plain queue's letter has NULL as correlation, which stands for the letter's source id: a storm writes one index only.
 */
import { inSqlite, type Migration } from '../store/migrations.ts'

const TABLES = `
    CREATE TABLE bartleby.history_series (
      id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      engine text COLLATE "C" NOT NULL,
      operation text COLLATE "C" NOT NULL,
      -- 0 Succeeded, 1 Failed
      status smallint NOT NULL,
      UNIQUE (engine, operation, status)
    );
    CREATE TABLE bartleby.history (
      id bigint GENERATED ALWAYS AS IDENTITY,
      created_at bigint NOT NULL,
      duration_ms bigint NOT NULL,
      letter_id bigint,
      series int NOT NULL,
      -- Which transition of the letter this row records; NULL when it changed no letter.
      letter_version int,
      -- NULL, on the capture of a letter without one: the source id of that letter.
      correlation_id text COLLATE "C",
      -- NULL: there is no instance, the correlation id stands for it.
      instance_id text COLLATE "C",
      actor text,
      notes text,
      error text,
      input bytea,
      output bytea,
      PRIMARY KEY (series, created_at, id)
    );`

const INDEXES = `
    CREATE INDEX history_by_correlation ON bartleby.history (correlation_id, created_at, id) WHERE correlation_id IS NOT NULL;
    CREATE INDEX history_by_instance ON bartleby.history (instance_id, created_at, id) WHERE instance_id IS NOT NULL;
    CREATE INDEX history_of_letter ON bartleby.history (letter_id, created_at, id)
      WHERE letter_id IS NOT NULL AND correlation_id IS NOT NULL;
    -- Records made over HTTP, so that the same one is not made twice.
    CREATE TABLE bartleby.history_sources (
      engine text COLLATE "C" NOT NULL,
      source_id text COLLATE "C" NOT NULL,
      created_at bigint NOT NULL,
      history_id bigint NOT NULL,
      series int NOT NULL,
      PRIMARY KEY (engine, source_id)
    );
    CREATE INDEX history_sources_created ON bartleby.history_sources (created_at);`

/** SQLite: the number is the row id, with an index of the order. */
const BY_NUMBER = TABLES.replace('IDENTITY,', 'IDENTITY PRIMARY KEY,').replace(
  /,\s+PRIMARY KEY \(series[^)]+\)/,
  '',
)

export const historyMigration: Migration = {
  number: 4,
  name: 'history',
  postgres: TABLES + INDEXES,
  sqlite: `${inSqlite(BY_NUMBER)}
    CREATE INDEX history_in_series ON history (series, created_at);
    ${inSqlite(INDEXES)}`,
}
