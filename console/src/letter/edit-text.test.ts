import { describe, expect, it } from 'vitest'
import { editModeOf, editProblem, fromField, toField } from './edit-text.ts'

const never = () => {
  throw new Error('not asked for')
}
const roundTrip = (text: string): string => {
  const mode = editModeOf(text, 'utf8')
  return fromField(toField(text, never, mode), mode).payload
}

describe('a payload in a text field', () => {
  it('comes out as it went in', () => {
    for (const text of ['', 'a', 'a\nb\n', 'a\r\nb\r\n', '\ufeff{"ü":"\u0000"}'])
      expect(roundTrip(text)).toBe(text)
  })

  it('is edited as base64 when a text field would change it', () => {
    expect(editModeOf('a\r\nb\n', 'utf8').kind).toBe('base64')
    expect(editModeOf('a\rb', 'utf8').kind).toBe('base64')
    expect(editModeOf('AAE=', 'base64').kind).toBe('base64')
    const mode = editModeOf('a\rb', 'utf8')
    expect(fromField(`${toField('a\rb', () => 'YQ1i', mode)}\n`, mode)).toEqual({
      payload: 'YQ1i',
      payloadEncoding: 'base64',
    })
  })
})

describe('an edit', () => {
  const text = { mode: { kind: 'text', lineEnd: '\n' }, original: '{"a":1}', notes: '' } as const

  it('of JSON stays JSON', () => {
    expect(editProblem('{"a":2}', text)).toBeNull()
    expect(editProblem('{"a":}', text)?.kind).toBe('json')
    expect(editProblem('{"a":}', { ...text, original: 'plain' })).toBeNull()
  })

  it('is base64 where it has to be', () => {
    const bytes = { ...text, mode: { kind: 'base64', why: '' } } as const
    expect(editProblem('AAE=', bytes)).toBeNull()
    expect(editProblem('AAE', bytes)?.kind).toBe('form')
    expect(editProblem('ü', bytes)?.kind).toBe('form')
  })

  it('has whole characters, and no more bytes than the server takes', () => {
    expect(editProblem('"\ud800"', text)?.kind).toBe('form')
    expect(editProblem(JSON.stringify('x'.repeat(1_048_560)), text)?.kind).toBe('size')
    expect(
      editProblem(JSON.stringify('x'.repeat(1_000_000)), { ...text, notes: 'y'.repeat(60_000) })?.kind,
    ).toBe('size')
  })
})
