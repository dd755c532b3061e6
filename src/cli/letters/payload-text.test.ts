import { describe, expect, it } from 'vitest'
import { payloadText, sizeText, textLines } from './payload-text.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

describe('a payload for people', () => {
  it('is JSON indented, text as its lines, and neither can command the terminal', () => {
    expect(payloadText(bytes('{"a":"\\u001b[2J"}'))).toEqual({
      kind: 'JSON',
      lines: ['{', '  "a": "\\u001b[2J"', '}'],
      isCut: false,
    })
    expect(payloadText(bytes('one\ntwo\u001b[2J\r'))).toMatchObject({
      kind: 'text',
      lines: ['one', 'two\\x1b[2J\\r'],
    })
  })

  it('is hexadecimal when it is no text', () => {
    expect(payloadText(Uint8Array.of(0, 0x41, 0xff))).toEqual({
      kind: 'bytes',
      lines: [`00000000  00 41 ff${' '.repeat(39)}  .A.`],
      isCut: false,
    })
  })

  it('is cut where it is long', () => {
    expect(payloadText(new Uint8Array(10_000).fill(0xff))).toMatchObject({
      isCut: true,
      lines: { length: 32 },
    })
    expect(payloadText(bytes('line\n'.repeat(1_000)))).toMatchObject({ isCut: true, lines: { length: 200 } })
    expect(payloadText(bytes('x'.repeat(10_000)))).toMatchObject({ isCut: true, lines: { length: 1 } })
  })

  it('tells its size', () => {
    expect(sizeText(bytes('[]'), 'JSON')).toBe('2 bytes, JSON')
    expect(sizeText(new Uint8Array(1), 'bytes')).toBe('1 byte')
    expect(payloadText(new Uint8Array(0))).toMatchObject({ kind: 'empty' })
  })

  it('has no lines to compare when it is no text', () => {
    expect(textLines(Uint8Array.of(0xff))).toBeNull()
    expect(textLines(bytes('[1]'))).toEqual(['[', '  1', ']'])
  })
})
