import { describe, expect, it } from 'vitest'
import { NEW_TOUR, nextOf, readTour, stepsOf, type Tour } from './demo-progress.ts'

const before = { retried: 2, confirmed: 1 }
const tour = (changes: Partial<Tour>): Tour => ({ ...NEW_TOUR, before, ...changes })
const outcomes = (retried: number, confirmed: number, unconfirmed: number) => ({
  retried,
  confirmed,
  returned: 0,
  unconfirmed,
})
const doneOf = (given: Tour, now: Parameters<typeof stepsOf>[1]) =>
  stepsOf(given, now).flatMap(({ id, isDone }) => (isDone ? [id] : []))

describe('the tour of the demo', () => {
  it('begins with the signature that heals', () => {
    expect(nextOf(stepsOf(NEW_TOUR, undefined))?.id).toBe('open')
  })

  it('notices what was opened and looked at', () => {
    expect(doneOf(tour({ hasOpened: true, hasLooked: true }), outcomes(2, 1, 0))).toEqual(['open', 'look'])
  })

  it('counts only what was retried since it began', () => {
    expect(doneOf(tour({}), outcomes(2, 1, 0))).toEqual([])
    expect(doneOf(tour({}), outcomes(10, 1, 8))).toEqual(['retry'])
  })

  it('ends when the last outcome is known', () => {
    const given = tour({ hasOpened: true, hasLooked: true })
    expect(nextOf(stepsOf(given, outcomes(10, 8, 1)))?.id).toBe('watch')
    expect(nextOf(stepsOf(given, outcomes(10, 9, 0)))).toBeNull()
  })

  it('begins anew where its memory cannot be read', () => {
    expect(readTour(null)).toEqual(NEW_TOUR)
    expect(readTour('{')).toEqual(NEW_TOUR)
    expect(readTour(JSON.stringify(tour({ hasOpened: true })))).toEqual(tour({ hasOpened: true }))
  })
})
