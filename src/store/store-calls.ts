/** Uses of a store: observed for metrics, and repeated a bounded number of times after a lost race. */
import { setTimeout as pause } from 'node:timers/promises'
import { backoffDelayMs } from '../core/backoff.ts'
import { BartlebyError } from '../core/errors.ts'
import type { StoreCall } from './database.ts'

export class StoreCalls {
  readonly #listeners: ((call: StoreCall) => void)[] = []

  listen(listener: (call: StoreCall) => void): void {
    this.#listeners.push(listener)
  }

  async observe<T>(verb: string, call: () => Promise<T>, writes = false): Promise<T> {
    const startedAt = performance.now()
    let ok = false
    let refused = false
    try {
      const result = await call()
      ok = true
      return result
    } catch (error) {
      refused = writes && !(error instanceof BartlebyError)
      throw error
    } finally {
      const seconds = (performance.now() - startedAt) / 1000
      for (const listener of this.#listeners) listener({ verb, seconds, ok, writes, refused })
    }
  }
}

const MAX_ATTEMPTS = 6
const PAUSE = { baseMs: 2, factor: 2, maxMs: 100, jitter: 0.5 }

export async function withAttempts<T>(
  attempt: (isRerun: boolean) => Promise<T>,
  lostRace: (error: unknown) => boolean,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(tries > 1)
    } catch (error) {
      if (tries >= MAX_ATTEMPTS || !lostRace(error)) throw error
      await pause(backoffDelayMs(tries, PAUSE))
    }
  }
}
