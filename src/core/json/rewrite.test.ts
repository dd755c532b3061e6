import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonTexts } from '../../../test/world/json-texts.ts'
import { parseExactly, sameJson } from './exact.ts'
import { rewriteText } from './rewrite.ts'

describe('a document that is rewritten', () => {
  it('means the other', () => {
    fc.assert(
      fc.property(jsonTexts(), jsonTexts(), (before, after) => {
        const wanted = parseExactly(after)
        expect(sameJson(parseExactly(rewriteText(before, wanted)), wanted)).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  it('keeps its text when both mean the same', () => {
    fc.assert(
      fc.property(jsonTexts(), (text) => {
        const again = JSON.stringify(parseExactly(text))
        expect(rewriteText(text, parseExactly(again))).toBe(text)
      }),
      { numRuns: 300 },
    )
  })

  it.each<[string, string, unknown, string]>([
    ['a member', '{ "a":1.0, "b" : 2 }', { b: 3, a: 1 }, '{ "a":1.0, "b" : 3 }'],
    ['a removed element', '[ 1.0, 2.0, 3.0 ]', [1, 3], '[ 1.0, 3.0 ]'],
    ['removed elements', '[1.0,2,3,4.0]', [1, 4], '[1.0,4.0]'],
    ['an element in the middle', '[1.0, 4.0]', [1, 2, 3, 4], '[1.0, 2, 3, 4.0]'],
    [
      'an element in an object in a list',
      '[{"a":1.0,"b":2},{"c":1.0}]',
      [{ a: 1, b: 3 }, { c: 1 }],
      '[{"a":1.0,"b":3},{"c":1.0}]',
    ],
    ['a list that becomes an object', '{"a":[1]}', { a: { 0: 1 } }, '{"a":{"0":1}}'],
    ['a name of a prototype', '{"a":1.0}', JSON.parse('{"a":1,"__proto__":2}'), '{"a":1.0,"__proto__":2}'],
    ['an inherited name', '{"a":1.0}', { a: 1, constructor: 2 }, '{"a":1.0,"constructor":2}'],
    ['everything', ' 1 ', 'x', ' "x" '],
  ])('leaves alone what is the same: %s', (_name, text, after, expected) => {
    expect(rewriteText(text, after)).toBe(expected)
  })

  it('takes as many steps as a list has elements, also where most of them are gone', {
    timeout: 30_000,
  }, () => {
    const numbers = Array.from({ length: 300_000 }, (_, i) => i)
    const some = numbers.filter((i) => i < 100 || i > 200_000)
    expect(rewriteText(JSON.stringify(numbers), some)).toBe(JSON.stringify(some))
    expect(rewriteText(JSON.stringify(some), numbers)).toBe(JSON.stringify(numbers))
  })
})
