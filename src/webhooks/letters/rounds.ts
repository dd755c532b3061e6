/**
 * Which of a job's attempts belong to the round that a retry began. A requeue counts them anew from 0; a pull consumer that takes a
 * dead job goes on counting, so the history row of that retry says how many there were before.
 */
import { type Integer, type Session, sql } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'

/** What history keeps of a retry beside its receipt: the attempts that the job had made before it. */
export type TakenFacts = { readonly attemptsBefore: number }

/** The newest row that history has of each letter, on history_of_letter: of a letter that was retried, that of its retry. */
const newestOf = (columns: string, letter: string): string =>
  `SELECT ${columns} FROM bartleby.history INDEXED BY history_of_letter
   WHERE letter_id = ${letter} AND correlation_id IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT 1`
const IS_RETRY = `(SELECT operation FROM bartleby.history_series AS kind WHERE kind.id = newest.series) = 'retry'`
const readNewest = sql(
  'webhooks.retriesOfLetters',
  {
    postgres: `SELECT letter_id, output FROM unnest($1::bigint[]) AS asked (letter) CROSS JOIN LATERAL (
                 ${newestOf('letter_id, output, series', 'asked.letter')}) AS newest WHERE ${IS_RETRY}`,
    // No row of history has its number twice there, and nothing joins a list with the first of each.
    sqlite: `SELECT letter_id, output FROM bartleby.history AS newest WHERE id IN (
               SELECT (${newestOf('id', 'asked.value')}) FROM json_each($1) AS asked) AND ${IS_RETRY}`,
  },
  { bigints: true },
)

/** How many attempts of their jobs were made before the latest retries of these letters; 0 for those that are not in it. */
export async function attemptsBefore(
  session: Session,
  letters: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, number>> {
  if (letters.length === 0) return new Map()
  const rows = await session.rows<{ letter_id: Integer; output: Uint8Array | null }>(readNewest, letters)
  return new Map(rows.map(({ letter_id, output }) => [letterId(letter_id), attemptsIn(output)]))
}

function attemptsIn(output: Uint8Array | null): number {
  if (output === null) return 0
  // Receipts of retries, as the office writes them.
  const { attemptsBefore = 0 } = JSON.parse(Buffer.from(output).toString()) as Partial<TakenFacts>
  return attemptsBefore
}
