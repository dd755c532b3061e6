import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { lineDiff } from './payload-text.ts'

const shown = (before: string, after: string) =>
  lineDiff(before.split(''), after.split(''))
    .map(({ sign, text }) => sign + text)
    .join(' ')

describe('what differs between two texts', () => {
  it('is nothing when they are equal', () => {
    expect(lineDiff(['a', 'b'], ['a', 'b'])).toEqual([])
  })

  it('is shown with some lines around it', () => {
    expect(shown('abcdefghij', 'abcdeXghij')).toBe('…  c  d  e -f +X  g  h  i …')
    expect(shown('abc', 'abcd')).toBe(' a  b  c +d')
    expect(shown('abcd', 'bcd')).toBe('-a  b  c  d')
  })

  it('leaves out equal lines between changes', () => {
    expect(shown('a12345678b', 'c12345678d')).toBe('-a +c  1  2  3 …  6  7  8 -b +d')
  })

  it('always leads from one to the other', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 12 })
    fc.assert(
      fc.property(text, text, (before, after) => {
        const diff = lineDiff(before, after)
        const count = (lines: readonly string[], of: string) => lines.filter((each) => each === of).length
        for (const letter of ['a', 'b', 'c']) {
          const added = diff.filter(({ sign, text: line }) => sign === '+' && line === letter).length
          const removed = diff.filter(({ sign, text: line }) => sign === '-' && line === letter).length
          expect(count(before, letter) + added - removed).toBe(count(after, letter))
        }
      }),
      { numRuns: 50 },
    )
  })

  it('of very long texts is shown as a whole', () => {
    const lines = (mark: string) => Array.from({ length: 2_000 }, (_, number) => `${mark}${number}`)
    expect(lineDiff(lines('a'), lines('b'))).toHaveLength(4_000)
  })
})
