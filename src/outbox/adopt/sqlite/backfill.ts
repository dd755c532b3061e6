/** Keys for the rows of an SQLite table. */
import { columnOf, type Layout } from '../../layout.ts'
import { type Filling, fillingOf, lackingOf } from '../fill.ts'
import type { AdoptSettings } from '../report.ts'
import { type AdoptFile, short } from './file.ts'

/** Waiting writers look again every now and then; the pause must be long enough for one of them to come in. */
const LEAST_PAUSE_MS = 20

/** Fills one chunk: the rows between two places in the table, which `end` has found. */
const chunkStatement = (layout: Layout): string =>
  `UPDATE ${layout.sqlTable} SET ${fillingOf(layout)} WHERE rowid > ?1 AND rowid <= ?2 AND ${lackingOf(layout)}`

/** The end of the next chunk, and what is in it. Walks the table from the last place. */
const endStatement = (layout: Layout, chunk: number): string =>
  `SELECT max(rowid) AS last, count(*) AS rows, sum(keyless) AS keys FROM (
     SELECT rowid, ${columnOf(layout, 'idempotencyKey')} IS NULL AS keyless FROM ${layout.sqlTable}
     WHERE rowid > ?1 AND ${lackingOf(layout)} ORDER BY rowid LIMIT ${chunk})`

const BEFORE_ALL = -(2n ** 63n)

export function sqliteFilling(file: AdoptFile, layout: Layout, settings: AdoptSettings): Filling<bigint> {
  const end = endStatement(layout, settings.chunk)
  const chunk = chunkStatement(layout)
  return {
    sql: `-- ?1: the last row of the chunk before; ?2: the last of this one\n${short(`${chunk};`)}`,
    holders: async () => '',
    pauseMs: (tookMs) => Math.max(LEAST_PAUSE_MS, tookMs),
    fill: (after) =>
      file.transaction((connection) => {
        const from = after ?? BEFORE_ALL
        const statement = connection.prepare(end)
        statement.setReadBigInts(true)
        const found = statement.get(from)
        const last = typeof found?.last === 'bigint' ? found.last : null
        if (last === null) return { rows: 0, keys: 0, last }
        connection.prepare(chunk).run(from, last)
        return { rows: Number(found?.rows), keys: Number(found?.keys), last }
      }),
  }
}
