/** Instants as RFC 3339, HTTP dates and protobuf parts, in the years 0001 to 9999. Anything finer than microseconds is cut, never rounded up. */

import { type Instant, instant } from './clock.ts'

type ParsedTimestamp =
  | { readonly ok: true; readonly at: Instant }
  | { readonly ok: false; readonly reason: string }

/** Means "none" on the wire. */
export const ZERO_TIME: Instant = instant(-62_135_596_800_000_000n)

const LAST_TIME: Instant = instant(253_402_300_799_999_999n)

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|([+-])(\d{2}):(\d{2}))$/

const SHOWN_CHARACTERS = 64

export const isTimestamp = (at: Instant): boolean => at >= ZERO_TIME && at <= LAST_TIME

/** `Z` or an offset, up to nine fractional digits. */
export function parseTimestamp(text: string): ParsedTimestamp {
  const match = RFC_3339.exec(text)
  if (match === null) {
    return refuse(text, 'is not an RFC 3339 timestamp such as 2027-01-01T00:00:00.123456Z')
  }
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    // Six mandatory groups of digits.
    number,
    number,
    number,
    number,
    number,
    number,
  ]
  const fraction = match[7] ?? ''
  const offsetHour = Number(match[9] ?? 0)
  const offsetMinute = Number(match[10] ?? 0)
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) {
    return refuse(text, 'has a time of day or an offset that does not exist')
  }
  const midnightMs = new Date(0).setUTCFullYear(year, month - 1, day)
  const date = new Date(midnightMs)
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) {
    return refuse(text, 'has a date that does not exist')
  }
  const offsetSeconds = (match[8] === '-' ? -1 : 1) * (offsetHour * 3600 + offsetMinute * 60)
  const seconds = midnightMs / 1000 + hour * 3600 + minute * 60 + second - offsetSeconds
  const micros = fraction.padEnd(6, '0').slice(0, 6)
  const at = instant(BigInt(seconds) * 1_000_000n + BigInt(micros))
  return isTimestamp(at) ? { ok: true, at } : refuse(text, 'lies outside the years 0001 to 9999')
}

/** UTC, with as few of 0, 3 or 6 fractional digits as lose nothing. */
export function formatTimestamp(at: Instant): string {
  if (!isTimestamp(at)) throw new RangeError(`instant ${at} lies outside the years 0001 to 9999`)
  const micros = Number(floorMod(at, 1000n))
  const text = new Date(Number((at - BigInt(micros)) / 1000n)).toISOString()
  if (micros !== 0) return `${text.slice(0, -1)}${String(micros).padStart(3, '0')}Z`
  return text.endsWith('.000Z') ? `${text.slice(0, -5)}Z` : text
}

/** UTC, always six fractional digits, as the office API has it. */
export function formatMicros(at: Instant): string {
  const short = formatTimestamp(at).slice(0, -1)
  const dot = short.indexOf('.')
  return dot < 0 ? `${short}.000000Z` : `${short.slice(0, dot)}${short.slice(dot).padEnd(7, '0')}Z`
}

/** UTC, whole seconds, as the webhook API has it. */
export const formatSeconds = (at: Instant): string => formatTimestamp(instant(at - floorMod(at, 1_000_000n)))

/** Such as `Sun, 15 Nov 2026 01:08:28 GMT`; cut, never rounded. */
export const formatHttpDate = (at: Instant): string =>
  new Date(Number((at - floorMod(at, 1_000_000n)) / 1_000n)).toUTCString()

export const instantFromParts = (seconds: bigint, nanos: number): Instant =>
  instant(seconds * 1_000_000n + BigInt(Math.floor(nanos / 1000)))

/** Nanos count forward also before 1970. */
export function partsFromInstant(at: Instant): { seconds: bigint; nanos: number } {
  const micros = floorMod(at, 1_000_000n)
  return { seconds: (at - micros) / 1_000_000n, nanos: Number(micros) * 1000 }
}

const floorMod = (value: bigint, divisor: bigint): bigint => {
  const rest = value % divisor
  return rest < 0n ? rest + divisor : rest
}

const refuse = (text: string, problem: string): ParsedTimestamp => {
  const shown = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
  return { ok: false, reason: `'${shown}' ${problem}` }
}
