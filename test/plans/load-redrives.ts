/**
 * The same store's redrives: one that has nearly all letters, some hundreds that ended, a few that are open. Its letters lie in four
 * lanes, half of them sent; every fiftieth was left out.
 */
import type { Instant } from '../../src/core/clock.ts'

/** The one with nearly all letters, and the one with a few. */
export const LARGE_REDRIVE = 1
export const SMALL_REDRIVE = 2
/** How many ended long ago. */
const ENDED = 300
/** Redrives that are open: these two, and some more. */
export const OPEN = [LARGE_REDRIVE, SMALL_REDRIVE, 3, 4]

/** The id of a redrive. */
export const redriveId = (number: number): string => `c${String(number).padStart(19, '0')}`

/** SQL that fills the tables of redrives, for a store with so many letters. */
export function redriveScript(letters: number, now: Instant): string {
  const isOpen = `n <= ${OPEN.length}`
  return `
    INSERT INTO bartleby.redrives (number, id, state, action, selection, numbers, terms, planned_by, planned_at, valid_until,
        started_by, started_at, ended_at) OVERRIDING SYSTEM VALUE
      SELECT n, 'c' || lpad(n::text, 19, '0'), CASE WHEN ${isOpen} THEN 'running' ELSE 'done' END, 'retry',
        '{"by":"filter","filter":{}}', '{}', '{"order":"key"}', 'nell', ${now}, ${now}, 'nell', ${now} + n,
        CASE WHEN ${isOpen} THEN NULL ELSE ${now} + n END FROM generate_series(1, ${ENDED}) AS n;
    SELECT setval(pg_get_serial_sequence('bartleby.redrives', 'number'), ${ENDED});
    INSERT INTO bartleby.redrive_lanes (redrive, lane, source, engine, destination, planned, sent, at_captured, at_letter)
      SELECT n, lane, 'engines', 'engine-1', 'queue-1', ${letters} / 4, ${letters} / 8, ${now} + ${letters} / 2, ${letters} / 2
      FROM generate_series(1, ${ENDED}) AS n, generate_series(0, 3) AS lane;
    INSERT INTO bartleby.redrive_letters (redrive, lane, captured_at, letter, version)
      SELECT ${LARGE_REDRIVE}, n % 4, ${now} + n, n, 1 FROM generate_series(1, ${letters}) AS n WHERE n % 40 <> 7;
    INSERT INTO bartleby.redrive_letters (redrive, lane, captured_at, letter, version)
      SELECT ${SMALL_REDRIVE}, n % 4, ${now} + n, n, 1 FROM generate_series(1, 900, 10) AS n;
    INSERT INTO bartleby.redrive_letters (redrive, lane, captured_at, letter, version)
      SELECT 5 + n % ${ENDED - 5}, n % 4, ${now} + n, n, 1 FROM generate_series(1, ${letters}, 2) AS n;
    INSERT INTO bartleby.redrive_exceptions (redrive, letter, outcome, reason)
      SELECT ${LARGE_REDRIVE}, n, 0, 'changed' FROM generate_series(1, ${letters}, 5) AS n;
    INSERT INTO bartleby.redrive_exceptions (redrive, letter, outcome, reason)
      SELECT ${SMALL_REDRIVE}, n, 0, 'changed' FROM generate_series(1, 900, 50) AS n;
    INSERT INTO bartleby.redrive_outcomes SELECT n, 1, 1 FROM generate_series(1, ${ENDED}) AS n;
    INSERT INTO bartleby.redrive_outcome_deltas (redrive, confirmed, returned)
      SELECT 1 + n % ${ENDED}, 1, 0 FROM generate_series(1, 1000) AS n;`
}
