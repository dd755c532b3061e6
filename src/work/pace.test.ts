import { describe, expect, it } from 'vitest'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { Pace } from './pace.ts'

const START = instant(1_800_000_000_000_000n)

function paced(rate: number | null) {
  const clock = new TestClock()
  clock.freeze(START)
  const pace = new Pace(clock, rate)
  /** Sends all that may be sent, every `stepUs`; gives how many that were. */
  const sendFor = (us: bigint, stepUs: bigint): number => {
    let sent = 0
    const end = clock.now() + us
    while (clock.now() < end) {
      const leftUs = end - clock.now()
      clock.advance(stepUs < leftUs ? stepUs : leftUs)
      const allowed = pace.allowed('orders')
      pace.sent('orders', allowed)
      sent += allowed
    }
    return sent
  }
  return { clock, pace, sendFor }
}

describe('the pace of a redrive', () => {
  it.each([1, 3, 0.5, 7.3, 400, 33_333])(
    'keeps %f letters a second, however uneven its turns are',
    (rate) => {
      const { pace, sendFor } = paced(rate)
      expect(pace.allowed('orders')).toBe(0)
      for (const stepUs of [50_000n, 70_001n, 333_333n])
        expect(Math.abs(sendFor(10_000_000n, stepUs) - rate * 10)).toBeLessThan(Math.max(1.01, rate * 0.02))
    },
  )

  it('does not drift over days', () => {
    const { sendFor } = paced(0.7)
    expect(sendFor(3n * 86_400_000_000n, 500_000n)).toBe(Math.floor(0.7 * 3 * 86_400))
  })

  it('makes up for a second at most', () => {
    const { clock, pace } = paced(10)
    pace.allowed('orders')
    clock.advance(60_000_000n)
    expect(pace.allowed('orders')).toBeLessThanOrEqual(11)
  })

  it('is another for each place, and none where there is no rate', () => {
    const { clock, pace } = paced(10)
    pace.allowed('orders')
    pace.allowed('mails')
    clock.advance(500_000n)
    pace.sent('orders', pace.allowed('orders'))
    expect([pace.allowed('orders'), pace.allowed('mails')]).toEqual([0, 5])
    pace.change(null)
    expect(pace.allowed('orders')).toBe(Number.POSITIVE_INFINITY)
    expect(pace.nextAt('orders')).toBe(clock.now())
  })

  it('begins anew with another rate', () => {
    const { clock, pace } = paced(1)
    pace.allowed('orders')
    clock.advance(900_000n)
    pace.change(1_000)
    expect(pace.allowed('orders')).toBe(0)
    clock.advance(10_000n)
    expect(pace.allowed('orders')).toBe(10)
  })

  it('says when the next letter is due', () => {
    const { clock, pace } = paced(4)
    expect(pace.nextAt('orders')).toBe(START + 250_000n)
    clock.advance(250_000n)
    pace.sent('orders', 1)
    expect(pace.nextAt('orders')).toBe(START + 500_000n)
  })
})
