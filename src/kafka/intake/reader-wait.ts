/** Waiting that ends when it is told to, and keeps no process alive. */
import { setTimeout as sleep } from 'node:timers/promises'

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
