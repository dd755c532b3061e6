import { describe, expect, it } from 'vitest'
import { assign } from './reader-group.ts'

const shares = (members: Record<string, readonly string[]>, counts: Record<string, number>) => {
  const memberships = Object.entries(members).map(([memberId, topics]) => ({ memberId, topics }))
  const assigned = assign(memberships, new Map(Object.entries(counts)))
  return Object.fromEntries(
    [...assigned].map(([memberId, share]) => [
      memberId,
      share.flatMap(({ topic, partitions }) => partitions.map((partition) => `${topic}${partition}`)),
    ]),
  )
}

describe('the partitions of a group', () => {
  it('are dealt out in turn, each to one member', () => {
    expect(shares({ m1: ['a', 'b'], m2: ['b', 'a'] }, { a: 3, b: 2 })).toEqual({
      m1: ['a0', 'a2', 'b1'],
      m2: ['a1', 'b0'],
    })
  })

  it('of many topics do not all go to the first', () => {
    expect(shares({ m1: ['a', 'b'], m2: ['a', 'b'] }, { a: 1, b: 1 })).toEqual({ m1: ['a0'], m2: ['b0'] })
  })

  it('go to those who want the topic', () => {
    expect(shares({ m1: ['a'], m2: ['a', 'new'] }, { a: 2, new: 2 })).toEqual({
      m1: ['a0'],
      m2: ['a1', 'new0', 'new1'],
    })
  })

  it('of a topic that is not there are none', () => {
    expect(shares({ m1: ['gone'] }, {})).toEqual({ m1: [] })
  })
})
