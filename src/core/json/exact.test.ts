import { describe, expect, it } from 'vitest'
import { canonicalJson, isRawNumber, parseExactly, sameJson, sameNumber } from './exact.ts'

describe('two ways to write a number', () => {
  it.each([
    ['1', '1.0'],
    ['1', '10e-1'],
    ['-0', '0.000'],
    ['0e999999999999999999999', '0'],
    ['12345678901234567890', '1234567890123456789.0e1'],
    ['0.00012', '12E-5'],
  ])('%s is %s', (a, b) => {
    expect(sameNumber(a, b)).toBe(true)
  })

  it.each([
    ['12345678901234567890', '12345678901234567891'],
    ['9007199254740992', '9007199254740993'],
    ['0.1', '0.1000000000000000055'],
    ['1', '-1'],
    ['1e400', '1e401'],
    ['1e99999999999999999999999', '1e99999999999999999999998'],
  ])('%s is not %s', (a, b) => {
    expect(sameNumber(a, b)).toBe(false)
  })

  it('takes no longer for zeros that are not at the end', () => {
    const digits = `1${'0'.repeat(500_000)}1`
    expect(sameNumber(digits, `${digits}.0`)).toBe(true)
  })
})

describe('JSON that is read exactly', () => {
  it.each([
    '{"id":12345678901234567890,"list":[9007199254740993,-0.12345678901234567890,1e400,1e-400]}',
    '{"__proto__":{"id":12345678901234567890},"constructor":1}',
    '[1,2.5,"12345678901234567890",null,true]',
  ])('is written back with all digits: %s', (text) => {
    expect(JSON.stringify(parseExactly(text))).toBe(text)
  })

  it('has the numbers of JavaScript where these are exact', () => {
    expect(parseExactly('[9007199254740991,0.1,1e5,1234567890.123456]')).toEqual([
      9007199254740991, 0.1, 1e5, 1234567890.123456,
    ])
    expect(isRawNumber(parseExactly('9007199254740992'))).toBe(true)
  })

  it('is the same when only the order of members and the way of writing differ', () => {
    const a = parseExactly('{"a":12345678901234567890,"b":[1]}')
    const b = parseExactly('{"b":[1.0],"a":1234567890123456789e1}')
    expect(sameJson(a, b)).toBe(true)
    expect(sameJson(a, parseExactly('{"a":12345678901234567891,"b":[1]}'))).toBe(false)
    expect(sameJson(parseExactly('{"a":1}'), parseExactly('{"__proto__":1}'))).toBe(false)
  })

  it('has one canonical text', () => {
    expect(canonicalJson(parseExactly('{ "b": [1, {"d":2,"c":12345678901234567890}], "a": null }'))).toBe(
      '{"a":null,"b":[1,{"c":12345678901234567890,"d":2}]}',
    )
    expect(canonicalJson({ b: 1, a: undefined })).toBe('{"b":1}')
  })
})
