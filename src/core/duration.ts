/**
 * Go's durations ("90s", "1h30m0s"), as the queue API carries them. Accepts and refuses what Go does, with Go's texts, which clients
 * compare. Nanoseconds are bigint: numbers are exact only up to 104 days.
 */

type ParsedDuration =
  | { readonly ok: true; readonly ns: bigint }
  | { readonly ok: false; readonly reason: string }

const MICROSECOND = 1_000n
const MILLISECOND = 1_000_000n
const SECOND = 1_000_000_000n
const MINUTE = 60n * SECOND
const HOUR = 60n * MINUTE

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', MICROSECOND],
  ['\u00b5s', MICROSECOND], // micro sign
  ['\u03bcs', MICROSECOND], // Greek letter mu
  ['ms', MILLISECOND],
  ['s', SECOND],
  ['m', MINUTE],
  ['h', HOUR],
])

/** The size of the most negative int64. */
const INT64_REACH = 1n << 63n
const INT64_DIGITS = 19

/** One step: digits, fraction, unit; any may be empty. */
const STEP = /([0-9]*)(\.[0-9]*)?([^0-9.]*)/y

/** The reason of a refusal is Go's text. */
export function parseGoDuration(text: string): ParsedDuration {
  const negative = text.startsWith('-')
  const unsigned = negative || text.startsWith('+') ? text.slice(1) : text
  if (unsigned === '0') return { ok: true, ns: 0n }
  if (unsigned === '') return malformed(text)

  let total = 0n
  STEP.lastIndex = 0
  while (STEP.lastIndex < unsigned.length) {
    const [, whole = '', fraction = '', unit = ''] = STEP.exec(unsigned) ?? []
    if (whole === '' && fraction.length < 2) return malformed(text)
    const count = wholeNumber(whole)
    if (count === null) return malformed(text)
    if (unit === '') return { ok: false, reason: `time: missing unit in duration ${quote(text)}` }
    const unitNs = UNITS.get(unit)
    if (unitNs === undefined) {
      return { ok: false, reason: `time: unknown unit ${quote(unit)} in duration ${quote(text)}` }
    }
    total += count * unitNs + fractionNs(fraction.slice(1), unitNs)
    if (total > INT64_REACH) return malformed(text)
  }
  if (!negative && total === INT64_REACH) return malformed(text)
  return { ok: true, ns: negative ? -total : total }
}

/** `0s`, `1.5µs`, `300ms`, `1m30s`, `24h0m0s`. */
export function formatGoDuration(ns: bigint): string {
  if (ns === 0n) return '0s'
  if (ns < 0n) return `-${formatGoDuration(-ns)}`
  if (ns < MICROSECOND) return `${ns}ns`
  if (ns < MILLISECOND) return `${decimal(ns, MICROSECOND, 3)}\u00b5s`
  if (ns < SECOND) return `${decimal(ns, MILLISECOND, 6)}ms`
  const seconds = `${decimal(ns % MINUTE, SECOND, 9)}s`
  if (ns < MINUTE) return seconds
  const minutes = `${(ns / MINUTE) % 60n}m${seconds}`
  return ns < HOUR ? minutes : `${ns / HOUR}h${minutes}`
}

/** Rounded down. */
export function usFromNs(ns: bigint): bigint {
  const us = ns / MICROSECOND
  return ns < 0n && us * MICROSECOND !== ns ? us - 1n : us
}

const malformed = (text: string): ParsedDuration => ({
  ok: false,
  reason: `time: invalid duration ${quote(text)}`,
})

/** null beyond int64, without building a huge bigint. */
function wholeNumber(digits: string): bigint | null {
  const significant = digits.replace(/^0+/, '')
  if (significant.length > INT64_DIGITS) return null
  const value = BigInt(significant)
  return value > INT64_REACH ? null : value
}

/** Go keeps 63 bits of digits and scales by a double; so does this: 0.3333333333333333333h is 20m0s, where exact division falls one short. */
function fractionNs(digits: string, unitNs: bigint): bigint {
  let kept = 0n
  let scale = 1
  for (const digit of digits) {
    const next = kept * 10n + BigInt(digit)
    if (next >= INT64_REACH) break
    kept = next
    scale *= 10
  }
  return BigInt(Math.trunc(Number(kept) * (Number(unitNs) / scale)))
}

/** `places` digits after the point, without trailing zeros. */
function decimal(ns: bigint, unit: bigint, places: number): string {
  const fraction = (ns % unit).toString().padStart(places, '0').replace(/0+$/, '')
  return fraction === '' ? `${ns / unit}` : `${ns / unit}.${fraction}`
}

/** Like Go's time package: `\` before `"` and `\`, `\xNN` for bytes outside printable ASCII. */
function quote(text: string): string {
  let quoted = '"'
  for (const byte of Buffer.from(text, 'utf8')) {
    if (byte < 0x20 || byte >= 0x7f) quoted += `\\x${byte.toString(16).padStart(2, '0')}`
    else if (byte === 0x22 || byte === 0x5c) quoted += `\\${String.fromCharCode(byte)}`
    else quoted += String.fromCharCode(byte)
  }
  return `${quoted}"`
}
