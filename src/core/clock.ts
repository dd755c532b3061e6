/**
 * Time, injected. Every instant in the product comes from a `Clock`, so that tests move time instead of
 * waiting for it. Instants are whole microseconds since 1970, as bigint: the year 9999 and the zero time
 * lie beyond 2^53.
 */

declare const instantBrand: unique symbol

/** Microseconds since 1970-01-01T00:00:00Z. */
export type Instant = bigint & { readonly [instantBrand]: true }

/** Names a bigint as an instant; for the edges where instants are read from a store or a wire. */
export const instant = (microseconds: bigint): Instant => microseconds as Instant

/** The instant `microseconds` after (or, when negative, before) `at`. */
export const later = (at: Instant, microseconds: bigint): Instant => (at + microseconds) as Instant

/** A duration in seconds as microseconds. */
export const microseconds = (seconds: number): bigint => BigInt(Math.round(seconds * 1e6))

/** A pending wake-up; cancel it when it is no longer wanted. */
export interface Alarm {
  cancel(): void
}

export interface Clock {
  /** The present instant, at microsecond grain; never goes backwards within one clock. */
  now(): Instant
  /** Calls `wake` once, as soon as `now() > deadline`. */
  alarm(deadline: Instant, wake: () => void): Alarm
  /** Calls `wake` once that much has passed, where instants may jump meanwhile. Left out: they cannot. */
  after?(us: bigint, wake: () => void): Alarm
}

/** Calls `wake` once that much has passed on a clock. A wall clock that is set back does not make it later. */
export const after = (clock: Clock, us: bigint, wake: () => void): Alarm =>
  clock.after?.(us, wake) ?? clock.alarm(later(clock.now(), us), wake)
