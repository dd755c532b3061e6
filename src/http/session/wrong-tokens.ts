/** Counts wrong tokens at sign-in, so that nobody can try many of them through the page. */
import type { Clock, Instant } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'

const MOST = 10
const WINDOW_US = 60_000_000n

export class WrongTokens {
  readonly #clock: Clock
  /** When the latest were given, the oldest first. */
  #givenAt: readonly Instant[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Throws while there were too many. A right token does not pass either: else the limit would tell nothing. */
  check(): void {
    const [oldest] = this.#givenAt
    if (oldest === undefined || this.#givenAt.length < MOST) return
    const rest = oldest + WINDOW_US - this.#clock.now()
    if (rest > 0n) throw failure('sign_in_limited', { seconds: Math.ceil(Number(rest) / 1e6) })
  }

  count(): void {
    this.#givenAt = [...this.#givenAt, this.#clock.now()].slice(-MOST)
  }
}
