import { describe, expect, it } from 'vitest'
import { masksIn, nameOf, trendWords } from './group.ts'

describe('a group of letters', () => {
  it('is called by class and message', () => {
    expect(nameOf({ errorClass: 'TypeError', title: 'x is # at f (a.ts)' })).toBe(
      'TypeError: x is # at f (a.ts)',
    )
  })

  it('does not say its class twice, or none', () => {
    expect(nameOf({ errorClass: 'TypeError', title: 'TypeError' })).toBe('TypeError')
    expect(nameOf({ errorClass: 'TypeError', title: 'TypeError: x' })).toBe('TypeError: x')
    expect(nameOf({ errorClass: '', title: 'no error message' })).toBe('no error message')
  })

  it('explains only the masks that its title has', () => {
    expect(masksIn('connect <ip> after # ms').map(({ mask }) => mask)).toEqual(['#', '<ip>'])
    expect(masksIn('out of memory')).toEqual([])
  })

  it('tells its trend', () => {
    expect(trendWords([0, 2, 5])).toBe('7 arrived in the last 24 hours, at most 5 in one hour')
    expect(trendWords([0, 0])).toBe('None arrived in the last 24 hours')
  })
})
