/**
 * The tables that redrives own. Instants are microseconds since 1970.
 *
 * `redrive_letters` is the frozen set in walking order; a running redrive changes nothing in it, so a million letters cost a million rows
 * once. The position and counts of a lane are one row of `redrive_lanes`, written in the transaction that moves its letters. Whoever walks
 * a lane locks that row, and whoever pauses or cancels a redrive locks all of them, so no letter is met between two states.
 */
import { inSqlite, type Migration } from '../store/migrations.ts'

const TABLES = `
    CREATE TABLE bartleby.redrives (
      number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      -- Ascends with time.
      id text COLLATE "C" NOT NULL UNIQUE,
      -- 'planning' until the set is complete: nobody is shown it.
      state text NOT NULL,
      resumes_as text,
      action text NOT NULL,
      queue text,
      -- JSON: which letters were asked for, what the plan found, how it is to go, what is changed in each letter.
      selection text NOT NULL,
      numbers text NOT NULL,
      terms text NOT NULL,
      recipe text,
      reason text,
      planned_by text NOT NULL,
      planned_at bigint NOT NULL,
      valid_until bigint NOT NULL,
      started_by text,
      started_at bigint,
      ended_at bigint,
      note text,
      -- When all letters of the canary were sent.
      canary_sent_at bigint,
      -- JSON: the last outcomes that the stop rule looks at.
      recent text,
      resumed int NOT NULL DEFAULT 0,
      -- Letters a second, as the server that is at it measures it.
      rate_now double precision,
      owner text,
      owned_until bigint
    ) WITH (fillfactor = 70);
    CREATE INDEX redrives_open ON bartleby.redrives (number) WHERE ended_at IS NULL;

    CREATE TABLE bartleby.redrive_lanes (
      redrive int NOT NULL,
      lane int NOT NULL,
      source text NOT NULL,
      engine text NOT NULL,
      destination text NOT NULL,
      planned bigint NOT NULL,
      sent bigint NOT NULL DEFAULT 0,
      skipped bigint NOT NULL DEFAULT 0,
      failed bigint NOT NULL DEFAULT 0,
      -- The last letter that was looked at.
      at_captured bigint NOT NULL DEFAULT -9223372036854775808,
      at_letter bigint NOT NULL DEFAULT 0,
      PRIMARY KEY (redrive, lane)
    ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);

    CREATE TABLE bartleby.redrive_letters (
      redrive int NOT NULL,
      lane int NOT NULL,
      captured_at bigint NOT NULL,
      letter bigint NOT NULL,
      -- In which it was planned: in another it is not sent.
      version int NOT NULL,
      PRIMARY KEY (redrive, lane, captured_at, letter)
    );
    CREATE INDEX redrive_letters_of ON bartleby.redrive_letters (letter);

    CREATE TABLE bartleby.redrive_exceptions (
      redrive int NOT NULL,
      letter bigint NOT NULL,
      -- 0 skipped, 1 failed
      outcome smallint NOT NULL,
      reason text NOT NULL,
      detail text,
      PRIMARY KEY (redrive, letter)
    );
  `

export const redriveMigration: Migration = {
  number: 11,
  name: 'redrives',
  postgres: TABLES,
  sqlite: inSqlite(TABLES)
    .replace(
      'number INTEGER PRIMARY KEY',
      `-- Never given a second time: letters keep the number of a redrive that was forgotten.
      number INTEGER PRIMARY KEY AUTOINCREMENT`,
    )
    // SQLite reads the smallest integer as a real number.
    .replace('DEFAULT -9223372036854775808', 'DEFAULT (-9223372036854775807)'),
}

/** Started redrives go on as runs; those without an owner are taken up. */
const moveToRuns = (rate: string): string => `
    -- Rests of plans that were never complete, and of redrives that were being removed.
    UPDATE bartleby.redrives SET state = 'forgotten' WHERE state = 'planning';
    INSERT INTO bartleby.runs (id, kind, about, subject, place, actor, state, note, started_at, ended_at, expected, done, skipped, failed,
      rate, resumed)
    SELECT id, 'redrive', action || ' of letters', '{}', 'null', coalesce(started_by, planned_by),
      CASE state WHEN 'canary' THEN 'running' WHEN 'stopped' THEN 'failed' ELSE state END, note, started_at, ended_at,
      ${['planned', 'sent', 'skipped', 'failed']
        .map(
          (count) =>
            `(SELECT coalesce(sum(${count}), 0) FROM bartleby.redrive_lanes AS lane WHERE lane.redrive = redrives.number)`,
        )
        .join(', ')},
      ${rate}, resumed
    FROM bartleby.redrives WHERE started_at IS NOT NULL AND state <> 'forgotten';
    ${['resumed', 'rate_now', 'owner', 'owned_until']
      .map((column) => `ALTER TABLE bartleby.redrives DROP COLUMN ${column};`)
      .join('\n    ')}`

export const redriveRunsMigration: Migration = {
  number: 16,
  name: 'redrives as runs',
  postgres: moveToRuns(`CAST(CAST(terms AS json) ->> 'rate' AS double precision)`),
  sqlite: moveToRuns(`json_extract(terms, '$.rate')`).replaceAll('bartleby.', ''),
}

/** Both columns, because with one PostgreSQL without statistics takes a letter for hundreds, or walks the redrive. */
const membersOf = 'CREATE INDEX redrive_letters_of ON bartleby.redrive_letters (letter, redrive);'

export const redriveMembersMigration: Migration = {
  number: 21,
  name: 'letters of redrives',
  postgres: `DROP INDEX bartleby.redrive_letters_of; ${membersOf}`,
  sqlite: `DROP INDEX redrive_letters_of; ${membersOf.replace('bartleby.', '')}`,
}
