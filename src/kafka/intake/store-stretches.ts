/**
 * Stretches of partitions: offsets that follow each other without a gap, as records mostly come. The store is asked about a stretch
 * at once, and answers with no more than what was asked about, however full the partition is.
 */
import type { Integer, Statement, Transaction } from '../../db/database.ts'

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

/** PostgreSQL's rows of the stretches that `rowsOn` asks about. */
export const STRETCHES =
  'unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS asked (topic, partition, first, last, n)'

/**
 * The rows of a statement about stretches, each with the one that it is of. PostgreSQL is asked about all at once, in the parameters of
 * `STRETCHES`, and tells by `n` which is meant; SQLite about one after the other.
 */
export async function rowsOn<Row extends object, On extends Stretch = Stretch>(
  tx: Transaction,
  statement: Statement,
  stretches: readonly On[],
): Promise<(Row & { readonly on: On })[]> {
  const found: (Row & { readonly on: On })[] = []
  if (tx.dialect === 'sqlite') {
    for (const on of stretches) {
      const rows = await tx.rows<Row>(statement, on.topic, on.partition, on.first, on.last)
      for (const row of rows) found.push({ ...row, on })
    }
    return found
  }
  const rows = await tx.rows<Row & { readonly n: Integer }>(
    statement,
    stretches.map(({ topic }) => topic),
    stretches.map(({ partition }) => partition),
    stretches.map(({ first }) => first),
    stretches.map(({ last }) => last),
  )
  for (const row of rows) {
    const on = stretches[Number(row.n) - 1]
    if (on !== undefined) found.push({ ...row, on })
  }
  return found
}
