/** Waiting that ends when it is told to. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Room for a bounded number at a time. The others wait in their order; a wait can be ended. */
export class Turns {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(most: number) {
    this.#free = most
  }

  /** Resolves when there is room, which is then taken; rejects with the signal's reason when it is aborted before. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(enter)
        reject(signal.reason)
      }
      const enter = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      this.#waiting.add(enter)
      signal.addEventListener('abort', giveUp)
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
}

/** What `work` gives, unless the signal is aborted before; the work itself goes on. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const end = (): void => reject(signal.reason)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', end)
  }
}

/** Rests; false when `signal` came meanwhile. */
export async function rest(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { ref: false, signal }).catch(() => {})
  return !signal.aborted
}

export const aborted = (signal: AbortSignal): Promise<void> =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

/** Waits for work, whatever comes of it, but not for ever: brokers and stores may not answer. */
export async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  const settled = work.catch(() => {}).finally(() => done.abort())
  await Promise.race([settled, sleep(ms, undefined, { signal: done.signal }).catch(() => {})])
}
