/** Bounded repetition of transactions that lost a race. */
import { setTimeout as pause } from 'node:timers/promises'
import { backoffDelayMs } from '../core/backoff.ts'

const MAX_ATTEMPTS = 6
const PAUSE = { baseMs: 2, factor: 2, maxMs: 100, jitter: 0.5 }

/** Runs `attempt` again while `lostRace(error)` says so; gives up with the last error. */
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
