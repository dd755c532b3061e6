/**
 * Times of the client. The wire carries RFC 3339 with microseconds; callers get a `Date`, which keeps milliseconds. The
 * zero time of the wire means "none" and becomes null.
 */

import { parseGoDuration } from '../core/duration.ts'

/** A `Date`, or RFC 3339 text when microseconds matter ("2027-01-01T00:00:00.123456Z"). */
export type Time = Date | string

const ZERO_TIME = /^0001-01-01T00:00:00(\.0+)?Z$/

export const timeToWire = (time: Time): string => (typeof time === 'string' ? time : time.toISOString())

export const timeFromWire = (text: string): Date => new Date(text)

/** Null when missing or zero. */
export function optionalTimeFromWire(text: string | undefined): Date | null {
  return text === undefined || ZERO_TIME.test(text) ? null : new Date(text)
}

/** Of a duration such as "1m30s"; undefined when it is none. */
export function durationMs(text: string): number | undefined {
  const duration = parseGoDuration(text)
  return duration.ok ? Number(duration.ns) / 1e6 : undefined
}
