/**
 * Stretches of partitions: offsets that follow each other without a gap, as records mostly come. The store is asked about a stretch
 * at once, and answers with no more than what was asked about, however full the partition is.
 */
import type { Statement, Transaction } from '../../db/database.ts'
import { rowsOfEach } from '../../db/each.ts'

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

/** What questions about stretches are asked about. */
export const STRETCH = { topic: 'text', partition: 'int', first: 'bigint', last: 'bigint' } as const

/** The answers to a question about stretches, each with the one that it is of. */
export async function rowsOn<Row extends object, On extends Stretch = Stretch>(
  tx: Transaction,
  statement: Statement,
  stretches: readonly On[],
): Promise<(Row & { readonly on: On })[]> {
  const asked = stretches.map(({ topic, partition, first, last }) => [topic, partition, first, last])
  const rows = await rowsOfEach<Row>(tx, statement, asked)
  return rows.flatMap((row) => {
    const on = stretches[row.n]
    return on === undefined ? [] : [{ ...row, on }]
  })
}
