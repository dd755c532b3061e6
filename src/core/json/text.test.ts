import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JsonText } from './text.ts'

describe('the members of a JSON object', () => {
  it('are found as they were written', () => {
    const text =
      ' {"a" : 9007199254740993 , "b":{"x":[1,"}",{"y":"\\"]"}], "x":2},"c" :[ ] ,"a":1.50, "\\u0064":"," } '
    const root = JsonText.of(text)
    expect(['a', 'b', 'c', 'd', 'e'].map((name) => root.at(name)?.written)).toEqual([
      '1.50',
      '{"x":[1,"}",{"y":"\\"]"}], "x":2}',
      '[ ]',
      '","',
      undefined,
    ])
  })

  it('mean what the whole object means', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(undefined, 1, '\t'),
        (object, indent) => {
          const text = JSON.stringify(object, null, indent)
          const root = JsonText.of(text)
          for (const [name, value] of Object.entries(JSON.parse(text)))
            expect(JSON.parse(root.at(name)?.written ?? '')).toEqual(value)
        },
      ),
    )
  })

  it('may be nested as deep as a body allows', () => {
    const deep = '['.repeat(500_000) + ']'.repeat(500_000)
    expect(JsonText.of(`{"deep":${deep}}`).at('deep')?.written).toBe(deep)
  })
})
