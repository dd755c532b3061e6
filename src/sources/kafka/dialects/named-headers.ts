import type { RawHeader } from '../../../outgoing/kafka/record.ts'
import { latin1 } from '../wire/bytes.ts'
import { FAMILIES } from './families.ts'

export type HeaderValue = Uint8Array | null

/** Headers of a record by name, in time that does not grow with their number. One character for each byte of a name. */
export class NamedHeaders {
  readonly #first = new Map<string, HeaderValue>()
  #last = this.#first
  readonly #repeated = new Set<string>()

  constructor(headers: readonly RawHeader[]) {
    for (const { name: bytes, value } of headers) {
      const name = nameText(bytes)
      if (this.#first.has(name)) {
        // Rare: until then one map is both.
        if (this.#last === this.#first) this.#last = new Map(this.#first)
        this.#repeated.add(name)
        this.#last.set(name, value)
      } else {
        this.#first.set(name, value)
        if (this.#last !== this.#first) this.#last.set(name, value)
      }
    }
  }

  get names(): Iterable<string> {
    return this.#first.keys()
  }

  get repeated(): ReadonlySet<string> {
    return this.#repeated
  }

  has(name: string): boolean {
    return this.#first.has(name)
  }

  /** Undefined if absent, null if null. */
  value(name: string, place: 'first' | 'last' = 'last'): HeaderValue | undefined {
    return (place === 'first' ? this.#first : this.#last).get(name)
  }

  /** Its last value, if not empty. */
  filled(name: string): Uint8Array | null {
    const value = this.#last.get(name)
    return value == null || value.length === 0 ? null : value
  }
}

interface Known {
  readonly text: string
  readonly bytes: Uint8Array
}

/** Known names by length and the bytes at both ends; few share all three. */
const known = new Map<number, readonly Known[]>()
const NONE: readonly Known[] = []
for (const text of new Set(FAMILIES.flatMap(({ headers }) => headers.map(({ name }) => name)))) {
  const bytes = Buffer.from(text)
  known.set(trait(bytes), [...(known.get(trait(bytes)) ?? []), { text, bytes }])
}

function trait(name: Uint8Array): number {
  return (name.length << 16) | ((name[0] ?? 0) << 8) | (name[name.length - 1] ?? 0)
}

/** Most names are known: no text is made of them. */
function nameText(name: Uint8Array): string {
  for (const { text, bytes } of known.get(trait(name)) ?? NONE) if (isSame(bytes, name)) return text
  return latin1(name)
}

/** Names are short: a loop is faster than a call into the runtime. */
function isSame(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false
  return true
}
