/** How fast letters were sent during the last seconds. */
import type { Clock, Instant } from '../core/clock.ts'

const WINDOW_US = 5_000_000n
/** Less than this says nothing. */
const SHORTEST_US = 200_000n

export class RecentRate {
  readonly #clock: Clock
  #steps: { readonly at: Instant; readonly letters: number }[] = []
  #since: Instant

  constructor(clock: Clock) {
    this.#clock = clock
    this.#since = clock.now()
  }

  add(letters: number): void {
    this.#steps.push({ at: this.#clock.now(), letters })
  }

  /** Letters a second; null when it is too early to say. */
  get perSecond(): number | null {
    const now = this.#clock.now()
    const from = now - WINDOW_US
    this.#steps = this.#steps.filter(({ at }) => at >= from)
    const spanUs = now - (this.#since > from ? this.#since : from)
    if (spanUs < SHORTEST_US) return null
    const letters = this.#steps.reduce((sum, step) => sum + step.letters, 0)
    return (letters * 1e6) / Number(spanUs)
  }
}
