import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { instant } from './clock.ts'
import {
  formatMicros,
  formatTimestamp,
  instantFromParts,
  isTimestamp,
  parseTimestamp,
  partsFromInstant,
  ZERO_TIME,
} from './timestamp.ts'

const YEAR_9999_END = 253_402_300_799_999_999n
const instants = fc.bigInt({ min: ZERO_TIME, max: YEAR_9999_END }).map(instant)

const at = (text: string): bigint => {
  const parsed = parseTimestamp(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.at
}

describe('a timestamp', () => {
  it.each([
    ['1970-01-01T00:00:00Z', 0n],
    ['2027-01-01T00:00:00.123456Z', 1_798_761_600_123_456n],
    ['2027-01-01T00:00:00.123456999Z', 1_798_761_600_123_456n],
    ['2027-01-01T00:00:00.1Z', 1_798_761_600_100_000n],
    ['2027-01-01T01:30:00+01:30', 1_798_761_600_000_000n],
    ['2026-12-31T16:00:00-08:00', 1_798_761_600_000_000n],
    ['1969-12-31T23:59:59.9999999Z', -1n],
    ['2024-02-29T00:00:00Z', 1_709_164_800_000_000n],
    ['0001-01-01T00:00:00Z', ZERO_TIME],
    ['0099-12-31T00:00:00Z', -59_011_545_600_000_000n],
    ['9999-12-31T23:59:59.999999999Z', YEAR_9999_END],
  ])('%s is read as %s', (text, expected) => {
    expect(at(text)).toBe(expected)
  })

  it.each([
    '',
    'now',
    '2027-01-01',
    '2027-01-01T00:00:00',
    '2027-01-01 00:00:00Z',
    '2027-01-01t00:00:00z',
    '2027-01-01T00:00:00.Z',
    '2027-01-01T00:00:00.1234567890Z',
    '2027-01-01T24:00:00Z',
    '2027-01-01T00:60:00Z',
    '2027-01-01T00:00:60Z',
    '2027-01-01T00:00:00+24:00',
    '2027-13-01T00:00:00Z',
    '2027-00-01T00:00:00Z',
    '2027-02-29T00:00:00Z',
    '2027-04-31T00:00:00Z',
    '2027-01-00T00:00:00Z',
    '0000-12-31T23:59:59Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '10000-01-01T00:00:00Z',
    '2027-01-01T00:00:00Z\n',
  ])('%j is refused', (text) => {
    expect(parseTimestamp(text)).toMatchObject({ ok: false, reason: expect.stringContaining(`'${text}' `) })
  })

  it('that is refused is not echoed at full length', () => {
    const parsed = parseTimestamp('9'.repeat(100_000))
    expect(parsed.ok || parsed.reason.length).toBeLessThan(200)
  })

  it('is written with 0, 3 or 6 digits', () => {
    expect(formatTimestamp(ZERO_TIME)).toBe('0001-01-01T00:00:00Z')
    expect(formatTimestamp(instant(1_798_761_600_000_000n))).toBe('2027-01-01T00:00:00Z')
    expect(formatTimestamp(instant(1_798_761_600_120_000n))).toBe('2027-01-01T00:00:00.120Z')
    expect(formatTimestamp(instant(1_798_761_600_123_400n))).toBe('2027-01-01T00:00:00.123400Z')
    expect(formatTimestamp(instant(1_798_761_600_000_001n))).toBe('2027-01-01T00:00:00.000001Z')
    expect(formatTimestamp(instant(-1n))).toBe('1969-12-31T23:59:59.999999Z')
    expect(formatTimestamp(instant(YEAR_9999_END))).toBe('9999-12-31T23:59:59.999999Z')
  })

  it('outside the years 0001 to 9999 is never written', () => {
    for (const outside of [instant(ZERO_TIME - 1n), instant(YEAR_9999_END + 1n)]) {
      expect(isTimestamp(outside)).toBe(false)
      expect(() => formatTimestamp(outside)).toThrow(RangeError)
    }
  })

  it('reads back as it was written', () => {
    fc.assert(
      fc.property(instants, (x) => {
        expect(at(formatTimestamp(x))).toBe(x)
      }),
    )
  })
})

describe('the protobuf parts of an instant', () => {
  it('are seconds and forward nanos, also before 1970', () => {
    expect(partsFromInstant(ZERO_TIME)).toEqual({ seconds: -62_135_596_800n, nanos: 0 })
    expect(partsFromInstant(instant(-1n))).toEqual({ seconds: -1n, nanos: 999_999_000 })
    expect(partsFromInstant(instant(1_000_001n))).toEqual({ seconds: 1n, nanos: 1_000 })
  })

  it('are cut down to microseconds', () => {
    expect(instantFromParts(1n, 1_999)).toBe(1_000_001n)
    expect(instantFromParts(-1n, 999_999_999)).toBe(-1n)
  })

  it('give the instant back', () => {
    fc.assert(
      fc.property(instants, (x) => {
        const { seconds, nanos } = partsFromInstant(x)
        expect(nanos >= 0 && nanos < 1_000_000_000).toBe(true)
        expect(instantFromParts(seconds, nanos)).toBe(x)
      }),
    )
  })
})

describe('a timestamp of the office API', () => {
  it.each([
    [0n, '1970-01-01T00:00:00.000000Z'],
    [1_798_761_600_120_000n, '2027-01-01T00:00:00.120000Z'],
    [1_798_761_600_123_456n, '2027-01-01T00:00:00.123456Z'],
    [-1n, '1969-12-31T23:59:59.999999Z'],
  ])('%s is written as %s', (micros, text) => {
    expect(formatMicros(instant(micros))).toBe(text)
  })

  it('always has six digits, and is read back as the same instant', () => {
    fc.assert(
      fc.property(instants, (any) => {
        const text = formatMicros(any)
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
        expect(at(text)).toBe(any)
      }),
    )
  })
})
