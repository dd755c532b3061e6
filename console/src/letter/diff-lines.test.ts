import { diffLines } from 'diff'
import { describe, expect, it } from 'vitest'
import { shownLines } from './diff-lines.ts'

const shown = (before: string, after: string) =>
  shownLines(diffLines(before, after)).map(({ sign, text }) => `${sign}${text}`)

describe('lines that differ', () => {
  it('are shown with those around them', () => {
    const lines = Array.from({ length: 12 }, (_, n) => `line ${n}`)
    const before = lines.join('\n')
    const after = before.replace('line 8', 'line eight')
    expect(shown(before, after)).toEqual([
      '…5 equal lines',
      ' line 5',
      ' line 6',
      ' line 7',
      '-line 8',
      '+line eight',
      ' line 9',
      ' line 10',
      ' line 11',
    ])
  })

  it('are none in equal texts', () => {
    expect(shown('a\nb', 'a\nb')).toEqual([])
  })

  it('include a last line without an end', () => {
    expect(shown('a', 'b')).toEqual(['-a', '+b'])
  })
})
