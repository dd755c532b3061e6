/**
 * The tables of activity: what was done to letters, when, in numbers. A row counts the letters of one act and one subject from
 * `at` on, for as long as its grain says: a minute, an hour, or for ever. Subjects are the whole office (0), a drawer (its
 * number), and an origin (the number below zero of the drawer that stands for a source, engine and queue), so that no reader
 * has to add up thousands of drawers.
 *
 * Stores that have letters already begin with what these tell: all of them arrived, those that a retry resolved were retried,
 * and some of these were confirmed. When that was is not known.
 */
import { inSqlite, type Migration } from '../../store/migrations.ts'
import { STATUS } from '../letter.ts'
import { ACTIVITY } from './counts.ts'

/** The grain of rows that counted for ever; a later version counts that beside the statuses. */
const EVER = 2

const TABLES = `
    -- The first drawer of the same source, engine and queue; NULL: itself.
    ALTER TABLE bartleby.drawers ADD COLUMN origin int;

    CREATE TABLE bartleby.letter_activity (
      -- 0 a minute, 1 an hour, 2 for ever.
      grain smallint NOT NULL,
      subject int NOT NULL,
      act smallint NOT NULL,
      at bigint NOT NULL,
      letters bigint NOT NULL,
      PRIMARY KEY (grain, subject, act, at)
    ) WITH (fillfactor = 70);
    -- For retention alone: whoever else asks gives the grain as a parameter, and is not led to them.
    CREATE INDEX letter_minutes_oldest ON bartleby.letter_activity (at) WHERE grain = 0;
    CREATE INDEX letter_hours_oldest ON bartleby.letter_activity (at) WHERE grain = 1;
    -- By the minute and drawer; the folder makes all rows of it.
    CREATE TABLE bartleby.letter_activity_deltas (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      at bigint NOT NULL,
      drawer int NOT NULL,
      act smallint NOT NULL,
      letters bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);

    -- Letters that were sent back and of which nothing was heard yet. Without their status: letters_newest would do for it.
    CREATE INDEX letters_unconfirmed ON bartleby.letters (last_failure_at, id) WHERE resolution = 'retry' AND confirmed_at IS NULL;`

const STOCK = `
    UPDATE bartleby.drawers SET origin = (
      SELECT min(first.id) FROM bartleby.drawers AS first
      WHERE first.source = drawers.source AND first.engine = drawers.engine AND first.queue = drawers.queue);

    CREATE TEMPORARY TABLE outcomes AS
      SELECT drawer, count(*) AS retried, count(confirmed_at) AS confirmed FROM bartleby.letters
      WHERE resolution = 'retry' GROUP BY drawer;
    INSERT INTO bartleby.letter_totals (drawer, status, letters, last_seen_at)
      SELECT drawer, ${STATUS.unconfirmed}, retried - confirmed, 0 FROM outcomes;
    INSERT INTO bartleby.letter_activity (grain, subject, act, at, letters)
      SELECT ${EVER}, drawer, ${ACTIVITY.retried}, 0, retried FROM outcomes;
    INSERT INTO bartleby.letter_activity (grain, subject, act, at, letters)
      SELECT ${EVER}, drawer, ${ACTIVITY.confirmed}, 0, confirmed FROM outcomes;
    DROP TABLE outcomes;
    INSERT INTO bartleby.letter_activity (grain, subject, act, at, letters)`

const captured = (counts: string): string =>
  `SELECT ${EVER}, drawer, ${ACTIVITY.arrived}, 0, sum(letters) FROM ${counts} WHERE status = ${STATUS.captured} GROUP BY drawer;`

export const activityMigration: Migration = {
  number: 8,
  name: 'letter activity',
  postgres: `${TABLES} ${STOCK}
      ${captured('(SELECT * FROM bartleby.letter_totals UNION ALL SELECT drawer, status, letters, last_seen_at FROM bartleby.letter_deltas) AS counted')}
  `,
  sqlite: `${inSqlite(TABLES + STOCK)}
      ${captured('letter_totals')}
  `,
}
