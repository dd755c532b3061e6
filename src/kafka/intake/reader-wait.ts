/** Waiting that ends when it is told to, and keeps no process alive. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Rests; false when `signal` came meanwhile. */
export async function rest(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { ref: false, signal }).catch(() => {})
  return !signal.aborted
}

/** Until `signal` comes. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

/** The outcome of work that cannot be called off; throws when `signal` comes first, and nobody waits for it then. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const callOff = () => reject(new Error('called off'))
  if (signal.aborted) callOff()
  signal.addEventListener('abort', callOff)
  // Whichever loses the race is looked at by nobody.
  for (const one of [promise, work]) one.catch(() => {})
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', callOff)
  }
}

/** Waits for work, whatever comes of it, but not for ever: brokers and stores may not answer. */
export async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  const settled = work.catch(() => {}).finally(() => done.abort())
  await Promise.race([settled, sleep(ms, undefined, { signal: done.signal }).catch(() => {})])
}
