import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { instant } from './clock.ts'
import { checkKsuid, formatKsuid, idFromSerial, MAX_KSUID, newIdPrefix, serialFromId } from './ksuid.ts'

const WRONG_LENGTH = 'Valid encoded KSUIDs are 27 characters'
const OUT_OF_BOUNDS =
  'Valid encoded KSUIDs are bounded by 000000000000000000000000000 and aWgEPTl1tmebfsQzFP4bxwgy80V'

const VECTORS = [
  ['17c49e80000102030405060708090a0b0c0d0e0f', '3OGEefTZywrEH2GvWZYyDARoCmV', '3OGEefTZywrEH2GvWZYyDARoCmW'],
  [`17c49e80${'f'.repeat(32)}`, '3OGEenGdYbbSuncjWUfij8gddRn', '3OGEenGdYbbSuncjWUfij8gddRo'],
] as const

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const numberOf = (text: string): bigint =>
  [...text].reduce((value, digit) => value * 62n + BigInt(ALPHABET.indexOf(digit)), 0n)
/** The one that follows; a payload overflow carries into the seconds. */
const nextOf = (text: string): string => formatKsuid(numberOf(text) + 1n)

const numbers = fc.bigInt({ min: 0n, max: 2n ** 160n - 1n })
const serials = fc.maxSafeNat()

describe('a KSUID', () => {
  it.each(VECTORS)('of %s is %s and then %s', (hex, text, next) => {
    expect(formatKsuid(BigInt(`0x${hex}`))).toBe(text)
    expect(numberOf(text)).toBe(BigInt(`0x${hex}`))
    expect(nextOf(text)).toBe(next)
  })

  it('reaches from zeros to the largest', () => {
    expect(formatKsuid(0n)).toBe('0'.repeat(27))
    expect(formatKsuid(2n ** 160n - 1n)).toBe(MAX_KSUID)
    expect(() => formatKsuid(2n ** 160n)).toThrow(RangeError)
    expect(() => formatKsuid(-1n)).toThrow(RangeError)
    expect(() => nextOf(MAX_KSUID)).toThrow(RangeError)
  })

  it.each([
    ['', WRONG_LENGTH],
    ['3OGEefTZywrEH2GvWZYyDARoCm', WRONG_LENGTH],
    ['3OGEefTZywrEH2GvWZYyDARoCmVV', WRONG_LENGTH],
    ['3OGEefTZywrEH2GvWZYyDARoCm-', OUT_OF_BOUNDS],
    ['3OGEefTZywrEH2GvWZYyDARoCm ', OUT_OF_BOUNDS],
    ['\u00003OGEefTZywrEH2GvWZYyDARoCm', OUT_OF_BOUNDS],
    ['aWgEPTl1tmebfsQzFP4bxwgy80W', OUT_OF_BOUNDS],
    ['zzzzzzzzzzzzzzzzzzzzzzzzzzz', OUT_OF_BOUNDS],
    // 27 characters but 28 bytes, and 26 characters but 27 bytes
    ['3OGEefTZywrEH2GvWZYyDARoCmé', WRONG_LENGTH],
    ['3OGEefTZywrEH2GvWZYyDARoCé', OUT_OF_BOUNDS],
  ])('%j is refused: %s', (text, reason) => {
    expect(checkKsuid(text)).toBe(reason)
  })

  it('sorts as text like its number', () => {
    fc.assert(
      fc.property(numbers, numbers, (a, b) => {
        expect(formatKsuid(a) < formatKsuid(b)).toBe(a < b)
      }),
    )
  })

  it('reads back as it was written', () => {
    fc.assert(
      fc.property(numbers, (value) => {
        const text = formatKsuid(value)
        expect(checkKsuid(text)).toBeNull()
        expect(numberOf(text)).toBe(value)
      }),
    )
  })
})

describe('ids by serial number', () => {
  const prefix = newIdPrefix(instant(1_798_761_600_000_000n))

  it('ascend with the serial and give it back', () => {
    fc.assert(
      fc.property(serials, serials, (a, b) => {
        const [idA, idB] = [idFromSerial(prefix, a), idFromSerial(prefix, b)]
        expect(checkKsuid(idA)).toBeNull()
        expect(serialFromId(prefix, idA)).toBe(a)
        expect(idA < idB).toBe(a < b)
      }),
    )
  })

  it('count on like the next KSUID', () => {
    const upTo = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER - 1 })
    fc.assert(
      fc.property(fc.oneof(upTo, fc.constantFrom(0, 61, 62 ** 4 - 1, 62 ** 8 - 1)), (serial) => {
        expect(idFromSerial(prefix, serial + 1)).toBe(nextOf(idFromSerial(prefix, serial)))
      }),
    )
  })

  it('end at 2^53', () => {
    const last = idFromSerial(prefix, Number.MAX_SAFE_INTEGER)
    expect(serialFromId(prefix, last)).toBe(Number.MAX_SAFE_INTEGER)
    expect(serialFromId(prefix, nextOf(last))).toBeNull()
    expect(serialFromId(prefix, `${prefix}zzzzzzzzz`)).toBeNull()
    expect(() => idFromSerial(prefix, Number.MAX_SAFE_INTEGER + 1)).toThrow(RangeError)
    expect(() => idFromSerial(prefix, -1)).toThrow(RangeError)
    expect(() => idFromSerial(prefix, Number.NaN)).toThrow(RangeError)
  })

  it('of another prefix are foreign', () => {
    const other = newIdPrefix(instant(1_798_761_601_000_000n))
    expect(serialFromId(prefix, idFromSerial(other, 7))).toBeNull()
  })

  it('carry the second in which their prefix was made', () => {
    expect((numberOf(idFromSerial(prefix, 0)) >> 128n) + 1_400_000_000n).toBe(1_798_761_600n)
  })

  it('stay within the largest KSUID, whenever their prefix was made', () => {
    for (const seconds of [
      -62_135_596_800n,
      0n,
      1_400_000_000n,
      5_694_967_294n,
      5_694_967_295n,
      253_402_300_799n,
    ]) {
      const made = newIdPrefix(instant(seconds * 1_000_000n))
      expect(made).toHaveLength(18)
      expect(checkKsuid(`${made}zzzzzzzzz`)).toBeNull()
    }
  })

  it('never share a prefix by chance', () => {
    const at = instant(1_798_761_600_000_000n)
    expect(new Set(Array.from({ length: 1_000 }, () => newIdPrefix(at))).size).toBe(1_000)
  })
})
