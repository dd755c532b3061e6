import { describe, expect, it } from 'vitest'
import { canaryTerm, outcomesOf, paceOf, partsOf, rateTerm, resumedWords, titleOf } from './redrive-words.ts'

const counts = {
  planned: 1_204,
  sent: 300,
  skipped: 3,
  failed: 1,
  remaining: 900,
  confirmed: 290,
  returned: 4,
  unconfirmed: 6,
}
const sum = (parts: readonly { readonly count: number }[]) => parts.reduce((all, { count }) => all + count, 0)

describe('a redrive in words', () => {
  it('has numbers that add up', () => {
    expect(sum(partsOf('retry', counts))).toBe(counts.planned)
    expect(sum(outcomesOf('retry', counts))).toBe(counts.sent)
    expect(outcomesOf('discard', counts)).toEqual([])
    expect(partsOf('discard', counts).map(({ word }) => word)).toEqual([
      'discarded',
      'skipped',
      'failed',
      'left',
    ])
  })

  it('has a name that stays', () => {
    expect(titleOf({ action: 'retry', counts, queue: null })).toBe('Retry of 1,204 letters')
    expect(titleOf({ action: 'move', counts: { ...counts, planned: 1 }, queue: 'b' })).toBe(
      'Move of 1 letter to b',
    )
  })

  it('tells its pace as far as it is known', () => {
    expect(paceOf({ rateNow: 2.46, secondsLeft: 366 })).toBe('2.5 per second now, about 6 min left')
    expect(paceOf({ rateNow: 1_234.6, secondsLeft: null })).toBe('1,235 per second now')
    expect(paceOf({ rateNow: null, secondsLeft: null })).toBeNull()
    expect(paceOf({ rateNow: 0, secondsLeft: null })).toBeNull()
    expect(paceOf({ rateNow: 0.02, secondsLeft: null })).toBe('less than 0.1 per second now')
    expect(canaryTerm({ letters: 3, confirmPercent: 66.5, waitSeconds: 90 })).toContain('after 90 s')
    expect(rateTerm(0.00001)).toBe('At most 0.00001 per second, to each destination')
  })

  it('says when it went on after a restart', () => {
    expect([0, 1, 2, 3].map(resumedWords)).toEqual([
      null,
      'Continued after a restart.',
      'Continued after a restart, twice.',
      'Continued after a restart, 3 times.',
    ])
  })
})
