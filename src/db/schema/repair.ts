/**
 * Makes anew what a store lacks and what can be made without loss: the extension, indexes, keys, triggers. Servers should be stopped:
 * building an index keeps writers of its table waiting.
 */
import { type Database, StoreUnavailable, sql } from '../database.ts'
import { missingParts, partName, type SchemaPart } from './parts.ts'

export interface RepairReport {
  /** What was made: `unique index letters_by_source`. */
  readonly made: readonly string[]
  /** What could not be made, and why. */
  readonly failed: readonly { readonly part: string; readonly why: string }[]
}

/** The extension before the indexes that need it, keys before the rest. */
const ORDER: readonly SchemaPart['kind'][] = ['extension', 'key', 'unique index', 'index', 'trigger']

/** An interrupted build leaves an index that is there and not valid. */
const findInvalid = sql('schema.invalid', {
  postgres: `SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
             WHERE relnamespace = to_regnamespace('bartleby') AND NOT indisvalid`,
  sqlite: `SELECT name FROM sqlite_schema WHERE false`,
})

/** Makes what is missing, each part in a transaction of its own: one that cannot be made holds up no other. */
export async function repairSchema(db: Database): Promise<RepairReport> {
  const missing = await db.session('schema.parts', missingParts)
  const made: string[] = []
  const failed: { part: string; why: string }[] = []
  for (const part of missing.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind))) {
    try {
      await makePart(db, part)
      made.push(partName(part))
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      failed.push({ part: partName(part), why: whyOf(error) })
    }
  }
  return { made, failed }
}

async function makePart(db: Database, { name, statement }: SchemaPart): Promise<void> {
  if (statement === null) throw new Error('only a backup has it')
  await db.transaction('schema.repair', async (tx) => {
    const invalid = await tx.rows<{ name: string }>(findInvalid)
    if (invalid.some((index) => index.name === name)) await db.script(tx, `DROP INDEX bartleby."${name}"`)
    await db.script(tx, statement)
  })
}

/** PostgreSQL says in a second sentence which row stands in the way. */
function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const detail = 'detail' in error && typeof error.detail === 'string' ? `: ${error.detail}` : ''
  return `${error.message}${detail}`
}
