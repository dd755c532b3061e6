import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { showBytes } from '../../core/content.ts'
import { optionalPayload, requiredPayload } from './payload.ts'

const read = (fields: object) => optionalPayload({ ...fields }, 'payload', 'payloadEncoding')
const refusal = (fields: object) => {
  try {
    read(fields)
  } catch (error) {
    return error instanceof Error ? error.message : error
  }
  return null
}

describe('a payload in JSON', () => {
  it('is the same bytes again, whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const { text, encoding } = showBytes(bytes)
        const sent = JSON.parse(JSON.stringify({ payload: text, payloadEncoding: encoding }))
        expect(Buffer.from(read(sent) ?? []).equals(Buffer.from(bytes))).toBe(true)
      }),
    )
  })

  it.each([
    ['nothing', ''],
    ['a null character', 'a\0b'],
    ['a byte order mark', '\uFEFF{}'],
    ['numbers and keys that JSON would change', '{"n":12345678901234567890,"a":1,"a":2}'],
    ['characters outside the first plane', '𐐷 ☃'],
  ])('is shown as text when it is UTF-8: %s', (_, text) => {
    expect(showBytes(Buffer.from(text))).toEqual({ text, encoding: 'utf8' })
  })

  it('is shown in base64 when it is not', () => {
    expect(showBytes(Uint8Array.of(0xff, 0xfe))).toEqual({ text: '//4=', encoding: 'base64' })
  })

  it('is refused when its bytes cannot be told', () => {
    expect(refusal({ payload: 'a\ud800' })).toContain('payload is invalid; it holds half a character')
    for (const text of ['//4', '//4=\n', '%%%%', '_-4=', 'A']) {
      expect(refusal({ payload: text, payloadEncoding: 'base64' })).toContain('it is not base64')
    }
    expect(refusal({ payload: 'a', payloadEncoding: 'utf16' })).toContain(
      'payloadEncoding is invalid; it is none of utf8, base64',
    )
    expect(refusal({ payloadEncoding: 'utf8' })).toContain('given without payload')
    expect(refusal({ payload: 7 })).toContain('payload is invalid; give a text')
    expect(() => requiredPayload({}, 'payload', 'payloadEncoding')).toThrow(
      'payload is invalid; it is missing',
    )
  })
})
