/** How the consumer waits: for a time, for an event, longer after each failure. Every wait can be ended. */

const FIRST_BACKOFF_MS = 100
const LONGEST_BACKOFF_MS = 5_000

/** Resolves after `ms`, or as soon as `signal` aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}

/** How long to wait after the nth failure in a row (from 0): doubling, bounded, spread over half its length. */
export function backoffMs(failures: number): number {
  return spread(Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures))
}

/** Somewhere between half of `ms` and `ms`, so that many consumers do not return at the same moment. */
export const spread = (ms: number): number => ms / 2 + (Math.random() * ms) / 2

/** Wakes one loop. A ring that nobody waits for is remembered, so that none is missed. */
export class Bell {
  #rung = false
  #wake: (() => void) | undefined

  ring(): void {
    this.#rung = true
    this.#wake?.()
  }

  /** Resolves at the next ring, or after `ms`. */
  async wait(ms?: number): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(resolve, ms)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.#wake = undefined
    }
    this.#rung = false
  }
}
