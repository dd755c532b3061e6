import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isAsciiText, isText, shownText } from './bytes.ts'

describe('bytes as text', () => {
  it('are shown as they are, or in base64 when they are no text', () => {
    expect(shownText(Buffer.from('Größe'), 100)).toBe('Größe')
    expect(shownText(Buffer.from('fffe', 'hex'), 100)).toBe('base64://4=')
    expect(shownText(new Uint8Array(Buffer.from('plain')), 100)).toBe('plain')
  })

  it('end with a mark where they were too long, never in the middle of a character', () => {
    expect(shownText(Buffer.from('abcü'), 4)).toBe('abc… [cut]')
    expect(shownText(Buffer.from('abcü'), 5)).toBe('abcü')
    expect(shownText(Buffer.from('📨📨'), 7)).toBe('📨… [cut]')
    expect(shownText(Buffer.alloc(100, 0xff), 3)).toBe('base64:////… [cut]')
  })

  it('survive JSON, whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer({ min: 1, max: 200 }), (bytes, limit) => {
        const text = shownText(bytes, limit)
        expect(JSON.parse(JSON.stringify(text))).toBe(text)
        expect(text.isWellFormed()).toBe(true)
      }),
    )
  })

  it('are ASCII or text by the same rule, however long they are', () => {
    const bytes = fc.tuple(fc.uint8Array({ maxLength: 4 }), fc.nat(100))
    fc.assert(
      fc.property(bytes, ([end, length]) => {
        const sample = Buffer.concat([Buffer.alloc(length, 'a'), end])
        expect(isAsciiText(sample)).toBe(sample.every((byte) => byte < 128))
        expect(isText(sample)).toBe(Buffer.from(sample.toString('utf8')).equals(sample))
      }),
    )
  })
})
