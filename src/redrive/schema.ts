/**
 * The tables that redrives own.
 *
 * `redrive_letters` is the frozen set, in the order in which it is walked: nothing in it changes while a redrive runs, so a million
 * letters cost a million rows once. How far a lane is, and how many of its letters were sent, skipped or failed, is in one row of
 * `redrive_lanes`, written in the transaction that moves the letters. Who walks a lane holds that row; who pauses or cancels a
 * redrive holds all of its lanes, and so meets no letter between two states.
 *
 * Instants are microseconds since 1970.
 */
import type { Migration } from '../store/migrations.ts'

export const redriveMigration: Migration = {
  number: 11,
  name: 'redrives',
  postgres: `
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
  `,
  sqlite: `
    CREATE TABLE redrives (
      -- Never given a second time: letters keep the number of a redrive that was forgotten.
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      state TEXT NOT NULL,
      resumes_as TEXT,
      action TEXT NOT NULL,
      queue TEXT,
      selection TEXT NOT NULL,
      numbers TEXT NOT NULL,
      terms TEXT NOT NULL,
      recipe TEXT,
      reason TEXT,
      planned_by TEXT NOT NULL,
      planned_at INTEGER NOT NULL,
      valid_until INTEGER NOT NULL,
      started_by TEXT,
      started_at INTEGER,
      ended_at INTEGER,
      note TEXT,
      canary_sent_at INTEGER,
      recent TEXT,
      resumed INTEGER NOT NULL DEFAULT 0,
      rate_now REAL,
      owner TEXT,
      owned_until INTEGER
    ) STRICT;
    CREATE INDEX redrives_open ON redrives (number) WHERE ended_at IS NULL;

    CREATE TABLE redrive_lanes (
      redrive INTEGER NOT NULL,
      lane INTEGER NOT NULL,
      source TEXT NOT NULL,
      engine TEXT NOT NULL,
      destination TEXT NOT NULL,
      planned INTEGER NOT NULL,
      sent INTEGER NOT NULL DEFAULT 0,
      skipped INTEGER NOT NULL DEFAULT 0,
      failed INTEGER NOT NULL DEFAULT 0,
      at_captured INTEGER NOT NULL DEFAULT (-9223372036854775807),
      at_letter INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (redrive, lane)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE redrive_letters (
      redrive INTEGER NOT NULL,
      lane INTEGER NOT NULL,
      captured_at INTEGER NOT NULL,
      letter INTEGER NOT NULL,
      version INTEGER NOT NULL,
      PRIMARY KEY (redrive, lane, captured_at, letter)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX redrive_letters_of ON redrive_letters (letter);

    CREATE TABLE redrive_exceptions (
      redrive INTEGER NOT NULL,
      letter INTEGER NOT NULL,
      outcome INTEGER NOT NULL,
      reason TEXT NOT NULL,
      detail TEXT,
      PRIMARY KEY (redrive, letter)
    ) STRICT, WITHOUT ROWID;
  `,
}

/** Redrives that were started go on as runs, which have who is at them; those that nobody is at are taken up. */
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

/** Both columns find a letter in a redrive: by one, PostgreSQL without statistics takes the letter for hundreds, or walks the redrive. */
const membersOf = 'CREATE INDEX redrive_letters_of ON bartleby.redrive_letters (letter, redrive);'

export const redriveMembersMigration: Migration = {
  number: 21,
  name: 'letters of redrives',
  postgres: `DROP INDEX bartleby.redrive_letters_of; ${membersOf}`,
  sqlite: `DROP INDEX redrive_letters_of; ${membersOf.replace('bartleby.', '')}`,
}
