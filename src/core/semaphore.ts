/** Room for a bounded number at a time; others wait in order. */
export class Semaphore {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(most: number) {
    this.#free = most
  }

  /** Rejects with the signal's reason. */
  async take(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(enter)
        reject(signal?.reason)
      }
      const enter = (): void => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      this.#waiting.add(enter)
      signal?.addEventListener('abort', giveUp)
    })
  }

  giveBack(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }

  async pass<T>(call: () => Promise<T>): Promise<T> {
    await this.take()
    try {
      return await call()
    } finally {
      this.giveBack()
    }
  }
}
