/**
 * What letters know of the redrive that sent them, and the counts of what became of those: a letter that is confirmed, or that dies
 * again, is counted for its redrive in the transaction in which that happens. The edited headers are those of queue items.
 */
import { inSqlite, type Migration } from '../db/migrations.ts'
import { STATUS } from './letter.ts'

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
