/** The headers of a record by their names. */
import type { RawHeader } from '../event.ts'
import { nameText } from './known-names.ts'

export type HeaderValue = Uint8Array | null

/** Found by name, in time that does not grow with their number. Names have one character for each byte. */
export class NamedHeaders {
  readonly #first = new Map<string, HeaderValue>()
  #last = this.#first
  readonly #repeated = new Set<string>()

  constructor(headers: readonly RawHeader[]) {
    for (const { name: bytes, value } of headers) {
      const name = nameText(bytes)
      if (this.#first.has(name)) {
        // Hardly ever: until then one map is both.
        if (this.#last === this.#first) this.#last = new Map(this.#first)
        this.#repeated.add(name)
        this.#last.set(name, value)
      } else {
        this.#first.set(name, value)
        if (this.#last !== this.#first) this.#last.set(name, value)
      }
    }
  }

  /** All names, each once. */
  get names(): Iterable<string> {
    return this.#first.keys()
  }

  /** The names that come several times. */
  get repeated(): ReadonlySet<string> {
    return this.#repeated
  }

  has(name: string): boolean {
    return this.#first.has(name)
  }

  /** Its value where it stands first or last; undefined when there is no such header, null when it is null. */
  value(name: string, place: 'first' | 'last' = 'last'): HeaderValue | undefined {
    return (place === 'first' ? this.#first : this.#last).get(name)
  }

  /** Its last value, when that has any bytes. */
  filled(name: string): Uint8Array | null {
    const value = this.#last.get(name)
    return value == null || value.length === 0 ? null : value
  }
}
