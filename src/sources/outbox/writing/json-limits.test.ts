import { describe, expect, it } from 'vitest'
import { columnProblem } from './fit.ts'

const NUMBER = 'holds a number beyond what a column of jsonb can keep'

describe('JSON for a column of PostgreSQL', () => {
  it.each<[string, string | undefined]>([
    ['{"a": [1, -2.5e3, "x", true, false, null]}', undefined],
    ['-1e131071', undefined],
    ['1e131072', NUMBER],
    ['-1E+131072', NUMBER],
    ['[1e-16383]', undefined],
    ['[1e-16384]', NUMBER],
    [`0.${'1'.repeat(16_384)}`, NUMBER],
    ['"1e999999"', undefined],
    ['"\\u0000"', 'holds U+0000, which a column of jsonb cannot keep'],
    ['"\\\\u0000"', undefined],
    ['{"\\ud83d": 1}', 'holds half a character (a lone surrogate), which a column of jsonb cannot keep'],
    ['"\\ud83d\\ude00"', undefined],
  ])('is held against the limits of jsonb: %.40s', (text, problem) => {
    expect(columnProblem(text, 'jsonb')).toBe(problem)
    expect(columnProblem(text, 'json')).toBeUndefined()
  })

  it('is nested as deep as its stack allows', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(columnProblem(nested(5_000), 'json')).toBeUndefined()
    expect(columnProblem(nested(5_001), 'json')).toBe('is nested deeper than 5000 levels')
  })
})
