import { describe, expect, it } from 'vitest'
import { instant } from './clock.ts'
import { formatHttpDate } from './timestamp.ts'

describe('an HTTP date', () => {
  it.each([
    [1_794_704_908_000_000n, 'Sun, 15 Nov 2026 01:08:28 GMT'],
    [1_794_704_908_999_999n, 'Sun, 15 Nov 2026 01:08:28 GMT'],
    [1_767_225_599_999_999n, 'Wed, 31 Dec 2025 23:59:59 GMT'],
    [0n, 'Thu, 01 Jan 1970 00:00:00 GMT'],
    [-1n, 'Wed, 31 Dec 1969 23:59:59 GMT'],
  ])('is the second in which %d lies', (at, text) => {
    expect(formatHttpDate(instant(at))).toBe(text)
  })
})
