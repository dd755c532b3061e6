/** Tells whoever watches how each use of a store went: how long it took, and whether the store was why a write failed. */
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
