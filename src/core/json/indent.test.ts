import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { indentJson } from './tokens.ts'

describe('indented JSON', () => {
  it('has a line per member and element, and values as they were written', () => {
    expect(indentJson('{"a":1e400,"n":12345678901234567890,"n":[1.50,{}],"s":"{,}: \\"","e":[]}')).toBe(
      '{\n  "a": 1e400,\n  "n": 12345678901234567890,\n  "n": [\n    1.50,\n    {}\n  ],\n  "s": "{,}: \\"",\n  "e": []\n}',
    )
  })

  it('is made of strings of any length', () => {
    const long = JSON.stringify({ a: 'x\\"'.repeat(2_000_000) })
    expect(JSON.parse(indentJson(long) ?? '')).toEqual(JSON.parse(long))
  })

  it('is null for what is none', () => {
    expect(indentJson('hello')).toBeNull()
    expect(indentJson('{"a":1')).toBeNull()
  })

  it('means the same as before', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(JSON.parse(indentJson(text) ?? '')).toEqual(JSON.parse(text))
      }),
      { numRuns: 50 },
    )
  })
})
