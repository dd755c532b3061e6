import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fold, indexable, wordsOf } from './texts.ts'

const letter = {
  source_id: 'Source-1',
  instance_id: null,
  correlation_id: null,
  error_class: 'TypeError',
  error_message: 'The Key Is Gone',
  reference: Buffer.from('customer\u00007'),
  headers: Buffer.from('{"Trace":"ABC"}'),
  payload: Buffer.from('{"größe":"Ünlü"}'),
}

describe('the text that a letter is found by', () => {
  it('holds error, ids, reference, headers and payload, whatever their case', () => {
    expect(wordsOf(letter).split('\n')).toEqual([
      'source-1',
      'typeerror',
      'the key is gone',
      'customer7',
      '{"trace":"abc"}',
      '{"größe":"ünlü"}',
    ])
  })

  it('leaves out bytes that are no text, but not a character cut at the end', () => {
    expect(wordsOf({ ...letter, payload: Buffer.from('no text\xff', 'latin1') })).not.toContain('no text')
    expect(wordsOf({ ...letter, payload: Buffer.from('abcü').subarray(0, 4) })).toMatch(/\nabc$/)
  })

  it('is bounded', () => {
    const long = Buffer.alloc(8_192, 'x')
    const words = wordsOf({ ...letter, error_message: 'y'.repeat(4_096), headers: long, payload: long })
    expect(words.length).toBeLessThanOrEqual(16_384)
  })

  it('has every part of itself, folded and as the index keeps it', () => {
    const text = fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) })
    fc.assert(
      fc.property(
        text,
        fc.oneof(text, fc.constantFrom('ΟΔΟΣ', 'ς', 'İ', 'ß', 'Straße ', '\0')),
        text,
        (a, b, c) => {
          const whole = a + b + c
          expect(fold(whole)).toContain(fold(b))
          expect(fold(whole.toUpperCase())).toContain(fold(b.toUpperCase()))
          expect(indexable(fold(whole))).toContain(indexable(fold(b)))
          expect(indexable(fold(whole))).toMatch(/^[a-z0-9]*$/)
          expect(indexable(fold(b)).length).toBeGreaterThanOrEqual(fold(b).length)
        },
      ),
    )
  })
})
