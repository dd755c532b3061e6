/**
 * How the outbox reaches a transaction of the application. An adapter is one function from SQL and parameters to rows;
 * those beside this file know the libraries by their shape only, so that none of them is a dependency.
 */
import type { Dialect } from '../../../store/database.ts'
import { refuse, shown } from '../refusal.ts'

export type AdapterRow = Readonly<Record<string, unknown>>

/** Runs statements in transactions of type `Tx`. */
export interface Adapter<Tx> {
  readonly dialect: Dialect
  /**
   * Runs one statement in the transaction and gives its rows. Parameters are texts, bytes (`Buffer`) and null. They stand
   * in the text as `$1`, `$2` … on PostgreSQL, where one may stand more than once, and as `?` in their order on SQLite.
   */
  run(tx: Tx, sql: string, parameters: readonly unknown[]): Promise<readonly AdapterRow[]>
}

const DIALECTS: readonly unknown[] = ['postgres', 'sqlite'] satisfies Dialect[]

/** Refuses what is no database of an outbox. Libraries that talk to several have to be told which. */
export function checkDialect(dialect: unknown, option = 'dialect'): void {
  if (!DIALECTS.includes(dialect)) refuse(option, `${shown(dialect)} is none of ${DIALECTS.join(', ')}`)
}

/** Refuses what is no adapter. */
export function checkAdapter(adapter: Partial<Adapter<never>> | undefined): void {
  if (typeof adapter?.run !== 'function')
    refuse('adapter', 'it is missing, or has no run(); there are pgAdapter(), sqliteAdapter() and others')
  checkDialect(adapter.dialect, 'adapter.dialect')
}

/** Refuses what was passed as a transaction. */
export function refuseTransaction(reason: string): never {
  refuse('tx', reason)
}

/** Refuses what has no method `name`, and says what is wanted. */
export function insistOn(tx: unknown, name: string, wanted: string): void {
  const isThing = (typeof tx === 'object' && tx !== null) || typeof tx === 'function'
  if (!isThing || typeof Reflect.get(tx, name) !== 'function')
    refuseTransaction(`it is not ${wanted}; it has no ${name}()`)
}

/** A statement cut at its parameters: there is one text more than there are places. */
export interface CutStatement {
  readonly texts: readonly string[]
  /** Which parameter stands between a text and the next one, from 0. */
  readonly places: readonly number[]
}

/** Names and texts in quotes are passed over; `$1` or `?` in them is no parameter. */
const QUOTED_OR_PARAMETER = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\$(\d+)|\?/g

const cuts = new Map<string, CutStatement>()
const MOST_CUTS = 500

/** Cuts a statement for libraries that have parameters of their own. */
export function cutAtParameters(sql: string): CutStatement {
  const known = cuts.get(sql)
  if (known !== undefined) return known
  const texts: string[] = []
  const places: number[] = []
  let from = 0
  for (const match of sql.matchAll(QUOTED_OR_PARAMETER)) {
    const [found, number] = match
    if (number === undefined && found !== '?') continue
    texts.push(sql.slice(from, match.index))
    places.push(number === undefined ? places.length : Number(number) - 1)
    from = match.index + found.length
  }
  const cut = { texts: [...texts, sql.slice(from)], places }
  if (cuts.size === MOST_CUTS) cuts.clear()
  cuts.set(sql, cut)
  return cut
}

/** The rows of libraries that give them alone with one driver, and as part of a result with another. */
export function rowsOf(result: unknown): readonly AdapterRow[] {
  // The libraries' types say the same.
  if (Array.isArray(result)) return result as readonly AdapterRow[]
  const rows = typeof result === 'object' && result !== null ? Reflect.get(result, 'rows') : undefined
  return Array.isArray(rows) ? (rows as readonly AdapterRow[]) : []
}
