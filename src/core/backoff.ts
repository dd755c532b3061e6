/** Delays between attempts. Jitter only shortens them: `maxMs` holds, and instances that failed together do not return together. */

export interface BackoffPolicy {
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
  /** Share of a delay that chance may take away. */
  readonly jitter: number
}

/** For a store, server or queue that is away. */
export const SETBACK: BackoffPolicy = { baseMs: 100, factor: 2, maxMs: 5_000, jitter: 0.5 }

export function backoffDelayMs(
  attempt: number,
  { baseMs, factor, maxMs, jitter }: BackoffPolicy,
  random: () => number = Math.random,
): number {
  const fullMs = Math.min(maxMs, baseMs * factor ** Math.max(0, attempt - 1))
  return Math.round(fullMs * (1 - jitter * random()))
}
