/**
 * Adapters reach transactions of the application: one function from SQL and parameters to rows. They know libraries by
 * shape only, so that none is a dependency.
 */
import type { Dialect } from '../../../store/database.ts'
import { quoted, refuse } from '../refusal.ts'

export type AdapterRow = Readonly<Record<string, unknown>>

export interface Adapter<Tx> {
  readonly dialect: Dialect
  /**
   * Runs one statement in the transaction and gives its rows. Parameters are texts, bytes (`Buffer`) and null. They stand
   * in the text as `$1`, `$2` … on PostgreSQL, where one may stand more than once, and as `?` in their order on SQLite.
   */
  run(tx: Tx, sql: string, parameters: readonly unknown[]): Promise<readonly AdapterRow[]>
}

const DIALECTS: readonly unknown[] = ['postgres', 'sqlite'] satisfies Dialect[]

/** Libraries that talk to several databases have to be told which. */
export function checkDialect(dialect: unknown, option = 'dialect'): void {
  if (!DIALECTS.includes(dialect)) refuse(option, `${quoted(dialect)} is none of ${DIALECTS.join(', ')}`)
}

export function checkAdapter(adapter: Partial<Adapter<never>> | undefined): void {
  if (typeof adapter?.run !== 'function')
    refuse('adapter', 'it is missing, or has no run(); there are pgAdapter(), sqliteAdapter() and others')
  checkDialect(adapter.dialect, 'adapter.dialect')
}

export function refuseTransaction(reason: string): never {
  refuse('tx', reason)
}

/** `wanted` is what a caller should pass. */
export function insistOn(tx: unknown, name: string, wanted: string): void {
  const isThing = (typeof tx === 'object' && tx !== null) || typeof tx === 'function'
  if (!isThing || typeof Reflect.get(tx, name) !== 'function')
    refuseTransaction(`it is not ${wanted}; it has no ${name}()`)
}

/** One text more than there are places. */
export interface CutStatement {
  readonly texts: readonly string[]
  /** The parameter behind each text, from 0. */
  readonly places: readonly number[]
}

/** `$1` or `?` in quotes is no parameter. */
const QUOTED_OR_PARAMETER = /"(?:[^"]|"")*"|'(?:[^']|'')*'|\$(\d+)|\?/g

const cuts = new Map<string, CutStatement>()
const MOST_CUTS = 500

/** For libraries with parameters of their own. */
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

/** Some drivers give rows alone, others as part of a result. */
export function rowsOf(result: unknown): readonly AdapterRow[] {
  if (Array.isArray(result)) return result as readonly AdapterRow[]
  const rows = typeof result === 'object' && result !== null ? Reflect.get(result, 'rows') : undefined
  return Array.isArray(rows) ? (rows as readonly AdapterRow[]) : []
}
