/**
 * How long to wait before trying again. Jitter only shortens a delay, so that `maxMs` is never exceeded
 * and instances that failed together do not come back together.
 */

export interface BackoffPolicy {
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
  /** The share of a delay that chance may take away: 0 none, 1 all of it. */
  readonly jitter: number
}

/** Of whoever waits for a store, a server or a queue that is away. */
export const SETBACK: BackoffPolicy = { baseMs: 100, factor: 2, maxMs: 5_000, jitter: 0.5 }

/** The delay before the next try after `attempt` failures in a row (1 is the first). */
export function backoffDelayMs(
  attempt: number,
  { baseMs, factor, maxMs, jitter }: BackoffPolicy,
  random: () => number = Math.random,
): number {
  const fullMs = Math.min(maxMs, baseMs * factor ** Math.max(0, attempt - 1))
  return Math.round(fullMs * (1 - jitter * random()))
}
