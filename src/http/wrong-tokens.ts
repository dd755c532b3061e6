/**
 * Counts wrong tokens by the address that they come from, so that nobody can try many of them, and nobody is kept out by somebody elsewhere.
 * While there were too many, an address is let in with those tokens only that it has used before: a right one would tell that it is right.
 */
import type { Clock, Instant } from '../core/clock.ts'
import { failure } from '../core/errors.ts'

const WINDOW_US = 60_000_000n
/** Addresses that are remembered; the ones that were seen first are forgotten. */
const MOST_ADDRESSES = 10_000

interface Known {
  /** When the latest wrong ones were given, the oldest first. */
  wrongAt: readonly Instant[]
  /** The names of the tokens that were right. */
  readonly right: Set<string>
}

export class WrongTokens {
  readonly #clock: Clock
  readonly #most: number
  readonly #addresses = new Map<string, Known>()

  /** `most` within a minute, from one address. */
  constructor(clock: Clock, most: number) {
    this.#clock = clock
    this.#most = most
  }

  /** A right token was given, the one of this name; throws while there were too many wrong ones. */
  right(address: string, name: string): void {
    const known = this.#knownAt(address)
    if (known.right.has(name)) return
    this.#check(known)
    known.right.add(name)
  }

  /** A wrong token was given; throws when it is one too many. */
  wrong(address: string): void {
    const known = this.#knownAt(address)
    this.#check(known)
    known.wrongAt = [...known.wrongAt, this.#clock.now()].slice(-this.#most)
  }

  #check({ wrongAt }: Known): void {
    const [oldest] = wrongAt
    if (oldest === undefined || wrongAt.length < this.#most) return
    const rest = oldest + WINDOW_US - this.#clock.now()
    if (rest > 0n) throw failure('wrong_tokens_limited', { seconds: Math.ceil(Number(rest) / 1e6) })
  }

  #knownAt(address: string): Known {
    const known = this.#addresses.get(address)
    if (known !== undefined) return known
    const [first] = this.#addresses.keys()
    if (first !== undefined && this.#addresses.size >= MOST_ADDRESSES) this.#addresses.delete(first)
    const fresh: Known = { wrongAt: [], right: new Set() }
    this.#addresses.set(address, fresh)
    return fresh
  }
}
