/** Errors of statements that are written to fail: a column without its value, a division by zero. */
import pg from 'pg'

const DIVISION_BY_ZERO = '22012'

const NOT_NULL_VIOLATION = '23502'
const SQLITE_CONSTRAINT_NOTNULL = 1299

/** `table.column` whose value was missing; null for other errors. */
export function missingValue(error: unknown): string | null {
  if (error instanceof pg.DatabaseError)
    return error.code === NOT_NULL_VIOLATION ? `${error.table}.${error.column}` : null
  if (!(error instanceof Error) || !('errcode' in error) || error.errcode !== SQLITE_CONSTRAINT_NOTNULL)
    return null
  return /\w+\.\w+$/.exec(error.message)?.[0] ?? null
}

/** `1 / count(*)` over no rows. */
export const isDividedByNone = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === DIVISION_BY_ZERO

/** The drawer of a change was removed: run again, it is made anew. */
export const isPlaceGone = (error: unknown): boolean => missingValue(error)?.endsWith('.place') === true
