import { describe, expect, it } from 'vitest'
import type { Redrive } from '../api/redrive-types.ts'
import { isNews, watchedOf } from './watched.ts'

describe('the redrives of the line', () => {
  it('are those that were seen, what is under way first, and never more than have room', () => {
    const first = watchedOf([], ['b', 'a'], 3)
    expect(first).toEqual(['b', 'a'])
    expect(watchedOf(first, ['a'], 3)).toBe(first)
    expect(watchedOf(first, ['c', 'a'], 3)).toEqual(['c', 'a', 'b'])
    const many = watchedOf(first, ['g', 'f', 'e', 'd'], 3)
    expect(many).toEqual(['g', 'f', 'e'])
    expect(watchedOf(many, ['g', 'f', 'e', 'd'], 3)).toBe(many)
  })

  it('stay for a while when they are over, longer while outcomes are missing', () => {
    const ended = (unconfirmed: number) =>
      // Only what is looked at here.
      ({ state: 'done', endedAtUtc: '2027-01-01T00:00:00Z', counts: { unconfirmed } }) as Redrive
    const after = (minutes: number) => Date.parse('2027-01-01T00:00:00Z') + minutes * 60_000
    expect([1, 3].map((minutes) => isNews(ended(0), after(minutes)))).toEqual([true, false])
    expect([3, 11].map((minutes) => isNews(ended(2), after(minutes)))).toEqual([true, false])
    expect(isNews({ ...ended(0), state: 'paused', endedAtUtc: null }, after(900))).toBe(true)
    expect(isNews({ ...ended(0), state: 'planned', endedAtUtc: null }, after(0))).toBe(false)
  })
})
