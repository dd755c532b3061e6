import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import { gaugesOf } from './gauges.ts'
import type { PlaceCounts } from './summary.ts'

const account = (number: number, queue: string): PlaceCounts => ({
  place: { number, source: 'http', engine: 'alerts', queue },
  letters: { Pending: 3, Resolved: 2, Expired: 1 },
  removed: 1,
  unconfirmed: 1,
  ever: { arrived: 7, retried: 0, confirmed: 0, returned: 0, discarded: 0, expired: 0 },
  lastSeenAt: instant(0n),
})

describe('gauges of letters', () => {
  it('tell what a place holds', () => {
    const [gauge] = gaugesOf([account(1, 'q')])
    expect(gauge).toEqual({
      source: 'http',
      engine: 'alerts',
      queue: 'q',
      letters: { Pending: 3, Resolved: 2, Expired: 1 },
      captured: 7,
      removed: 1,
      unconfirmed: 1,
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
