/**
 * What letters know of their later life: when they expired, which their retention goes by, and the deliveries that the report of
 * each failure named, by which a report that comes twice is told from a new failure.
 */
import type { Migration } from '../db/migrations.ts'
import { STATUS } from './letter.ts'

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
