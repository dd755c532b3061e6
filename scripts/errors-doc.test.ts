import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ERRORS } from '../src/core/errors.ts'
import { errorsDoc } from './errors-doc.ts'

describe('docs/errors.md', () => {
  it('is what the error table says (`npm run docs:errors` writes it)', () => {
    expect(readFileSync(new URL('../docs/errors.md', import.meta.url), 'utf8')).toBe(errorsDoc())
  })

  it('has one row for every code', () => {
    const codes = [...errorsDoc().matchAll(/^\| `(\w+)`/gm)].map(([, code]) => code)
    expect(codes).toEqual(Object.keys(ERRORS))
  })
})
