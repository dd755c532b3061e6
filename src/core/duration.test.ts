import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatGoDuration, parseGoDuration, usFromNs } from './duration.ts'

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

const ns = (text: string): bigint => {
  const parsed = parseGoDuration(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.ns
}

const reason = (text: string): string => {
  const parsed = parseGoDuration(text)
  return parsed.ok ? `accepted as ${parsed.ns}` : parsed.reason
}

describe('a Go duration', () => {
  it.each([
    ['1m', '1m0s'],
    ['90s', '1m30s'],
    ['60m', '1h0m0s'],
    ['24h', '24h0m0s'],
    ['1.5h', '1h30m0s'],
    ['1h0.5s', '1h0m0.5s'],
    ['300ms', '300ms'],
    ['1500ms', '1.5s'],
    ['1us', '1µs'],
    ['0', '0s'],
    ['-1.5h', '-1h30m0s'],
    ['999ns', '999ns'],
    ['1001us', '1.001ms'],
  ])('%s is written %s', (text, written) => {
    expect(formatGoDuration(ns(text))).toBe(written)
  })

  it.each([
    ['+5s', 5_000_000_000n],
    ['-0', 0n],
    ['+0', 0n],
    ['1.s', 1_000_000_000n],
    ['.5s', 500_000_000n],
    ['12\u00b5s', 12_000n],
    ['12\u03bcs', 12_000n],
    ['3h3h', 21_600_000_000_000n],
    ['0000000000000000000000001s', 1_000_000_000n],
    ['9223372036854775807ns', INT64_MAX],
    ['-9223372036854775808ns', INT64_MIN],
    ['-2562047h47m16.854775808s', INT64_MIN],
    ['1.9ns', 1n],
    ['0.9223372036854775807h', 3_320_413_933_267n],
    ['0.3333333333333333333h', 1_200_000_000_000n],
    ['0.100000000000000000000h', 360_000_000_000n],
    ['0.830103483285477580700h', 2_988_372_539_827n],
  ])('%s is read exactly', (text, expected) => {
    expect(ns(text)).toBe(expected)
  })

  it.each(['', '-', '+', '.', '-.', '.s', '+.s', ' 5s', 's', '3000000h', '9223372036854775808ns'])(
    '%j is invalid',
    (text) => {
      expect(reason(text)).toBe(`time: invalid duration "${text}"`)
    },
  )

  it('that overflows in its digits, in a product or in a sum is invalid', () => {
    for (const text of [
      '9'.repeat(100_000),
      '9223372036854775810ns',
      '9223372036854775.808us',
      '2562047h48m',
    ]) {
      expect(reason(text)).toBe(`time: invalid duration "${text}"`)
    }
    expect(reason('-9223372036854775809ns')).toBe('time: invalid duration "-9223372036854775809ns"')
  })

  it('without a unit says so', () => {
    expect(reason('5')).toBe('time: missing unit in duration "5"')
    expect(reason('1s5')).toBe('time: missing unit in duration "1s5"')
    expect(reason('00')).toBe('time: missing unit in duration "00"')
    expect(reason('1..5s')).toBe('time: missing unit in duration "1..5s"')
  })

  it('with an unknown unit names what stands up to the next digit or dot', () => {
    expect(reason('5x')).toBe('time: unknown unit "x" in duration "5x"')
    expect(reason('5 s')).toBe('time: unknown unit " s" in duration "5 s"')
    expect(reason('5xy7s')).toBe('time: unknown unit "xy" in duration "5xy7s"')
    expect(reason('1s 2s')).toBe('time: unknown unit "s " in duration "1s 2s"')
    expect(reason('1s-2s')).toBe('time: unknown unit "s-" in duration "1s-2s"')
    expect(reason('1d.5s')).toBe('time: unknown unit "d" in duration "1d.5s"')
  })

  it('is quoted in errors with escapes', () => {
    expect(reason('1"\\\n')).toBe('time: unknown unit "\\"\\\\\\x0a" in duration "1\\"\\\\\\x0a"')
    expect(reason('1é')).toBe('time: unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"')
    expect(reason('1😀')).toBe(
      'time: unknown unit "\\xf0\\x9f\\x98\\x80" in duration "1\\xf0\\x9f\\x98\\x80"',
    )
  })

  it('reads back as it was written', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: INT64_MIN, max: INT64_MAX }), (x) => {
        expect(ns(formatGoDuration(x))).toBe(x)
      }),
    )
    fc.assert(
      fc.property(fc.bigInt({ min: -100_000_000_000n, max: 100_000_000_000n }), (x) => {
        expect(ns(formatGoDuration(x))).toBe(x)
      }),
    )
  })

  it('of any text is either a number or a reason', () => {
    const pieces = fc.constantFrom(
      '1',
      '0',
      '9',
      '.',
      '-',
      '+',
      's',
      'm',
      'h',
      'ns',
      '\u00b5s',
      '"',
      ' ',
      'é',
    )
    const texts = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.oneof(texts, fc.string({ unit: 'binary-ascii' })), (text) => {
        const parsed = parseGoDuration(text)
        if (parsed.ok) expect(ns(formatGoDuration(parsed.ns))).toBe(parsed.ns)
        else
          expect(parsed.reason).toMatch(
            /^time: (invalid|missing unit in|unknown unit ".*" in) (duration )?".*"/,
          )
      }),
    )
  })
})

describe('microseconds of a duration', () => {
  it('are cut down', () => {
    expect(usFromNs(1_999n)).toBe(1n)
    expect(usFromNs(999n)).toBe(0n)
    expect(usFromNs(-1n)).toBe(-1n)
    expect(usFromNs(-1_000n)).toBe(-1n)
    expect(usFromNs(-1_001n)).toBe(-2n)
  })
})
