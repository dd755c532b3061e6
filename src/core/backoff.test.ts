import { describe, expect, it } from 'vitest'
import { backoffDelayMs } from './backoff.ts'

const policy = { baseMs: 500, factor: 1.5, maxMs: 5_000, jitter: 0.2 }

describe('back-off', () => {
  it('grows by its factor up to its maximum', () => {
    const delays = [1, 2, 3, 4, 6, 7, 1_000_000].map((attempt) => backoffDelayMs(attempt, policy, () => 0))
    expect(delays).toEqual([500, 750, 1_125, 1_688, 3_797, 5_000, 5_000])
  })

  it('is shortened, never lengthened, by jitter', () => {
    expect(backoffDelayMs(1, policy, () => 0.5)).toBe(450)
    expect(backoffDelayMs(100, policy, () => 0.999)).toBe(4_001)
    for (let i = 0; i < 1_000; i++) {
      const delayMs = backoffDelayMs(100, policy)
      expect(delayMs).toBeGreaterThanOrEqual(4_000)
      expect(delayMs).toBeLessThanOrEqual(5_000)
    }
  })
})
