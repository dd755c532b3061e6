/** Waiting that can be ended. Nothing is Node's alone: the client uses it too. */
import { type Alarm, after, type Clock } from './clock.ts'

/** False when `signal` came first. */
async function waitFor(arm: (end: () => void) => () => void, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false
  const { promise, resolve: end } = Promise.withResolvers<void>()
  const stopSignal = (): void => end()
  signal.addEventListener('abort', stopSignal)
  const disarm = arm(end)
  await promise
  disarm()
  signal.removeEventListener('abort', stopSignal)
  return !signal.aborted
}

export const pause = (clock: Clock, us: bigint, signal: AbortSignal): Promise<boolean> =>
  waitFor((end) => {
    const alarm = after(clock, us, end)
    return () => alarm.cancel()
  }, signal)

/** Keeps the process alive. */
export const sleep = (ms: number, signal: AbortSignal): Promise<boolean> =>
  waitFor((end) => {
    const timer = setTimeout(end, ms)
    return () => clearTimeout(timer)
  }, signal)

/** Does not keep the process alive. */
export const rest = (ms: number, signal: AbortSignal): Promise<boolean> =>
  waitFor((end) => {
    const timer = setTimeout(end, ms)
    timer.unref()
    return () => clearTimeout(timer)
  }, signal)

/** Rejects on abort; the work itself goes on. */
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

export const aborted = (signal: AbortSignal): Promise<void> =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

/** Waits for any result, but not for ever: brokers and stores may not answer. */
export async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  const settled = work.catch(() => {}).finally(() => done.abort())
  await Promise.race([settled, sleep(ms, done.signal)])
}

/** `otherwise` when it fails or takes longer. */
export async function within<T, Otherwise>(
  ms: number,
  asked: Promise<T>,
  otherwise: Otherwise,
): Promise<T | Otherwise> {
  const { promise: late, resolve } = Promise.withResolvers<Otherwise>()
  const timer = setTimeout(resolve, ms, otherwise)
  try {
    return await Promise.race([asked.catch(() => otherwise), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Never meant to ring. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Keeps the process alive until the returned function is called. */
export function holdProcess(): () => void {
  const timer = setInterval(() => {}, LONGEST_TIMER_MS)
  return () => clearInterval(timer)
}

/** Its alarms keep the process alive. */
export function holding(clock: Clock): Clock {
  const held = (arm: (wake: () => void) => Alarm, wake: () => void): Alarm => {
    const letGo = holdProcess()
    const alarm = arm(() => {
      letGo()
      wake()
    })
    return {
      cancel() {
        letGo()
        alarm.cancel()
      },
    }
  }
  return {
    now: () => clock.now(),
    alarm: (deadline, wake) => held((ring) => clock.alarm(deadline, ring), wake),
    after: (us, wake) => held((ring) => after(clock, us, ring), wake),
  }
}
