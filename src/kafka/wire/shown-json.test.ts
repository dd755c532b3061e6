import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shownJson } from './shown-json.ts'

const shown = (text: string): string => shownJson(Buffer.from(text))

describe('JSON as responses show it', () => {
  it('keeps every digit, space and escape', () => {
    const text = '{"big": 12345678901234567890, "f":1.0,"e": 1e400, "a": 1, "a": "\\u00fc\\ud800 ü"}'
    expect(shown(text)).toBe(text)
  })

  it('has null where numbers are not finite, but not in strings', () => {
    expect(shown('[NaN,-Infinity, Infinity ,-1,"NaN","\\"-Infinity\\\\",{"NaN": NaN}]')).toBe(
      '[null,null, null ,-1,"NaN","\\"-Infinity\\\\",{"NaN": null}]',
    )
    expect(shown('NaN')).toBe('null')
  })

  it('is always JSON, and the same but for them', () => {
    const name = fc.constantFrom('NaN', 'Infinity', '"\\', 'a')
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        tie('leaf'),
        fc.array(tie('value')),
        fc.dictionary(name, tie('value')),
      ),
      leaf: fc.oneof(fc.double(), fc.string(), name, fc.boolean(), fc.constant(null)),
    }))
    fc.assert(
      fc.property(value, (sample) => {
        // JSON.stringify writes null for them; a token of ours stands for each until they are all in place.
        const text = JSON.stringify(sample, (_, member) =>
          typeof member === 'number' && !Number.isFinite(member) ? `\u0001${member}` : member,
        ).replaceAll(/"\\u0001([^"]+)"/g, '$1')
        expect(JSON.parse(shown(text))).toEqual(JSON.parse(JSON.stringify(sample)))
      }),
    )
  })
})
