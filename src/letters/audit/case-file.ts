/** Case files of all letters in one pass: each row of letters, history and other tables is read once for all checks. */
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

/** Transitions, with the output of the operation kinds `$1`; not the captures of plain queues. */
const TRANSITIONS = read(
  'transitions',
  `SELECT letter_id AS key, letter_version AS version, series, CASE WHEN series = ANY($1::int[]) THEN output END AS output
   FROM bartleby.history WHERE letter_id IS NOT NULL AND letter_version IS NOT NULL AND correlation_id IS NOT NULL ORDER BY letter_id`,
)

/** Key of captures without a letter: letters count from 1. */
export const NO_LETTER = 0

/** Captures of plain queues, the operation kind `$1`; no index has them in this order. */
const CAPTURES = read(
  'plainCaptures',
  `SELECT coalesce(letter_id, ${NO_LETTER}) AS key, created_at, letter_version AS version FROM bartleby.history
   WHERE series = $1 AND correlation_id IS NULL ORDER BY 1`,
)

/** Failures that a newer one replaced. */
const RELAPSES = read(
  'relapses',
  'SELECT letter_id AS key, superseded_at FROM bartleby.letter_attempts WHERE superseded_at IS NOT NULL ORDER BY letter_id',
)

/** About how many rows all case files have. */
export async function rowsOfCaseFiles(audit: Audit, beside: Beside): Promise<number> {
  let rows = audit.sizes.letters + audit.sizes.history
  for (const side of Object.values(beside)) rows += (await side.rows?.(audit)) ?? 0
  return rows
}

type Beside = Readonly<Record<string, CountedSide>>

/** Case files by number, also of letters that are gone, with rows of the tables `beside` them. */
export async function* caseFiles(audit: Audit, beside: Beside): AsyncGenerator<CaseFile> {
  const words = wordsFor('retry')
  const sends = [...audit.operationKinds]
    .filter(([, { operation }]) => words.includes(operation))
    .map(([number]) => number)
  const own = {
    letters: { statement: LETTERS },
    transitions: { statement: TRANSITIONS, values: [sends] },
    captures: { statement: CAPTURES, values: [audit.plainCaptureKind ?? 0] },
    relapses: { statement: RELAPSES },
  }
  const all = together<keyof typeof own>(audit, { ...own, ...beside })
  for await (const { key, letters, transitions, captures, relapses, ...others } of all)
    yield { id: Number(key), letter: letters[0], transitions, captures, relapses, beside: others }
}
