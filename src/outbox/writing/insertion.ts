/** Inserting rows: what both databases promise. */
import type { Layout, RunSql } from '../layout.ts'
import type { NewRow } from './fit.ts'
import { insertionOnPostgres } from './insertion-postgres.ts'
import { insertionOnSqlite } from './insertion-sqlite.ts'

/** The id of a row that was inserted; undefined where its key was there already. */
export type MadeId = string | undefined

export interface Insertion {
  /** `createdAt` in microseconds; null: now. */
  one(run: RunSql, row: NewRow, createdAt: bigint | null): Promise<MadeId>
  /** All rows, created from `createdAt` on in their order. The ids stand in the order of the rows. */
  many(run: RunSql, rows: readonly NewRow[], createdAt: bigint | null): Promise<readonly MadeId[]>
}

/** The insertion into one table. */
export const insertionInto = (layout: Layout): Insertion =>
  layout.dialect === 'postgres' ? insertionOnPostgres(layout) : insertionOnSqlite(layout)
