/**
 * All that the store has about one letter, brought together in one pass over the tables: each row of letters, of their history and of
 * what others have about them is read once for all checks that ask about single letters.
 */
import { wordsFor } from '../transitions.ts'
import type { Audit, CaseFile, CountedSide } from './invariant.ts'
import { oddColumns } from './state-columns.ts'
import { read, together } from './walk.ts'

const LETTERS = read(
  'letters',
  `SELECT id AS key, engine, source_id AS "sourceId", status, version, part, captured_at, resolved_at, confirmed_at, resolution, redrive, drawer, leased,
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

/** How many rows the case files of all letters have, nearly. */
export async function rowsOfCaseFiles(audit: Audit, beside: Beside): Promise<number> {
  let rows = audit.sizes.letters + audit.sizes.history
  for (const side of Object.values(beside)) rows += (await side.rows?.(audit)) ?? 0
  return rows
}

type Beside = Readonly<Record<string, CountedSide>>

/** The case files of all letters, by their numbers, also of those that are gone; with what tables `beside` these have of them. */
export async function* caseFiles(audit: Audit, beside: Beside): AsyncGenerator<CaseFile> {
  const words = wordsFor('retry')
  const sends = [...audit.series]
    .filter(([, { operation }]) => words.includes(operation))
    .map(([series]) => series)
  const own = {
    letters: { statement: LETTERS },
    transitions: { statement: TRANSITIONS, values: [sends] },
    captures: { statement: CAPTURES, values: [audit.plainSeries ?? 0] },
    relapses: { statement: RELAPSES },
  }
  const all = together<keyof typeof own>(audit, { ...own, ...beside })
  for await (const { key, letters, transitions, captures, relapses, ...others } of all)
    yield { id: Number(key), letter: letters[0], transitions, captures, relapses, beside: others }
}
