import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Instant, instant, later } from '../../core/clock.ts'
import { deathReason } from './settle.ts'

const NOW = instant(1_800_000_000_000_000n)
const item = (attempts: number, expireAt: Instant | null = null, isLetter = false) => ({
  attempts,
  expireAt,
  isLetter,
})

describe('an item whose lease is over', () => {
  it('dies of its attempts when they are used up, and not before', () => {
    expect(deathReason(item(2), 3, NOW)).toBeNull()
    expect(deathReason(item(3), 3, NOW)).toBe('attempts')
    expect(deathReason(item(4), 3, NOW)).toBe('attempts')
  })

  it('has unlimited attempts when the queue says 0', () => {
    expect(deathReason(item(1_000_000), 0, NOW)).toBeNull()
  })

  it('expires strictly after its deadline', () => {
    expect(deathReason(item(1, NOW), 0, NOW)).toBeNull()
    expect(deathReason(item(1, later(NOW, -1n)), 0, NOW)).toBe('expired')
    expect(deathReason(item(1, null), 0, NOW)).toBeNull()
  })

  it('dies of its attempts rather than of its age when both are over', () => {
    expect(deathReason(item(3, later(NOW, -1n)), 3, NOW)).toBe('attempts')
  })
})

it('a dead letter never dies', () => {
  fc.assert(
    fc.property(fc.nat(10), fc.nat(10), fc.bigInt({ min: -10n, max: 10n }), (attempts, maxAttempts, us) => {
      expect(deathReason(item(attempts, later(NOW, us), true), maxAttempts, NOW)).toBeNull()
    }),
  )
})
