/**
 * Which of a job's attempts belong to the round that a retry began. A requeue counts them anew from 0; a pull consumer that takes a
 * dead job goes on counting, so the history row of that retry says how many there were before.
 */
import { type Integer, type Session, sql } from '../../db/database.ts'
import { type LetterId, letterId } from '../../letters/letter.ts'

/** What history keeps of a retry beside its receipt: the attempts that the job had made before it. */
export type TakenFacts = { readonly attemptsBefore: number }

/** The newest row that history has of each letter, on history_of_letter: of a letter that was retried, that of its retry. */
const readNewest = sql(
  'webhooks.retriesOfLetters',
  {
    postgres: `
      SELECT asked.id, newest.output FROM unnest($1::bigint[]) AS asked (id)
      CROSS JOIN LATERAL (SELECT output, series FROM bartleby.history
        WHERE letter_id = asked.id AND correlation_id IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT 1) AS newest
      WHERE (SELECT operation FROM bartleby.history_series AS kind WHERE kind.id = newest.series) = 'retry'`,
    sqlite: `
      SELECT letter_id AS id, output FROM json_each($1) AS asked
      CROSS JOIN history ON history.id = (SELECT newest.id FROM history AS newest INDEXED BY history_of_letter
        WHERE newest.letter_id = asked.value AND newest.correlation_id IS NOT NULL
        ORDER BY newest.created_at DESC, newest.id DESC LIMIT 1)
      WHERE (SELECT operation FROM history_series AS kind WHERE kind.id = history.series) = 'retry'`,
  },
  { bigints: true },
)

/** How many attempts of their jobs were made before the latest retries of these letters; 0 for those that are not in it. */
export async function attemptsBefore(
  session: Session,
  letters: readonly LetterId[],
): Promise<ReadonlyMap<LetterId, number>> {
  if (letters.length === 0) return new Map()
  const rows = await session.rows<{ id: Integer; output: Uint8Array | null }>(readNewest, letters)
  return new Map(rows.map(({ id, output }) => [letterId(id), attemptsIn(output)]))
}

function attemptsIn(output: Uint8Array | null): number {
  if (output === null) return 0
  // Receipts of retries, as the office writes them.
  const { attemptsBefore = 0 } = JSON.parse(Buffer.from(output).toString()) as Partial<TakenFacts>
  return attemptsBefore
}
