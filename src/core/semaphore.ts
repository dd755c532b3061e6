/** Room for a bounded number at a time. The others wait in their order; a wait can be ended. */
export class Semaphore {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(most: number) {
    this.#free = most
  }

  /** Resolves when there is room, which is then taken; rejects with the signal's reason when it is aborted before. */
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

  /** Gives the room to who has waited longest. */
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
