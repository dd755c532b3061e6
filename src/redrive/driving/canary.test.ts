import { describe, expect, it } from 'vitest'
import type { RedriveCounts } from '../redrive.ts'
import { canaryVerdict, isCanarySent, leftOfCanary } from './stop-rule.ts'

const canary = { letters: 10, confirmPercent: 80, waitSeconds: 60 }

function counts({ sent = 10, confirmed = 0, returned = 0, remaining = 90 }): RedriveCounts {
  const planned = sent + remaining
  const unconfirmed = sent - confirmed - returned
  return { planned, sent, skipped: 0, failed: 0, remaining, confirmed, returned, unconfirmed }
}

describe('a canary', () => {
  it('is sent when as many as it has are, or all there are', () => {
    expect(leftOfCanary(canary, 4)).toBe(6)
    expect(leftOfCanary(canary, 12)).toBe(0)
    expect(isCanarySent(canary, counts({ sent: 9 }))).toBe(false)
    expect(isCanarySent(canary, counts({ sent: 10 }))).toBe(true)
    expect(isCanarySent(canary, counts({ sent: 3, remaining: 0 }))).toBe(true)
  })

  it('lets the others follow once enough were confirmed', () => {
    expect(canaryVerdict(canary, counts({ confirmed: 7 }), 0n)).toBeNull()
    expect(canaryVerdict(canary, counts({ confirmed: 8, returned: 2 }), 0n)).toEqual({
      state: 'running',
      note: null,
    })
  })

  it('stops as soon as that cannot be reached any more', () => {
    expect(canaryVerdict(canary, counts({ returned: 2 }), 0n)).toBeNull()
    expect(canaryVerdict(canary, counts({ returned: 3 }), 0n)?.state).toBe('stopped')
  })

  it('pauses when nothing was heard for so long', () => {
    expect(canaryVerdict(canary, counts({ confirmed: 5 }), 59_999_999n)).toBeNull()
    expect(canaryVerdict(canary, counts({ confirmed: 5 }), 60_000_000n)).toMatchObject({
      state: 'paused',
      note: expect.stringContaining('nothing was heard of the others for 60 s'),
    })
  })

  it('has nothing to wait for when all of its letters were skipped', () => {
    expect(canaryVerdict(canary, counts({ sent: 0, remaining: 0 }), 0n)?.state).toBe('running')
  })
})
