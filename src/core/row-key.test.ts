import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { instant } from './clock.ts'
import { formatRowKey, parseRowKey } from './row-key.ts'
import { ZERO_TIME } from './timestamp.ts'

const AT = instant(1_767_225_600_000_042n)

describe('row keys', () => {
  it('end with the time in microseconds and the number of the row', () => {
    expect(formatRowKey({ name: 'order-7', at: AT, number: 31n })).toBe(
      'order-7-20260101T000000000042000000000031Z',
    )
    expect(formatRowKey({ name: 'x', at: ZERO_TIME, number: 10n ** 12n })).toBe(
      'x-00010101T0000000000001000000000000Z',
    )
    expect(formatRowKey({ name: 'x', at: instant(-1n), number: 0n })).toBe(
      'x-19691231T235959999999000000000000Z',
    )
  })

  it('of earlier versions end with the time alone', () => {
    expect(formatRowKey({ name: 'order-7', at: AT, number: null })).toBe('order-7-20260101T000000000042Z')
    expect(parseRowKey('order-7-20260101T000000000042Z')).toEqual({ name: 'order-7', at: AT, number: null })
  })

  it('are as texts in the order of time and number', () => {
    const at = fc.bigInt(ZERO_TIME, 253_402_300_799_999_999n).map(instant)
    const number = fc.bigInt(0n, 10n ** 12n - 1n)
    const row = fc.record({ at: fc.oneof(at, fc.constant(AT)), number })
    fc.assert(
      fc.property(row, row, (one, other) => {
        const isBefore = one.at < other.at || (one.at === other.at && one.number < other.number)
        expect(formatRowKey({ name: 'x', ...one }) < formatRowKey({ name: 'x', ...other })).toBe(isBefore)
      }),
    )
  })

  it('encode what Azure forbids in a key, and nothing else', () => {
    expect(formatRowKey({ name: 'a/b\\c#d?e%f\u0000\u007f\u0085 ü–€', at: AT, number: null })).toBe(
      'a%2Fb%5Cc%23d%3Fe%25f%00%7F%C2%85 ü–€-20260101T000000000042Z',
    )
  })

  it('are read back, whatever the name', () => {
    const name = fc.oneof(
      fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
      fc.string({ unit: fc.constantFrom('%', '/', '2', 'F', 'C', '8', '5', '-', '\n', '\u0085', '\ud800') }),
    )
    const at = fc.bigInt(ZERO_TIME, 253_402_300_799_999_999n).map(instant)
    const number = fc.option(fc.bigInt(0n, 10n ** 18n - 1n))
    fc.assert(
      fc.property(name, at, number, (name, at, number) => {
        const key = formatRowKey({ name, at, number })
        expect(parseRowKey(key)).toEqual({ name, at, number })
        expect(key).not.toMatch(/[/\\#?\p{Cc}]/u)
      }),
    )
  })

  it.each([
    '',
    'order-7',
    'order-7-20260101T000000000042',
    'order-7-20260230T000000000042Z',
    'order-7-20260101T0000000000421Z',
    'order-7-20260101T0000000000420000000000001Z',
    'order-7-20260101T0000000000421000000000000000000Z',
    'order-7-20260101T250000000042Z',
    'order-7-00000101T000000000042Z',
    'a/b-20260101T000000000042Z',
    'a%2fb-20260101T000000000042Z',
    'a%41b-20260101T000000000042Z',
    'a%FFb-20260101T000000000042Z',
    'a%b-20260101T000000000042Z',
  ])('are not made up: %s is none', (text) => {
    expect(parseRowKey(text)).toBeNull()
  })
})
