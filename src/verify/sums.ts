/** Sums by what they are of, and how two of them differ: what was counted, and what the books say. */
import type { Integer } from '../store/database.ts'

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
