/**
 * The tables that this source owns.
 *
 * - `azure_entities` has a row for every entity of the DLQ table and every message of a poison queue that was taken in: what is in it is
 *   never taken in again. Of the rows of one letter the newest is current: acts on the letter are written there, and its `state` says
 *   what is being done with the message.
 * - `azure_writes` has a row for each entity that does not say yet what its letter does: *not yet written*.
 * - `azure_marks` says how far each table was read, by the service's own time.
 */
import { inSqlite, type Migration } from '../../store/migrations.ts'

/** What is done with the message of a letter. */
export const STATE = {
  /** Nothing. */
  resting: 0,
  /** Its entity is being claimed: nothing has left. */
  claimed: 1,
  /** It is being sent: after a crash nobody knows whether it left. */
  sending: 2,
  uncertain: 3,
  /** The queue has it. */
  sent: 4,
} as const
export type State = (typeof STATE)[keyof typeof STATE]

const TABLES = `
    CREATE TABLE bartleby.azure_entities (
      source_id text COLLATE "C" PRIMARY KEY,
      letter_id bigint NOT NULL,
      -- The service's time of the last write that is known here.
      written_at bigint NOT NULL,
      -- When the queue took the message, by the service; of an uncertain one, when we began.
      sent_at bigint,
      lease_until bigint,
      is_current smallint NOT NULL,
      state smallint NOT NULL,
      engine text COLLATE "C" NOT NULL,
      queue text COLLATE "C",
      correlation_id text COLLATE "C" NOT NULL,
      -- NULL for a message of a poison queue.
      partition_key text COLLATE "C",
      row_key text COLLATE "C",
      etag text,
      -- Of the attempt that holds it.
      claim text
    );
    CREATE UNIQUE INDEX azure_entity_of_letter ON bartleby.azure_entities (letter_id) WHERE is_current = 1;
    CREATE INDEX azure_sent ON bartleby.azure_entities (correlation_id, engine) WHERE state IN (${STATE.uncertain}, ${STATE.sent});
    CREATE INDEX azure_held ON bartleby.azure_entities (source_id) WHERE state IN (${STATE.claimed}, ${STATE.sending});
    CREATE INDEX azure_uncertain ON bartleby.azure_entities (source_id) WHERE state = ${STATE.uncertain};

    CREATE TABLE bartleby.azure_writes (
      source_id text COLLATE "C" PRIMARY KEY,
      letter_id bigint NOT NULL,
      -- When the act was done, by our clock.
      acted_at bigint NOT NULL,
      due_at bigint NOT NULL,
      attempts int NOT NULL,
      trouble text
    );
    CREATE INDEX azure_writes_due ON bartleby.azure_writes (due_at);
    CREATE INDEX azure_writes_oldest ON bartleby.azure_writes (acted_at);
    CREATE INDEX azure_writes_of_letter ON bartleby.azure_writes (letter_id);

    CREATE TABLE bartleby.azure_marks (
      name text COLLATE "C" PRIMARY KEY,
      read_to bigint NOT NULL
    );
`

export const azureMigration: Migration = {
  number: 23,
  name: 'azure',
  postgres: TABLES,
  sqlite: inSqlite(TABLES, 'STRICT'),
}
