import { describe, expect, it } from 'vitest'
import { bar, showProgress } from './progress.ts'

describe('progress', () => {
  it('is drawn over itself on a terminal, at most ten times a second, and taken away at the end', () => {
    const drawn: string[] = []
    let now = 0
    const progress = showProgress({ err: () => {}, redraw: (text) => void drawn.push(text) }, () => now)
    for (const at of [50, 100, 150, 199, 200]) {
      now = at
      progress.show('checking I6', at * 10, 4_000)
    }
    progress.end()
    expect(drawn).toEqual([
      '█████░░░░░░░░░░░░░░░  25%  checking I6  1,000 of 4,000 rows',
      '██████████░░░░░░░░░░  50%  checking I6  2,000 of 4,000 rows',
      '',
    ])
  })

  it('is a line now and then where nothing can be drawn over', () => {
    const lines: string[] = []
    let now = 0
    const progress = showProgress({ err: (text) => void lines.push(text) }, () => now)
    for (now = 0; now <= 11_000; now += 1_000) progress.show('checking I6', now, 20_000)
    progress.end()
    expect(lines).toEqual([
      'checking I6: 25%, 5,000 of 20,000 rows',
      'checking I6: 50%, 10,000 of 20,000 rows',
    ])
  })

  it('never shows more than all, nor fails where there is nothing', () => {
    expect(bar(5, 4)).toBe('█'.repeat(20))
    expect(bar(0, 0)).toBe('█'.repeat(20))
    expect(bar(-1, 4)).toBe('░'.repeat(20))
  })
})
