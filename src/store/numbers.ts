/** Numbers that are given once and ascend: sequences on PostgreSQL, rows of `serials` on SQLite. */
import { type Integer, sql, type Transaction } from './database.ts'

/** The first number, and the whole list only when another server took some in between. */
const taking = (name: string, sequence: string) =>
  sql(`numbers.${name}`, {
    postgres: `
      SELECT min(taken) AS first, CASE WHEN max(taken) - min(taken) + 1 <> $1 THEN array_agg(taken)::text END AS numbers
      FROM (SELECT nextval('bartleby.${sequence}') AS taken FROM generate_series(1, $1::int)) AS each`,
    sqlite: `UPDATE serials SET last = last + $1 WHERE name = '${name}' RETURNING last - $1 + 1 AS first, NULL AS numbers`,
  })

const TAKING = {
  items: taking('items', 'serials'),
  letters: taking('letters', 'letter_ids'),
  parts: taking('parts', 'parts'),
  queues: taking('queues', 'queue_ids'),
  kafkaIntake: taking('kafka_intake', 'kafka_intake'),
}

export async function takeNumbers(
  tx: Transaction,
  of: keyof typeof TAKING,
  count: number,
): Promise<number[]> {
  if (count === 0) return []
  const [row] = await tx.rows<TakenNumbers>(TAKING[of], count)
  return numbersTaken(row, count)
}

export interface TakenNumbers {
  readonly first: Integer
  readonly numbers: string | null
}

export function numbersTaken(row: TakenNumbers | undefined, count: number): number[] {
  if (row?.numbers != null) return row.numbers.slice(1, -1).split(',').map(Number)
  const first = Number(row?.first)
  return Array.from({ length: count }, (_, i) => first + i)
}
