/** Waiting for what others hold: tried again and again, in real time, until one's patience is over. */
import { setTimeout as pause } from 'node:timers/promises'

const SHORTEST_MS = 25
const LONGEST_MS = 100

/** Over after so many milliseconds, or when the server stops. */
export const patienceOf = (waitMs: number, stopped: AbortSignal): AbortSignal =>
  AbortSignal.any([AbortSignal.timeout(waitMs), stopped])

/** Rests before another try; at most until the patience is over. Not always for the same time: others wait too. */
export async function rest(patience: AbortSignal): Promise<void> {
  const ms = SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS)
  await pause(ms, undefined, { signal: patience }).catch(() => {})
}
