import { describe, expect, it } from 'vitest'
import { sentenceOf, upTo, walksOf } from './plan-walks.ts'

describe('the lists of a plan', () => {
  it('have the statuses on which the act is possible', () => {
    expect(walksOf('retry', { engine: 'hmac' })).toEqual([{ engine: 'hmac', status: 'Pending' }])
    expect(walksOf('restore', {}).map(({ status }) => status)).toEqual(['Resolved', 'Expired'])
    expect(walksOf('restore', { status: 'Expired' })).toEqual([{ status: 'Expired' }])
  })

  it('are none where the filter asks for letters of another status', () => {
    expect(walksOf('retry', { status: 'Resolved' })).toEqual([])
    expect(walksOf('discard', { outcome: 'unconfirmed' })).toEqual([])
    expect(walksOf('restore', { status: 'Pending' })).toEqual([])
    expect(walksOf('restore', { status: 'Expired', outcome: 'confirmed' })).toEqual([])
  })

  it('are of resolved letters where an outcome is asked for', () => {
    expect(walksOf('restore', { outcome: 'unconfirmed' })).toEqual([
      { outcome: 'unconfirmed', status: 'Resolved' },
    ])
  })

  it('end with the newest letter there was', () => {
    const newest = { lastFailureAtUtc: '2027-01-01T00:00:00.999999Z' }
    expect(upTo({}, newest)).toEqual({ toDate: '2027-01-01T00:00:01.000000Z' })
    const earlier = { toDate: '2026-12-31T00:00:00Z' }
    expect(upTo(earlier, newest)).toBe(earlier)
    expect(upTo({ toDate: '2027-02-01T00:00:00Z' }, newest).toDate).toBe('2027-01-01T00:00:01.000000Z')
  })
})

describe('the sentence of a plan', () => {
  it('has the number and the word for it', () => {
    expect(sentenceOf('retry', 1_234, 'letters of “E”')).toBe('Retry 1,234 letters of “E”')
    expect(sentenceOf('discard', 1, 'selected letters')).toBe('Discard 1 selected letter')
  })
})
