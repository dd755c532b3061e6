/**
 * All that the store has about one letter, brought together in one pass over the tables: each row of letters, of their history and of
 * redrives is read once for all checks that ask about single letters.
 */
import { wordsFor } from '../letters/transitions.ts'
import type { Audit, CaseFile, Sizes } from './invariant.ts'
import { oddColumns } from './state-columns.ts'
import { read, together } from './walk.ts'

const LETTERS = read(
  'letters',
  `SELECT id AS key, engine, source_id AS "sourceId", status, version, part, captured_at, resolved_at, confirmed_at, resolution, redrive,
     CASE WHEN correlation_id IS NULL THEN 1 ELSE 0 END AS plain, ${oddColumns} AS odd
   FROM bartleby.letters ORDER BY id`,
)

/** Transitions in history, with what those of the series `$1` put out; not the captures of plain queues. */
const TRANSITIONS = read(
  'transitions',
  `SELECT letter_id AS key, letter_version AS version, series, CASE WHEN series = ANY($1::int[]) THEN output END AS output
   FROM bartleby.history WHERE letter_id IS NOT NULL AND letter_version IS NOT NULL AND correlation_id IS NOT NULL ORDER BY letter_id`,
)

/** What captures that name no letter are filed under: letters count from 1. */
export const NO_LETTER = 0

/** The captures of plain queues, which are the series `$1`: no index has them in this order. */
const CAPTURES = read(
  'plainCaptures',
  `SELECT coalesce(letter_id, ${NO_LETTER}) AS key, created_at, letter_version AS version FROM bartleby.history
   WHERE series = $1 AND correlation_id IS NULL ORDER BY 1`,
)

/** Failures that a newer one took the place of. */
const RELAPSES = read(
  'relapses',
  'SELECT letter_id AS key, superseded_at FROM bartleby.letter_attempts WHERE superseded_at IS NOT NULL ORDER BY letter_id',
)

/** Items on their way. */
const ITEMS = read(
  'caseItems',
  'SELECT case_id AS key, part, id AS serial FROM bartleby.items WHERE case_id IS NOT NULL ORDER BY case_id',
)

/** What is in the lanes of redrives. */
const MEMBERS = read(
  'members',
  'SELECT letter AS key, redrive, lane, captured_at FROM bartleby.redrive_letters ORDER BY letter',
)

/** What redrives left out: no index has it in this order. */
const NOTES = read(
  'notes',
  'SELECT letter AS key, redrive, outcome FROM bartleby.redrive_exceptions ORDER BY letter',
)

/** How many rows the case files of all letters have, nearly. */
export const rowsOfCaseFiles = ({ letters, history, cases, redriven }: Sizes): number =>
  letters + history + cases + redriven

/** The case files of all letters, by their numbers, also of those that are gone. */
export async function* caseFiles(audit: Audit): AsyncGenerator<CaseFile> {
  const words = wordsFor('retry')
  const sends = [...audit.series]
    .filter(([, { operation }]) => words.includes(operation))
    .map(([series]) => series)
  const sides = {
    letters: { statement: LETTERS },
    transitions: { statement: TRANSITIONS, values: [sends] },
    captures: { statement: CAPTURES, values: [audit.plainSeries ?? 0] },
    relapses: { statement: RELAPSES },
    items: { statement: ITEMS },
    members: { statement: MEMBERS },
    notes: { statement: NOTES },
  }
  for await (const { key, letters, ...others } of together(audit, sides))
    yield { id: Number(key), letter: letters[0], ...others }
}
