import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bytesOf, VECTORS } from '../../../test/kafka/vectors.ts'
import { escapeNonAscii } from './escape.ts'

const escaped = (text: string): string => Buffer.from(escapeNonAscii(Buffer.from(text))).toString('latin1')

describe('JSON that is made ASCII', () => {
  it('has every unit of UTF-16 from U+0080 on as an escape, and nothing else changed', () => {
    expect(escaped('{"a" : "Jürgen 📨\\u00e9\u007f" }')).toBe(
      '{"a" : "J\\u00fcrgen \\ud83d\\udce8\\u00e9\u007f" }',
    )
  })

  it('is as the vectors have it', () => {
    const vector = VECTORS.intake.find(({ id }) => id === 'value-raw-utf8')
    const published = vector?.expect?.published_value
    expect(Buffer.from(escapeNonAscii(bytesOf(vector?.value ?? '')))).toEqual(bytesOf(String(published)))
  })

  it('is the same object when there is nothing to escape', () => {
    const bytes = Buffer.from('{"a": 1.0}')
    expect(escapeNonAscii(bytes)).toBe(bytes)
  })

  it('is the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value)
        expect(JSON.parse(escaped(text))).toEqual(JSON.parse(text))
        expect(escaped(text)).not.toMatch(/[\u0080-\uffff]/)
      }),
    )
  })
})
