import { describe, expect, it } from 'vitest'
import { instant } from '../../../core/clock.ts'
import { TestClock } from '../../../core/test-clock.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from '../settings.ts'
import { Allowances } from './allowances.ts'
import type { Receiver } from './claim.ts'

const receiver = (number: number, limits: Partial<Receiver> = {}): Receiver => ({
  number,
  channelId: 'orders',
  consumerId: `k${number}`,
  token: '',
  callbackUrl: '',
  secrets: [],
  mostAtOnce: null,
  mostPerSecond: null,
  pausedUntil: null,
  ...limits,
})

function allowing(workers: number, consumerWorkers = 50) {
  const clock = new TestClock()
  clock.freeze(instant(0n))
  const allowances = new Allowances(clock, { ...DEFAULT_WEBHOOK_SETTINGS.delivery, workers, consumerWorkers })
  const begin = (each: Receiver, times = 1): void => {
    for (let i = 0; i < times; i++) allowances.began(each)
  }
  return { clock, allowances, begin }
}

describe('the room of a consumer', () => {
  it('is a quarter of the free workers while others wait, and at least one', () => {
    const { allowances, begin } = allowing(20)
    expect(allowances.roomOf(receiver(1), true)).toBe(5)
    begin(receiver(1), 5)
    expect(allowances.roomOf(receiver(2), true)).toBe(4)
    begin(receiver(2), 15)
    expect(allowances.roomOf(receiver(3), true)).toBe(1)
    expect(allowances.roomOf(receiver(1), true)).toBe(0)
  })

  it('leaves a quarter of the workers to whoever comes next when nobody waits', () => {
    const { allowances, begin } = allowing(8)
    begin(receiver(1), 2)
    expect(allowances.roomOf(receiver(1), false)).toBe(4)
    expect(allowing(1).allowances.roomOf(receiver(1), false)).toBe(1)
  })

  it('is its own limit, or that of all consumers', () => {
    const { allowances } = allowing(200, 7)
    expect(allowances.roomOf(receiver(1), false)).toBe(7)
    expect(allowances.roomOf(receiver(1, { mostAtOnce: 3 }), false)).toBe(3)
  })

  it('is small at first and grows with every success', () => {
    const { allowances, begin } = allowing(200)
    const one = receiver(1, { mostAtOnce: 10 })
    for (const room of [8, 9, 10, 10]) {
      expect(allowances.roomOf(one, false)).toBe(room)
      begin(one)
      allowances.ended(1, 'success')
    }
  })

  it('is half of the free workers for one that has all trust', () => {
    const { allowances, begin } = allowing(40, 9)
    begin(receiver(1))
    allowances.ended(1, 'success')
    begin(receiver(2), 30)
    expect(allowances.roomOf(receiver(1), true)).toBe(5)
    expect(allowances.roomOf(receiver(3), true)).toBe(3)
  })

  it('is halved by each time-out in a row and grows back one by one', () => {
    const { allowances, begin } = allowing(200)
    const one = receiver(1, { mostAtOnce: 8 })
    begin(one, 8)
    for (let i = 0; i < 8; i++) allowances.ended(1, 'timeout')
    allowances.sweep()
    for (const room of [1, 2, 3]) {
      expect(allowances.roomOf(one, false)).toBe(room)
      begin(one)
      allowances.ended(1, 'success')
    }
  })

  it('is what its rate allows, and grows evenly', () => {
    const { clock, allowances, begin } = allowing(200)
    const one = receiver(1, { mostPerSecond: 40 })
    expect(allowances.roomOf(one, false)).toBe(4)
    begin(one, 4)
    expect(allowances.mayHaveRoom(1, false)).toBe(false)
    expect(allowances.nextAt(1, false)).toBe(25_000n)
    clock.advance(25_000n)
    expect(allowances.roomOf(one, false)).toBe(1)
    clock.advance(10_000_000n)
    expect(allowances.roomOf(one, false)).toBe(4)
    expect(allowances.roomOf(receiver(1), false)).toBe(4)
  })

  it('is not waited for by its rate while it is an attempt that has to end', () => {
    const { allowances, begin } = allowing(200)
    const one = receiver(1, { mostAtOnce: 1, mostPerSecond: 40 })
    begin(one)
    // A moment that is there already would be waited for again and again.
    expect(allowances.nextAt(1, false)).toBeNull()
    allowances.ended(1, 'success')
    expect(allowances.nextAt(1, false)).toBe(0n)
  })
})
