import Type from 'typebox'
import { describe, expect, it } from 'vitest'
import {
  given,
  optionalInstant,
  optionalInteger,
  optionalText,
  refuseUnknownFields,
  requiredText,
} from './json-body.ts'

const refusal = (parameter: string, reason: RegExp) =>
  expect.objectContaining({
    code: 'parameter_invalid',
    details: { parameter, reason: expect.stringMatching(reason) },
  })

describe('a field of a body', () => {
  it('that is absent or null is none', () => {
    expect([optionalText({}, 'a', { max: 9 }), optionalText({ a: null }, 'a', { max: 9 })]).toEqual([
      null,
      null,
    ])
    expect([optionalInteger({}, 'a', 0), optionalInstant({ a: null }, 'a')]).toEqual([null, null])
    expect(() => requiredText({}, 'a', { max: 9 })).toThrow(refusal('a', /missing/))
    expect(() => given(Type.Object({ a: Type.Integer() }), { a: null }).integer('a')).toThrow(
      refusal('a', /missing/),
    )
  })

  it('that nobody knows is refused', () => {
    expect(() => refuseUnknownFields({ a: 1, c: 2 }, ['a', 'b'])).toThrow(refusal('c', /none of a, b/))
    refuseUnknownFields({ b: 1 }, ['a', 'b'])
  })

  it.each([
    [7, /a number/],
    [['x'], /a list/],
    ['', /empty/],
    ['x'.repeat(10), /10 characters, at most 9/],
    ['a\0b', /null character/],
  ])('for a text is never %j', (value, reason) => {
    expect(() => optionalText({ a: value }, 'a', { max: 9 })).toThrow(refusal('a', reason))
  })

  it('holds no half of a character', () => {
    expect(optionalText({ a: 'x\ud800' }, 'a', { max: 9 })).toBe('x\ufffd')
    expect(optionalText({ a: '' }, 'a', { max: 9, min: 0 })).toBe('')
  })

  it.each(['1', 1.5, -1, 101, 2 ** 60, true])('for a number from 0 to 100 is never %j', (value) => {
    expect(() => optionalInteger({ a: value }, 'a', 0, 100)).toThrow(refusal('a', /from 0 to 100/))
    expect(optionalInteger({ a: 100 }, 'a', 0, 100)).toBe(100)
  })

  it('for a time is RFC 3339', () => {
    expect(optionalInstant({ a: '1970-01-01T00:00:01Z' }, 'a')).toBe(1_000_000n)
    expect(() => optionalInstant({ a: 'soon' }, 'a')).toThrow(refusal('a', /RFC 3339/))
  })
})
