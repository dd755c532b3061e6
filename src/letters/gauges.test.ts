import { describe, expect, it } from 'vitest'
import { instant } from '../core/clock.ts'
import type { Account } from './books.ts'
import { gaugesOf } from './gauges.ts'

const account = (number: number, queue: string): Account => ({
  drawer: {
    number,
    source: 'http',
    engine: 'alerts',
    queue,
    signature: { fingerprint: `1-${number}`, errorClass: 'E', title: 't' },
    firstSeenAt: 0n,
  },
  letters: { Pending: 3, Resolved: 2, Expired: 1 },
  captured: 7,
  removed: 1,
  unconfirmed: 1,
  lastSeenAt: instant(0n),
})

describe('gauges of letters', () => {
  it('add up all signatures of a queue', () => {
    const [gauge, ...others] = gaugesOf([account(1, 'q'), account(2, 'q')])
    expect(others).toEqual([])
    expect(gauge).toEqual({
      source: 'http',
      engine: 'alerts',
      queue: 'q',
      letters: { Pending: 6, Resolved: 4, Expired: 2 },
      captured: 14,
      removed: 2,
      unconfirmed: 2,
    })
  })

  it('name the first thousand queues, whichever come later, and put the others together', () => {
    const accounts = Array.from({ length: 1_010 }, (_, i) => account(i, `queue-${i}`))
    const few = gaugesOf(accounts.slice(0, 900))
    const many = gaugesOf([...accounts].reverse())
    expect(many.slice(0, 900)).toEqual(few)
    expect(many).toHaveLength(1_001)
    expect(many.at(-1)).toMatchObject({ engine: 'alerts', queue: '~others', captured: 70 })
  })
})
