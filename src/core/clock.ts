/** Injected time: tests move it instead of waiting. Instants are whole microseconds since 1970, as bigint: the year 9999 lies beyond 2^53. */

declare const instantBrand: unique symbol

export type Instant = bigint & { readonly [instantBrand]: true }

export const instant = (microseconds: bigint): Instant => microseconds as Instant

/** Before, when negative. */
export const later = (at: Instant, microseconds: bigint): Instant => (at + microseconds) as Instant

export const microseconds = (seconds: number): bigint => BigInt(Math.round(seconds * 1e6))

export interface Alarm {
  cancel(): void
}

export interface Clock {
  /** Never goes backwards within one clock. */
  now(): Instant
  /** Calls `wake` once `now() > deadline`. */
  alarm(deadline: Instant, wake: () => void): Alarm
  /** For clocks whose instants may jump. */
  after?(us: bigint, wake: () => void): Alarm
}

/** A wall clock that is set back does not delay it. */
export const after = (clock: Clock, us: bigint, wake: () => void): Alarm =>
  clock.after?.(us, wake) ?? clock.alarm(later(clock.now(), us), wake)
