/** What databases say of statements that are written to fail: a column that needs a value would get none, a number is divided by zero. */
import pg from 'pg'

const DIVISION_BY_ZERO = '22012'

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

/** Whether PostgreSQL was to divide by how many rows there are, and there are none. */
export const isDividedByNone = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === DIVISION_BY_ZERO

/** The place of a drawer that was removed meanwhile, which whoever counts into it looks up: run again, the drawer is made anew. */
export const isPlaceGone = (error: unknown): boolean => missingValue(error)?.endsWith('.place') === true
