/** Inserting rows on SQLite, many in one statement. */
import type { Layout, RunSql } from '../layout.ts'
import { type InsertShape, insertManyOnSqlite, insertOneOnSqlite, madeOnSqlite } from '../sql/insert.ts'
import { standingOf } from '../sql/standing.ts'
import { makesIds, type NewRow } from './fit.ts'
import { type Insertion, idOf, idsAmong, type MadeId, remembered } from './insertion.ts'

/** Rows of one statement on SQLite: few sizes, so that statements are prepared once. */
const SIZES = [500, 100, 20, 4, 1]

/** The insertion into one table of SQLite. */
export function insertionOnSqlite(layout: Layout): Insertion {
  const hasId = makesIds(layout)
  const whereMade = madeOnSqlite(layout)
  const find = standingOf(layout)
  const oneText = remembered(
    (shape: InsertShape) => insertOneOnSqlite(layout, { ...shape, hasId }),
    ({ guarded, timed }) => `${guarded} ${timed}`,
  )
  const manyText = remembered(
    (shape: InsertShape & { readonly rows: number }) =>
      insertManyOnSqlite(layout, { ...shape, hasId }, shape.rows),
    ({ rows, guarded, timed }) => `${rows} ${guarded} ${timed}`,
  )

  function parametersOf(row: NewRow, createdAt: bigint | null): unknown[] {
    const { tenantId, eventType, payload, key, orderingKey, headers, correlationId, id } = row
    const parameters: unknown[] = [tenantId, eventType, payload, key, orderingKey, headers, correlationId]
    if (hasId) parameters.push(id)
    if (createdAt !== null) parameters.push(String(createdAt))
    return parameters
  }

  /** The ids of rows that were all inserted: the database counted them up, one by one. */
  async function idsOf(run: RunSql, rows: readonly NewRow[]): Promise<readonly MadeId[]> {
    if (hasId) return rows.map(({ id }) => id ?? undefined)
    const [made] = await run(whereMade, [String(rows.length)])
    // Somebody else may have used the connection in the meantime.
    if (made?.first !== rows[0]?.key || made?.key !== rows.at(-1)?.key)
      return (await find(run, rows)).map((standing) => standing?.id)
    const first = BigInt(String(made?.last)) - BigInt(rows.length) + 1n
    return rows.map((_, at) => String(first + BigInt(at)))
  }

  return {
    async one(run, row, createdAt) {
      const guarded = row.keyIsGiven
      const parameters = parametersOf(row, createdAt)
      if (guarded && layout.hasKeys) parameters.push(row.tenantId, row.key)
      return idOf((await run(oneText({ guarded, timed: createdAt !== null }), parameters))[0])
    },
    async many(run, rows, createdAt) {
      const made: MadeId[] = []
      for (const chunk of chunksOf(rows)) {
        const guarded = chunk.some(({ keyIsGiven }) => keyIsGiven)
        const text = manyText({ guarded, timed: createdAt !== null, rows: chunk.length })
        const inserted = await run(
          text,
          chunk.flatMap((row) => parametersOf(row, createdAt)),
        )
        made.push(...(guarded ? idsAmong(inserted, chunk) : await idsOf(run, chunk)))
      }
      return made
    },
  }
}

function* chunksOf(rows: readonly NewRow[]): Iterable<readonly NewRow[]> {
  for (let from = 0; from < rows.length; ) {
    const size = SIZES.find((each) => each <= rows.length - from) ?? 1
    yield rows.slice(from, from + size)
    from += size
  }
}
