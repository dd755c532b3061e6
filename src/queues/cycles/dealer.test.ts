import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { emptiest } from '../counts.ts'
import { assignPartitions, dealRoundRobin } from './dealer.ts'

describe('dealing items to waiting leases', () => {
  it('shares 23 items among leases of 20, 6 and 1 as 16, 6 and 1', () => {
    const hands = dealRoundRobin(
      [20, 6, 1],
      Array.from({ length: 23 }, (_, i) => i),
    )
    expect(hands.map((hand) => hand.length)).toEqual([16, 6, 1])
  })

  it('gives each of five leases two of ten items', () => {
    const hands = dealRoundRobin(
      [10, 10, 10, 10, 10],
      Array.from({ length: 10 }, (_, i) => i),
    )
    expect(hands.map((hand) => hand.length)).toEqual([2, 2, 2, 2, 2])
  })

  it('hands out each item once, in order within a hand, never beyond a batch size, and none while one is open', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 12 }),
        fc.nat(100),
        (sizes, count) => {
          const items = Array.from({ length: count }, (_, i) => i)
          const hands = dealRoundRobin(sizes, items)
          const dealt = hands.flat().sort((a, b) => a - b)
          const room = sizes.reduce((sum, size) => sum + size, 0)
          expect(dealt).toEqual(items.slice(0, Math.min(count, room)))
          for (const [i, hand] of hands.entries()) {
            expect(hand.length).toBeLessThanOrEqual(sizes[i] ?? 0)
            expect(hand).toEqual([...hand].sort((a, b) => a - b))
          }
          const open = hands.filter((hand, i) => hand.length < (sizes[i] ?? 0)).map((hand) => hand.length)
          const most = Math.max(0, ...hands.map((hand) => hand.length))
          for (const length of open) expect(most - length).toBeLessThanOrEqual(1)
        },
      ),
    )
  })
})

describe('choosing partitions', () => {
  it('serves leases of 5, 10 and 20 from partitions of 30 and 20 items as the contract shows', () => {
    expect(assignPartitions([5, 10, 20], [30, 20])).toEqual([0, 0, 1])
  })

  it('lets later leases join the fullest partition once everything is promised', () => {
    expect(assignPartitions([10, 10, 10], [0, 3, 0])).toEqual([1, 1, 1])
  })

  it('keeps leases waiting when no partition has any items', () => {
    expect(assignPartitions([1, 1], [0, 0])).toEqual([-1, -1])
  })

  it('produces into the emptiest partition, the lowest number first', () => {
    expect(emptiest([2, 1, 1])).toBe(1)
    expect(emptiest([0, 0])).toBe(0)
  })
})
