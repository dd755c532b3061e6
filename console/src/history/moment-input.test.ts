import { describe, expect, it } from 'vitest'
import { inputOf, instantOf } from './moment-input.ts'

describe('a moment in a field', () => {
  it('is written and read in UTC', () => {
    expect(inputOf('2027-01-15T08:00:01.500000Z', 'utc')).toBe('2027-01-15T08:00:01')
    expect(instantOf('2027-01-15T08:00:01', 'utc')).toBe('2027-01-15T08:00:01.000Z')
    expect(instantOf('2027-01-15T08:00', 'utc')).toBe('2027-01-15T08:00:00.000Z')
  })

  it('is the same moment in local time', () => {
    const moment = '2027-07-15T23:30:00.000Z'
    expect(instantOf(inputOf(moment, 'local'), 'local')).toBe(moment)
  })

  it('is nothing while there is none', () => {
    expect([inputOf(undefined, 'utc'), inputOf('yesterday', 'local')]).toEqual(['', ''])
    expect([instantOf('', 'utc'), instantOf('', 'local')]).toEqual([null, null])
  })
})
