import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memberTexts } from './json-members.ts'

describe('the members of a JSON object', () => {
  it('are found as they were written', () => {
    const text =
      ' {"a" : 9007199254740993 , "b":{"x":[1,"}",{"y":"\\"]"}], "x":2},"c" :[ ] ,"a":1.50, "\\u0064":"," } '
    expect([...memberTexts(text)]).toEqual([
      ['a', '1.50'],
      ['b', '{"x":[1,"}",{"y":"\\"]"}], "x":2}'],
      ['c', '[ ]'],
      ['d', '","'],
    ])
  })

  it('mean what the whole object means', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(undefined, 1, '\t'),
        (object, indent) => {
          const text = JSON.stringify(object, null, indent)
          const parsed = [...memberTexts(text)].map(([name, value]) => [name, JSON.parse(value)])
          expect(new Map(Object.entries(JSON.parse(text)))).toEqual(new Map(parsed as [string, unknown][]))
        },
      ),
    )
  })

  it('may be nested as deep as a body allows', () => {
    const deep = '['.repeat(500_000) + ']'.repeat(500_000)
    expect(memberTexts(`{"deep":${deep}}`).get('deep')).toBe(deep)
  })
})
