/** Inserting rows: what both databases promise, and what both need: texts that are made once, and ids for the rows that got one. */
import type { AdapterRow } from '../adapters/adapter.ts'
import type { RunSql } from '../layout.ts'
import type { NewRow } from './fit.ts'

/** The id of a row that was inserted; undefined where its key was there already. */
export type MadeId = string | undefined

export interface Insertion {
  /** `createdAt` in microseconds; null: now. */
  one(run: RunSql, row: NewRow, createdAt: bigint | null): Promise<MadeId>
  /** All rows, created from `createdAt` on in their order. The ids stand in the order of the rows. */
  many(run: RunSql, rows: readonly NewRow[], createdAt: bigint | null): Promise<readonly MadeId[]>
}

/** Remembers the text that was made for a shape. */
export function remembered<Shape>(
  make: (shape: Shape) => string,
  nameOf: (shape: Shape) => string,
): (shape: Shape) => string {
  const known = new Map<string, string>()
  return (shape) => {
    const name = nameOf(shape)
    const text = known.get(name) ?? make(shape)
    known.set(name, text)
    return text
  }
}

export const idOf = (row: AdapterRow | undefined): MadeId => (row === undefined ? undefined : String(row.id))

/** The ids of rows among those that were inserted. Of rows with the same tenant and key the first one has it. */
export function idsAmong(inserted: readonly AdapterRow[], rows: readonly NewRow[]): readonly MadeId[] {
  const ids = new Map(inserted.map((row) => [`${row.key} ${row.tenant}`, idOf(row)]))
  return rows.map(({ key, tenantId }) => {
    const name = `${key} ${tenantId}`
    const id = ids.get(name)
    ids.delete(name)
    return id
  })
}

/** The same for rows whose keys are all different. */
export function idsByKey(inserted: readonly AdapterRow[], rows: readonly NewRow[]): readonly MadeId[] {
  const ids = new Map(inserted.map((row) => [row.key, idOf(row)]))
  return rows.map(({ key }) => ids.get(key))
}
