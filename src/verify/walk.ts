/**
 * Walks over large tables in steps of bounded size, along an index. A step is a range of keys, found first, so that
 * what is asked about it can be added up by the store and never travels.
 */
import { type Integer, type Statement, sql } from '../db/database.ts'
import type { Audit } from './invariant.ts'

/** Rows of one step: an answer within milliseconds, a few hundred steps for a million. */
const STEP = 5_000

/** Keys above `after`, up to and with `through`. */
export interface KeyRange {
  readonly after: bigint
  readonly through: bigint
}

/** Below every key. */
const BEFORE_ALL = -(2n ** 63n)

const endOfRange = (name: string, table: string, key: string, condition = ''): Statement =>
  sql(
    name,
    `SELECT max(${key}) AS through, count(*) AS found
     FROM (SELECT ${key} FROM ${table} WHERE ${key} > $1 ${condition} ORDER BY ${key} LIMIT $2) AS step`,
    { bigints: true },
  )

/** Letters by their primary key. */
const letterStep = endOfRange('verify.letterStep', 'bartleby.letters', 'id')
/** Items with a case, on its partial index. */
const caseStep = endOfRange('verify.caseStep', 'bartleby.items', 'case_id')
/** Earlier failures by their primary key; a step ends with all rows of its last letter. */
const attemptStep = endOfRange('verify.attemptStep', 'bartleby.letter_attempts', 'letter_id')
/** Rows of history that concern a letter, on their partial index; a step ends with all rows of its last letter. */
const historyStep = endOfRange(
  'verify.historyStep',
  'bartleby.history',
  'letter_id',
  'AND correlation_id IS NOT NULL',
)
/** Rows of the series `$3` by their time; a step ends with all rows of its last microsecond. */
const seriesStep = endOfRange('verify.seriesStep', 'bartleby.history', 'created_at', 'AND series = $3')

export const letterRanges = (audit: Audit) => ranges(audit, letterStep)
export const caseRanges = (audit: Audit) => ranges(audit, caseStep)
export const attemptRanges = (audit: Audit) => ranges(audit, attemptStep)
/** All of history that concerns letters, but for the captures of plain queues. */
export const historyRanges = (audit: Audit) => ranges(audit, historyStep)
/** The captures of plain queues, by their time. */
export const plainCaptureRanges = (audit: Audit) => ranges(audit, seriesStep, audit.plainSeries ?? 0)

async function* ranges(audit: Audit, step: Statement, ...key: number[]): AsyncGenerator<KeyRange> {
  for (let after = BEFORE_ALL; ; ) {
    const [end] = await audit.session.rows<{ through: Integer | null; found: Integer }>(
      step,
      after,
      STEP,
      ...key,
    )
    if (end?.through == null) return
    const through = BigInt(end.through)
    yield { after, through }
    await audit.looked(Number(end.found))
    after = through
  }
}

/** A group of items of one step, on one shelf of one part. */
export interface ItemGroup {
  readonly part: Integer
  readonly shelf: Integer
  readonly found: Integer
  /** The highest serial of the group. */
  readonly last: Integer
}

/** The rows of one step over all items: `$1`, `$2`, `$3` is the key behind which it starts, `$4` its size. */
export const itemStep = (columns: string) => ({
  // The primary key.
  postgres: `SELECT part, shelf, id${columns} FROM bartleby.items
             WHERE (part, shelf, id) > ($1::int, $2::smallint, $3::bigint) ORDER BY part, shelf, id LIMIT $4`,
  // The row id.
  sqlite: `SELECT part, shelf, id${columns} FROM items WHERE id > $3 ORDER BY id LIMIT $4`,
})

/** Runs `statement`, which groups an `itemStep`, from the first item to the last. */
export async function* itemGroups<Group extends ItemGroup>(
  audit: Audit,
  statement: Statement,
): AsyncGenerator<readonly Group[]> {
  const { session } = audit
  for (let key: readonly [part: number, shelf: number, serial: number] = [0, -1, -1]; ; ) {
    const groups = await session.rows<Group>(statement, ...key, STEP)
    if (groups.length === 0) return
    yield groups
    await audit.looked(groups.reduce((sum, { found }) => sum + Number(found), 0))
    const keys = groups.map(({ part, shelf, last }) => [Number(part), Number(shelf), Number(last)] as const)
    // SQLite walks by serial alone, so only the serial counts there.
    key = keys.reduce((a, b) => (comparePlaces(a, b, session.dialect === 'sqlite' ? 2 : 0) < 0 ? b : a))
  }
}

function comparePlaces(a: readonly number[], b: readonly number[], from: number): number {
  for (let i = from; i < a.length; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
