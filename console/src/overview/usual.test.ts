import { describe, expect, it } from 'vitest'
import { againstUsual } from './usual.ts'

describe('arrivals against what is usual', () => {
  it.each([
    [12, null, 'not enough history', false],
    [0, 0, 'as usual', false],
    [10, 10, 'as usual', false],
    [14, 10, 'as usual', false],
    [15, 10, '1.5× usual', true],
    [30, 10, '3× usual', true],
    [1_200, 10, '120× usual', true],
    [4, 10, 'less than usual', false],
    [0, 10, 'less than usual', false],
    [7, 0, 'usually none', true],
  ])('%d in the last hour, %s usually: %s', (lastHour, usual, words, isHigh) => {
    expect(againstUsual(lastHour, usual)).toEqual({ words, isHigh })
  })

  it('makes no alarm of two or three', () => {
    expect(againstUsual(3, 1)).toEqual({ words: '3× usual', isHigh: false })
    expect(againstUsual(2, 0)).toEqual({ words: 'usually none', isHigh: false })
  })
})
