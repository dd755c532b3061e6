import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodePageToken, encodePageToken } from './page-token.ts'

const texts = fc.dictionary(fc.string(), fc.string({ unit: 'grapheme' }), { maxKeys: 5 })
const refusal = expect.objectContaining({ code: 'continuation_token_invalid' })

describe('a continuation token', () => {
  it('gives back what it was made of, whatever that is', () => {
    fc.assert(
      fc.property(texts, texts, (filters, cursor) => {
        const reversed = Object.fromEntries(Object.entries(filters).reverse())
        expect(decodePageToken(reversed, encodePageToken(filters, cursor))).toEqual({ ...cursor })
      }),
    )
  })

  it('goes into an address as it is', () => {
    fc.assert(
      fc.property(texts, texts, (filters, cursor) => {
        expect(encodePageToken(filters, cursor)).toMatch(/^[\w-]+$/)
      }),
    )
  })

  it('is refused with other filters', () => {
    fc.assert(
      fc.property(texts, texts, texts, (filters, others, cursor) => {
        fc.pre(
          JSON.stringify(Object.entries(filters).sort()) !== JSON.stringify(Object.entries(others).sort()),
        )
        const token = encodePageToken(filters, cursor)
        expect(() => decodePageToken(others, token)).toThrow(refusal)
      }),
    )
  })

  it('is refused when one character of it is changed', () => {
    const token = encodePageToken({ engine: 'hmac' }, { at: '1798761600123456', id: '7' })
    for (let i = 0; i < token.length; i++) {
      for (const other of ['A', 'B', 'z', '9', '-', '_', '=', '+', ' ', 'é']) {
        if (token[i] === other) continue
        const changed = token.slice(0, i) + other + token.slice(i + 1)
        expect(() => decodePageToken({ engine: 'hmac' }, changed)).toThrow(refusal)
      }
    }
  })

  it('is refused when it is cut, prolonged, or no token at all', () => {
    const token = encodePageToken({}, { id: '7' })
    for (const wrong of [
      '',
      'x',
      token.slice(1),
      token.slice(0, -1),
      `${token}A`,
      `${token}=`,
      token.repeat(999),
    ]) {
      expect(() => decodePageToken({}, wrong)).toThrow(refusal)
    }
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (anything) => {
        expect(() => decodePageToken({}, anything)).toThrow(refusal)
      }),
    )
  })
})
