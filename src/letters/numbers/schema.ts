/** Tables of numbers: activity of drawers first, then places with totals of their own. */
import { inSqlite, type Migration } from '../../store/migrations.ts'
import { STATUS } from '../letter.ts'
import { ACTIVITY } from './counts.ts'

/** The grain of rows that count for ever. */
const EVER = 2
const HOUR_US = 3_600_000_000

/**
 * A row counts letters of one act and subject from `at` on, for the length of its grain. Subjects are the whole office (0), drawers (their
 * numbers), and origins (minus the number of the drawer that stands for a source, engine and queue), so that no reader adds up thousands
 * of drawers. Existing letters count as arrived, those resolved by a retry as retried, and some of these as confirmed, at an unknown time.
 */
const ACTIVITY_TABLES = `
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
  postgres: `${ACTIVITY_TABLES} ${STOCK}
      ${captured('(SELECT * FROM bartleby.letter_totals UNION ALL SELECT drawer, status, letters, last_seen_at FROM bartleby.letter_deltas) AS counted')}
  `,
  sqlite: `${inSqlite(ACTIVITY_TABLES + STOCK)}
      ${captured('letter_totals')}
  `,
}

/**
 * Places (source, engine, queue) with totals of their own, so that no number that people watch depends on how many different errors there
 * are. Acts are counted beside the statuses, by place and drawer; captures and removals by place alone, because empty drawers go. Minutes
 * and hours become two tables: they are read and removed by different keys.
 *
 * A place takes the number of the drawer that stood for it, which keeps its activity. Unfolded changes are folded. New changes go into a
 * table of another name: a server of an older version would fold them into drawers alone; without its table it fails.
 */
const PLACES = `
    INSERT INTO bartleby.places (id, source, engine, queue)
      SELECT min(coalesce(origin, id)), source, engine, queue FROM bartleby.drawers GROUP BY source, engine, queue;
    UPDATE bartleby.drawers SET place = (SELECT id FROM bartleby.places
      WHERE places.source = drawers.source AND places.engine = drawers.engine AND places.queue = drawers.queue);

    -- Of drawers that were made at once, each stood for itself.
    INSERT INTO bartleby.letter_activity AS told (grain, subject, act, at, letters)
      SELECT grain, -place, act, at, sum(letters)
      FROM (SELECT DISTINCT place, coalesce(origin, id) AS origin FROM bartleby.drawers) AS stands
      JOIN bartleby.letter_activity ON subject = -origin
      WHERE origin <> place GROUP BY grain, place, act, at
      ON CONFLICT (grain, subject, act, at) DO UPDATE SET letters = told.letters + excluded.letters;
    DELETE FROM bartleby.letter_activity WHERE subject < 0 AND -subject NOT IN (SELECT id FROM bartleby.places);

    INSERT INTO bartleby.letter_totals (drawer, status, letters, last_seen_at)
      SELECT subject, act + ${STATUS.unconfirmed}, letters, 0 FROM bartleby.letter_activity WHERE grain = ${EVER} AND act > 0;
    INSERT INTO bartleby.letter_minutes SELECT act, at, letters FROM bartleby.letter_activity WHERE grain = 0;
    INSERT INTO bartleby.letter_hours SELECT subject, act, at, letters FROM bartleby.letter_activity WHERE grain = 1;
    DROP TABLE bartleby.letter_activity;
    INSERT INTO bartleby.place_totals (place, status, letters, last_seen_at)
      SELECT place, status, sum(letters), max(last_seen_at) FROM bartleby.letter_totals
      JOIN bartleby.drawers ON drawers.id = drawer GROUP BY place, status;
    DELETE FROM bartleby.letter_totals WHERE status IN (${STATUS.removed}, ${STATUS.captured});`

const INDEXES = `
    CREATE INDEX letter_minutes_oldest ON bartleby.letter_minutes (at);
    CREATE INDEX letter_hours_oldest ON bartleby.letter_hours (at);
    CREATE INDEX drawers_by_place ON bartleby.drawers (place);
    CREATE INDEX drawers_by_signature ON bartleby.drawers (signature);`

const PLACE_TABLES = `
    CREATE TABLE bartleby.places (
      id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
      source text COLLATE "C" NOT NULL,
      engine text COLLATE "C" NOT NULL,
      -- '' when there is none.
      queue text COLLATE "C" NOT NULL,
      UNIQUE (source, engine, queue)
    );
    -- As letter_totals: statuses, and what was ever done; removed (3) and captured (4) letters are counted here alone.
    CREATE TABLE bartleby.place_totals (
      place int NOT NULL,
      status smallint NOT NULL,
      letters bigint NOT NULL,
      last_seen_at bigint NOT NULL,
      PRIMARY KEY (place, status)
    ) WITH (fillfactor = 70);
    -- What happened in the whole office by the minute; and by the hour in the office (subject 0), at a place (below zero), in a drawer.
    CREATE TABLE bartleby.letter_minutes (
      act smallint NOT NULL,
      at bigint NOT NULL,
      letters bigint NOT NULL,
      PRIMARY KEY (act, at)
    ) WITH (fillfactor = 70);
    CREATE TABLE bartleby.letter_hours (
      subject int NOT NULL,
      act smallint NOT NULL,
      at bigint NOT NULL,
      letters bigint NOT NULL,
      PRIMARY KEY (subject, act, at)
    ) WITH (fillfactor = 70);`

const FOLD = `
    INSERT INTO bartleby.letter_totals AS totals (drawer, status, letters, last_seen_at)
      SELECT drawer, status, sum(letters), max(last_seen_at) FROM bartleby.letter_deltas GROUP BY drawer, status
      ON CONFLICT (drawer, status) DO UPDATE SET letters = totals.letters + excluded.letters,
        last_seen_at = greatest(totals.last_seen_at, excluded.last_seen_at);
    INSERT INTO bartleby.letter_activity AS told (grain, subject, act, at, letters)
      SELECT grain, subject, act, told_at, sum(letters)
      FROM bartleby.letter_activity_deltas JOIN bartleby.drawers ON drawers.id = drawer
      CROSS JOIN LATERAL (VALUES (0, 0, at), (1, 0, at - at % ${HOUR_US}), (1, -coalesce(origin, drawer), at - at % ${HOUR_US}),
        (1, drawer, at - at % ${HOUR_US}), (${EVER}, drawer, 0)) AS each (grain, subject, told_at)
      GROUP BY grain, subject, act, told_at
      ON CONFLICT (grain, subject, act, at) DO UPDATE SET letters = told.letters + excluded.letters;
    DROP TABLE bartleby.letter_deltas, bartleby.letter_activity_deltas;
    DELETE FROM bartleby.locks WHERE name IN ('letters.fold', 'letters.activityFold');
    DELETE FROM bartleby.count_folds WHERE name IN ('letters.fold', 'letters.activityFold');`

export const placesMigration: Migration = {
  number: 20,
  name: 'counts by place',
  postgres: `
    -- Writers and folds that are under way end first, and what they wrote is read below. Tables in the order of those who write.
    LOCK TABLE bartleby.drawers, bartleby.letter_deltas, bartleby.letter_activity_deltas, bartleby.letter_totals, bartleby.letter_activity
      IN ACCESS EXCLUSIVE MODE;
    ${PLACE_TABLES}
    ${FOLD}
    ALTER TABLE bartleby.drawers ADD COLUMN place int;
    ${PLACES}
    SELECT setval(pg_get_serial_sequence('bartleby.places', 'id'), (SELECT coalesce(max(id), 0) + 1 FROM bartleby.places), false);
    ALTER TABLE bartleby.drawers ALTER COLUMN place SET NOT NULL, DROP COLUMN origin;
    ${INDEXES}
    -- Each names its drawer and the place of that, and the minute of the transaction.
    CREATE TABLE bartleby.letter_changes (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      place int NOT NULL,
      drawer int NOT NULL,
      status smallint NOT NULL,
      at bigint NOT NULL,
      letters bigint NOT NULL,
      last_seen_at bigint NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.01);
  `,
  sqlite: `
    ${inSqlite(PLACE_TABLES)}
    ALTER TABLE drawers ADD COLUMN place INTEGER;
    ${PLACES.replaceAll('bartleby.', '')}
    ALTER TABLE drawers DROP COLUMN origin;
    ${INDEXES.replaceAll('bartleby.', '')}
  `,
}

/** By two columns each: by one, PostgreSQL without statistics reads all drawers of these places. */
const OF_SIGNATURES = 'CREATE INDEX drawers_by_signature ON bartleby.drawers (signature, place);'

export const drawerMigration: Migration = {
  number: 22,
  name: 'drawers by place and by signature',
  postgres: `
    DROP INDEX bartleby.drawers_by_place, bartleby.drawers_by_signature;
    CREATE INDEX drawers_by_place ON bartleby.drawers (place, id);
    ${OF_SIGNATURES}
  `,
  // SQLite's index ends with the row number anyway.
  sqlite: `
    DROP INDEX drawers_by_signature;
    ${OF_SIGNATURES.replace('bartleby.', '')}
  `,
}
