/**
 * Times as the client gives and takes them. The wire carries RFC 3339 with microseconds; callers get a `Date`,
 * which keeps milliseconds. The zero time of the wire means "none" and becomes null.
 */

/** A `Date`, or RFC 3339 text when microseconds matter ("2027-01-01T00:00:00.123456Z"). */
export type Time = Date | string

const ZERO_TIME = /^0001-01-01T00:00:00(\.0+)?Z$/

export const timeToWire = (time: Time): string => (typeof time === 'string' ? time : time.toISOString())

/** A time that is always there. */
export const timeFromWire = (text: string): Date => new Date(text)

/** A time that may be missing or zero. */
export function optionalTimeFromWire(text: string | undefined): Date | null {
  return text === undefined || ZERO_TIME.test(text) ? null : new Date(text)
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds of a duration as the server writes it ("1m30s"); undefined when it is not one. */
export function durationMs(text: string): number | undefined {
  if (!/^([\d.]+(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
  let total = 0
  for (const [, number = '', unit = ''] of text.matchAll(/([\d.]+)([a-zµ]+)/g)) {
    total += Number(number) * (UNIT_MS[unit] ?? Number.NaN)
  }
  return Number.isNaN(total) ? undefined : total
}
