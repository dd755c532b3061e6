import { describe, expect, it } from 'vitest'
import { cut, padEnd, padStart, widthOf, wrapped } from './table.ts'

describe('the width of a text', () => {
  it.each([
    ['plain', 5],
    ['', 0],
    ['é', 1],
    ['e\u0301', 1],
    ['東京', 4],
    ['📮', 2],
    ['👩‍👩‍👧', 2],
    ['▁█', 2],
  ])('of %j is %i columns', (text, width) => {
    expect(widthOf(text)).toBe(width)
  })

  it('is what padding fills', () => {
    expect(padEnd('東', 4)).toBe('東  ')
    expect(padStart('é', 3)).toBe('  é')
    expect(padStart('long', 2)).toBe('long')
  })
})

describe('a text that is cut', () => {
  it.each([
    ['short', 5, 'short'],
    ['longer', 5, 'long…'],
    ['東京都', 6, '東京都'],
    ['東京都', 5, '東京…'],
    ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
    ['é'.repeat(100_000), 3, 'éé…'],
  ])('%j at %i', (text, columns, expected) => {
    expect(cut(text, columns)).toBe(expected)
    expect(widthOf(cut(text, columns))).toBeLessThanOrEqual(columns)
  })
})

it('a text that is wrapped breaks between words', () => {
  expect(wrapped('one two three', 7)).toEqual(['one two', 'three'])
  expect(wrapped('東京 都 unbreakable', 7)).toEqual(['東京 都', 'unbreakable'])
})
