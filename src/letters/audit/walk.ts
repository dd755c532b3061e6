/**
 * Reads large tables. A statement runs once, and its rows come some thousand at a time: however the planner goes about it, along an
 * index or by a sort, each row is read once. No statement is told where to begin: ranges of keys and lists of ids leave it to
 * statistics whether all of the table is read for each of them. Joins inside a statement are on a unique key of the other table; any other two
 * tables are read beside each other in the order of what they have in common.
 */
import { type Integer, type Statement, sql, type Value } from '../../store/database.ts'
import type { Audit, FoundRow, Key, Side } from './invariant.ts'

export type Walker = Pick<Audit, 'session' | 'looked'>

/** Reads numbers of 64 bits exactly. One text for both stores, or one for each. */
export const read = (name: string, text: Parameters<typeof sql>[1]): Statement =>
  sql(`verify.${name}`, text, { bigints: true })

/** All rows of a statement, some at a time. `Row` is a promise about what it selects. */
export async function* batchesOf<Row = FoundRow>(
  { session, looked }: Walker,
  statement: Statement,
  ...values: readonly Value[]
): AsyncGenerator<readonly Row[]> {
  for await (const rows of session.batches<Row>(statement, ...values)) {
    // Reading was a step, and looking at them is another.
    await looked(rows.length)
    yield rows
  }
}

/** For keys that are ids. All of ours are ASCII, which sorts the same everywhere. */
export const textKey = ({ key }: FoundRow): Key => String(key)
const numberKey = ({ key }: FoundRow): Key => Number(key)

/** A table, read up to a row. */
class Reading {
  /** The next row and its key; undefined behind the last one. */
  row: FoundRow | undefined
  key: Key | undefined
  readonly #batches: AsyncIterator<readonly FoundRow[]>
  readonly #keyOf: (row: FoundRow) => Key
  #rows: readonly FoundRow[] = []
  #next = 0

  constructor(walker: Walker, { statement, values = [], keyOf = numberKey }: Side) {
    this.#batches = batchesOf(walker, statement, ...values)
    this.#keyOf = keyOf
  }

  async advance(): Promise<void> {
    if (this.#step()) return
    const { done, value } = await this.#batches.next()
    this.#rows = done === true ? [] : value
    this.#next = 0
    this.#step()
  }

  /** The rows of the key that is next. */
  async take(): Promise<readonly FoundRow[]> {
    const { key } = this
    const taken: FoundRow[] = []
    while (this.row !== undefined && this.key === key) {
      taken.push(this.row)
      // Within a batch nobody is waited for.
      if (!this.#step()) await this.advance()
    }
    return taken
  }

  async end(): Promise<void> {
    await this.#batches.return?.()
  }

  #step(): boolean {
    this.row = this.#rows[this.#next++]
    this.key = this.row === undefined ? undefined : this.#keyOf(this.row)
    return this.row !== undefined
  }
}

const NONE: readonly FoundRow[] = []

/** How long rows are looked at before others get a turn. */
const STEP_MS = 10

/** What several tables have of one key. */
type Together<Name extends string> = { readonly key: Key } & Readonly<Record<Name, readonly FoundRow[]>>

/** Reads tables beside each other, in the order of their keys: for each key that one of them has, the rows of all. */
export async function* together<Name extends string>(
  walker: Walker,
  sides: Readonly<Record<Name, Side>>,
): AsyncGenerator<Together<Name>> {
  const readings = Object.entries<Side>(sides).map(
    ([name, side]) => [name, new Reading(walker, side)] as const,
  )
  try {
    for (const [, reading] of readings) await reading.advance()
    let since = performance.now()
    for (;;) {
      // Of a batch there may be more to look at than to read.
      if (performance.now() - since > STEP_MS) {
        await walker.looked(0)
        since = performance.now()
      }
      let key: Key | undefined
      for (const [, reading] of readings)
        if (reading.key !== undefined && (key === undefined || reading.key < key)) key = reading.key
      if (key === undefined) return
      const found: Record<string, Key | readonly FoundRow[]> = { key }
      for (const [name, reading] of readings) found[name] = reading.key === key ? await reading.take() : NONE
      // The names are those of the sides.
      yield found as Together<Name>
    }
  } finally {
    for (const [, reading] of readings) await reading.end()
  }
}

/** Sums by what they are of. */
export class Sums<Key extends string | number> extends Map<Key, number> {
  add(key: Key, amount: Integer): void {
    this.set(key, (this.get(key) ?? 0) + Number(amount))
  }
}

/** A sum that is another than the books say. */
export interface Difference<Key> {
  readonly key: Key
  readonly found: number
  readonly counted: number
}

/** What differs, in the order of the keys. */
export function* differences<Key extends string | number>(
  found: ReadonlyMap<Key, number>,
  books: ReadonlyMap<Key, number>,
): Iterable<Difference<Key>> {
  const keys = [...new Set([...found.keys(), ...books.keys()])]
  for (const key of keys.sort((a, b) => `${a}`.localeCompare(`${b}`, 'en', { numeric: true }))) {
    const difference = { key, found: found.get(key) ?? 0, counted: books.get(key) ?? 0 }
    if (difference.found !== difference.counted) yield difference
  }
}
