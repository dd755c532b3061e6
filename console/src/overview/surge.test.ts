import { describe, expect, it } from 'vitest'
import { perHourOf, surgeOf } from './surge.ts'

const NOW = Date.parse('2026-11-18T04:20:00Z')
const LONG_AGO = '2026-10-01T00:00:00Z'
const hours = (...last: readonly number[]): number[] => [...Array(24 - last.length).fill(1), ...last]

describe('a surge of letters', () => {
  it('is none while as many arrive as usual', () => {
    expect(surgeOf({ trend: hours(), firstSeenAtUtc: LONG_AGO }, NOW)).toBeNull()
    expect(surgeOf({ trend: hours(2, 4), firstSeenAtUtc: LONG_AGO }, NOW)).toBeNull()
  })

  it('began with the first hour that had more than usual, and lasts since', () => {
    expect(surgeOf({ trend: hours(50, 290, 20), firstSeenAtUtc: LONG_AGO }, NOW)).toEqual({
      since: new Date('2026-11-18T02:00:00Z'),
      words: '290× usual',
      times: 290,
    })
  })

  it('began in this hour, while the one before was as usual', () => {
    const surge = surgeOf({ trend: hours(1, 40), firstSeenAtUtc: LONG_AGO }, NOW)
    expect(surge?.since).toEqual(new Date('2026-11-18T04:00:00Z'))
  })

  it('of a cause never seen before began with its first letter', () => {
    const trend = [...Array(23).fill(0), 40]
    expect(surgeOf({ trend, firstSeenAtUtc: '2026-11-18T04:11:30Z' }, NOW)).toMatchObject({
      since: new Date('2026-11-18T04:11:30Z'),
      words: 'usually none',
    })
  })

  it('is measured by the hour before where this one has just begun', () => {
    expect(perHourOf({ trend: hours(50, 3) })).toBe(50)
    expect(perHourOf({ trend: [] })).toBe(0)
  })
})
