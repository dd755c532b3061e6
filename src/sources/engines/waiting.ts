/** How engines wait: for time by the office's clock, and for room. Every wait can be ended. */
import { type Clock, later } from '../../core/clock.ts'

/** Resolves when `us` have passed on the clock, or as soon as `signal` aborts. */
export function pause(clock: Clock, us: bigint, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const end = (): void => {
      alarm.cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const alarm = clock.alarm(later(clock.now(), us), end)
    signal.addEventListener('abort', end)
  })
}

/** Lets a bounded number of calls through at a time; the others wait in their order. */
export class Turnstile {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(width: number) {
    this.#free = width
  }

  async pass<T>(call: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await call()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
