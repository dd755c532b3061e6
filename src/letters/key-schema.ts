/**
 * Row keys have the number of their row behind the microseconds. Rows of earlier versions keep their keys, which end with a microsecond
 * that no other row of their name had: such a row has a short key. A server of an earlier version that still writes knows nothing of
 * the column, and its rows have one too. Only their letters are looked for by name and time; all others by their number.
 */
import { inSqlite, type Migration } from '../db/migrations.ts'

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
