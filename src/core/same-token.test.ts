import { describe, expect, it } from 'vitest'
import { sameToken } from './same-token.ts'

describe('a token', () => {
  it('is the known one only if all of it is', () => {
    for (const token of ['', 'a', 'tok-en', 'é', '日本', 'x'.repeat(255)]) {
      expect(sameToken(token, token)).toBe(true)
      for (const other of [
        `${token}x`,
        `x${token}`,
        token.slice(1) + 'x'.repeat(2),
        `${token.toUpperCase()} `,
      ]) {
        expect(sameToken(token, other)).toBe(false)
        expect(sameToken(other, token)).toBe(false)
      }
    }
    expect(sameToken('ab', 'ac')).toBe(false)
    expect(sameToken('é', 'e\u0301')).toBe(false)
  })
})
