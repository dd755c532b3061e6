import { describe, expect, it } from 'vitest'
import { retryDelaySeconds } from './outcome.ts'

describe('the delay after a failed attempt', () => {
  it.each([
    [
      [5, 30, 60],
      [5, 30, 60, 120, 180, 240, 300],
    ],
    [[1], [1, 2, 3, 4, 5, 6, 7]],
    [
      [10, 30, 60, 150],
      [10, 30, 60, 150, 300, 450, 600],
    ],
  ])('follows the list %j and grows from its last value on', (list, delays) => {
    expect(delays.map((_, i) => retryDelaySeconds(list, i + 1))).toEqual(delays)
  })
})
