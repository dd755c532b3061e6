/**
 * Reads large tables. Each statement runs once, in batches of some thousand rows, so any plan reads each row once; ranges of keys or
 * lists of ids would depend on statistics. Joins are on a unique key; other tables are read side by side in the order of their key.
 */
import { type Integer, type Statement, sql, type Value } from '../../store/database.ts'
import type { Audit, FoundRow, Key, Side } from './invariant.ts'

export type Walker = Pick<Audit, 'session' | 'looked'>

/** Reads 64-bit numbers exactly. */
export const read = (name: string, text: Parameters<typeof sql>[1]): Statement =>
  sql(`verify.${name}`, text, { bigints: true })

/** All rows of a statement in batches. `Row` is a promise about its columns. */
export async function* batchesOf<Row = FoundRow>(
  { session, looked }: Walker,
  statement: Statement,
  ...values: readonly Value[]
): AsyncGenerator<readonly Row[]> {
  for await (const rows of session.batches<Row>(statement, ...values)) {
    // Reading is one step, checking another.
    await looked(rows.length)
    yield rows
  }
}

/** For ids. Ours are ASCII, which sorts the same everywhere. */
export const textKey = ({ key }: FoundRow): Key => String(key)
const numberKey = ({ key }: FoundRow): Key => Number(key)

class Reading {
  /** Next row and its key; undefined at the end. */
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

  async take(): Promise<readonly FoundRow[]> {
    const { key } = this
    const taken: FoundRow[] = []
    while (this.row !== undefined && this.key === key) {
      taken.push(this.row)
      // Waits only between batches.
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

/** Checks rows so long before it yields. */
const STEP_MS = 10

type Together<Name extends string> = { readonly key: Key } & Readonly<Record<Name, readonly FoundRow[]>>

/** Merges tables by key: for each key, the rows of every table. */
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
      // Checking a batch may take longer than reading it.
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
      // Names of the sides.
      yield found as Together<Name>
    }
  } finally {
    for (const [, reading] of readings) await reading.end()
  }
}

export class Sums<Key extends string | number> extends Map<Key, number> {
  add(key: Key, amount: Integer): void {
    this.set(key, (this.get(key) ?? 0) + Number(amount))
  }
}

export interface Difference<Key> {
  readonly key: Key
  readonly found: number
  readonly counted: number
}

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
