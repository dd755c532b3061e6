import { describe, expect, it } from 'vitest'
import { readBytes } from './read-bytes.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('bytes on the page', () => {
  it('are text where they are UTF-8, as they came', () => {
    const text = '{"id": 9007199254740993, "name": "Zoë"}\n\t<b>'
    expect(readBytes(bytes(text), 100)).toEqual({
      form: 'text',
      text,
      size: bytes(text).length,
      isCut: false,
    })
  })

  it('are numbers where they are none, or hold what cannot be seen', () => {
    expect(readBytes(Uint8Array.of(0xff, 0x41), 100)).toMatchObject({ form: 'hex', size: 2 })
    expect(readBytes(Uint8Array.of(0xff, 0x41), 100).text).toMatch(/^00000000 {2}ff 41 +\.A$/)
    expect(readBytes(bytes('a\u0000b'), 100).form).toBe('hex')
    expect(readBytes(bytes('a\u001b[31m'), 100).form).toBe('hex')
  })

  it('are cut where they are many, never through a character', () => {
    expect(readBytes(bytes('abö'), 3)).toEqual({ form: 'text', text: 'ab', size: 4, isCut: true })
  })
})
