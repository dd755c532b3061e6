import { describe, expect, it } from 'vitest'
import { instant, later } from '../core/clock.ts'
import { CaptureTimes } from './registers.ts'

const NOW = instant(1_800_000_000_000_000n)

describe('times of captures', () => {
  it('ascend within an instance, also when a transaction that began earlier comes later', () => {
    const times = new CaptureTimes()
    const nows = [0n, 0n, 0n, 1n, 5n, 4n, 6n, 100n].map((us) => later(NOW, us))
    const given = nows.map((now) => times.take('hmac', 'k', now) - NOW)
    expect(given).toEqual([0n, 1n, 2n, 3n, 5n, 6n, 7n, 100n])
  })

  it('are the present for whom nobody of the same engine and instance was before', () => {
    const times = new CaptureTimes()
    for (let i = 0; i < 10; i++) times.take('hmac', 'k', NOW)
    expect(times.take('tls', 'k', NOW)).toBe(NOW)
    expect(times.take('hmac', 'other', later(NOW, 3n))).toBe(later(NOW, 3n))
  })

  it('follow a clock that is set back', () => {
    const times = new CaptureTimes()
    times.take('hmac', 'k', NOW)
    const hourAgo = later(NOW, -3_600_000_000n)
    expect([times.take('hmac', 'k', hourAgo), times.take('hmac', 'k', hourAgo)]).toEqual([
      hourAgo,
      later(hourAgo, 1n),
    ])
  })
})
