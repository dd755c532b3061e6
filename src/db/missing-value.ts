/** What both databases say when a column that needs a value would get none. */
import pg from 'pg'

const NOT_NULL_VIOLATION = '23502'
const SQLITE_CONSTRAINT_NOTNULL = 1299

/** The column, with its table, that a statement was refused for because its value is missing; null: for something else. */
export function missingValue(error: unknown): string | null {
  if (error instanceof pg.DatabaseError)
    return error.code === NOT_NULL_VIOLATION ? `${error.table}.${error.column}` : null
  if (!(error instanceof Error) || !('errcode' in error) || error.errcode !== SQLITE_CONSTRAINT_NOTNULL)
    return null
  return /\w+\.\w+$/.exec(error.message)?.[0] ?? null
}

/** The place of a drawer that was removed meanwhile, which whoever counts into it looks up: run again, the drawer is made anew. */
export const isPlaceGone = (error: unknown): boolean => missingValue(error)?.endsWith('.place') === true
