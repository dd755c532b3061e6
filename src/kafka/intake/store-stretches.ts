/**
 * Stretches of partitions: offsets that follow each other without a gap, as records mostly come. The store is asked about a stretch
 * at once, and answers with no more than what was asked about, however full the partition is.
 */
import { type Integer, type Statement, sql, type Transaction } from '../../db/database.ts'
import { rowsGiven } from '../../db/idioms.ts'

export interface Stretch {
  readonly topic: string
  readonly partition: number
  readonly first: bigint
  /** With this one. */
  readonly last: bigint
}

/** The stretches that these places make up; each place is on one of them. */
export function stretchesOf(
  places: readonly { readonly topic: string; readonly partition: number; readonly offset: bigint }[],
): Stretch[] {
  const done: Stretch[] = []
  const open = new Map<string, { topic: string; partition: number; first: bigint; last: bigint }>()
  for (const { topic, partition, offset } of places) {
    const key = `${topic}:${partition}`
    const stretch = open.get(key)
    if (stretch !== undefined && offset === stretch.last + 1n) stretch.last = offset
    else if (stretch === undefined || offset < stretch.first || offset > stretch.last) {
      if (stretch !== undefined) done.push(stretch)
      open.set(key, { topic, partition, first: offset, last: offset })
    }
  }
  return [...done, ...open.values()]
}

/** A question about stretches, each of which it calls `given`. */
export const stretchQuery = (name: string, text: string): Statement =>
  sql(
    name,
    `SELECT given.n AS n, found.*
     FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[], $5::int[]) AS given (topic, partition, first, last, n)
     CROSS JOIN LATERAL (${text}) AS found`,
    { bigints: true },
  )

/** The answers to a question about stretches, each with the one that it is of. */
export async function rowsOn<Row extends object, On extends Stretch = Stretch>(
  tx: Transaction,
  statement: Statement,
  stretches: readonly On[],
): Promise<(Row & { readonly on: On })[]> {
  const asked = stretches.map(({ topic, partition, first, last }, n) => ({
    ...{ topic, partition, first, last, n },
  }))
  const rows = await rowsGiven<Row & { readonly n: Integer }>(tx, statement, asked)
  return rows.flatMap((row) => {
    const on = stretches[Number(row.n)]
    return on === undefined ? [] : [{ ...row, on }]
  })
}
