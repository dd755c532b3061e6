import { expect, it } from 'vitest'
import { hasUnseen, visible } from './visible.ts'

it('what cannot be seen, or turns the text, is written out', () => {
  expect(visible('invoice\u202Efdp.exe\u0000')).toBe('invoice\\u202Efdp.exe\\u0000')
  expect(visible('Köln, 東京\t\n')).toBe('Köln, 東京\t\n')
  expect([hasUnseen('a\u2066b'), hasUnseen('مرحبا')]).toEqual([true, false])
})
