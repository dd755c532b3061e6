import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { instant } from './clock.ts'
import { formatRowKey, parseRowKey } from './row-key.ts'
import { ZERO_TIME } from './timestamp.ts'

const AT = instant(1_767_225_600_000_042n)

describe('row keys', () => {
  it('end with the time, in microseconds', () => {
    expect(formatRowKey('order-7', AT)).toBe('order-7-20260101T000000000042Z')
    expect(formatRowKey('x', ZERO_TIME)).toBe('x-00010101T000000000000Z')
    expect(formatRowKey('x', instant(-1n))).toBe('x-19691231T235959999999Z')
  })

  it('encode what Azure forbids in a key, and nothing else', () => {
    expect(formatRowKey('a/b\\c#d?e%f\u0000\u007f\u0085 ü–€', AT)).toBe(
      'a%2Fb%5Cc%23d%3Fe%25f%00%7F%C2%85 ü–€-20260101T000000000042Z',
    )
  })

  it('are read back, whatever the name', () => {
    const name = fc.oneof(
      fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
      fc.string({ unit: fc.constantFrom('%', '/', '2', 'F', 'C', '8', '5', '-', '\n', '\u0085', '\ud800') }),
    )
    const at = fc.bigInt(ZERO_TIME, 253_402_300_799_999_999n).map(instant)
    fc.assert(
      fc.property(name, at, (name, at) => {
        const key = formatRowKey(name, at)
        expect(parseRowKey(key)).toEqual({ name, at })
        expect(key).not.toMatch(/[/\\#?\p{Cc}]/u)
      }),
    )
  })

  it.each([
    '',
    'order-7',
    'order-7-20260101T000000000042',
    'order-7-20260230T000000000042Z',
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
