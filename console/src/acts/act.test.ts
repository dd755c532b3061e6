import { describe, expect, it } from 'vitest'
import { filterFor, isPossible } from './act.ts'

describe('an act on the letters of a filter', () => {
  it('is possible where these may have the status that it needs', () => {
    expect(isPossible('retry', { engine: 'hmac' })).toBe(true)
    expect(isPossible('move', { status: 'Pending' })).toBe(true)
    expect(isPossible('restore', { status: 'Expired' })).toBe(true)
    expect(isPossible('retry', { status: 'Resolved' })).toBe(false)
    expect(isPossible('restore', { status: 'Pending' })).toBe(false)
  })

  it('is possible with an outcome only on what was resolved', () => {
    expect(isPossible('restore', { outcome: 'unconfirmed' })).toBe(true)
    expect(isPossible('discard', { outcome: 'unconfirmed' })).toBe(false)
    expect(isPossible('restore', { status: 'Expired', outcome: 'confirmed' })).toBe(false)
  })

  it('names the status, where it is one', () => {
    expect(filterFor('retry', { engine: 'hmac' })).toEqual({ engine: 'hmac', status: 'Pending' })
    expect(filterFor('restore', { engine: 'hmac' })).toEqual({ engine: 'hmac' })
    expect(filterFor('restore', { status: 'Expired' })).toEqual({ status: 'Expired' })
  })
})
