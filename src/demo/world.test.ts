import { describe, expect, it } from 'vitest'
import { type Alarm, type Clock, type Instant, instant, later } from '../core/clock.ts'
import { CatchUpClock } from './world.ts'

const NOON = instant(1_798_804_800_000_000n)
const HOUR_US = 3_600_000_000n

/** A system clock that stands at noon. */
class StoppedClock implements Clock {
  readonly alarms = new Set<{ readonly deadline: Instant; readonly wake: () => void }>()

  now(): Instant {
    return NOON
  }

  alarm(deadline: Instant, wake: () => void): Alarm {
    const entry = { deadline, wake }
    this.alarms.add(entry)
    return { cancel: () => this.alarms.delete(entry) }
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a clock that catches up', () => {
  it('stands in the past until it is moved, and never passes the present', () => {
    const clock = new CatchUpClock(HOUR_US, new StoppedClock())
    expect(clock.now()).toBe(NOON - HOUR_US)
    clock.moveTo(later(NOON, -60n))
    expect(clock.now()).toBe(NOON - 60n)
    clock.moveTo(later(NOON, -HOUR_US))
    expect(clock.now()).toBe(NOON - 60n)
    clock.moveTo(later(NOON, 60n))
    expect(clock.now()).toBe(NOON)
  })

  it('rings what it passed, in the order of deadlines, and not what was cancelled', () => {
    const clock = new CatchUpClock(HOUR_US, new StoppedClock())
    const rung: string[] = []
    const at = (seconds: bigint): Instant => later(clock.now(), seconds * 1_000_000n)
    clock.alarm(at(20n), () => rung.push('second'))
    clock.alarm(at(10n), () => rung.push('first'))
    clock.alarm(at(15n), () => rung.push('cancelled')).cancel()
    clock.alarm(at(40n), () => rung.push('later'))
    clock.moveTo(at(30n))
    expect(rung).toEqual(['first', 'second'])
  })

  it('rings a deadline that is past already, but not at once', async () => {
    const clock = new CatchUpClock(HOUR_US, new StoppedClock())
    let rings = 0
    clock.alarm(later(clock.now(), -1n), () => rings++)
    expect(rings).toBe(0)
    await nextTurn()
    expect(rings).toBe(1)
  })

  it('runs with the system once released, with the alarms that still wait', () => {
    const system = new StoppedClock()
    const clock = new CatchUpClock(HOUR_US, system)
    const rung: string[] = []
    clock.alarm(later(NOON, -1n), () => rung.push('past'))
    clock.alarm(later(NOON, 5n), () => rung.push('coming'))
    clock.release()
    expect(clock.now()).toBe(NOON)
    expect(rung).toEqual(['past'])
    for (const { wake } of system.alarms) wake()
    expect(rung).toEqual(['past', 'coming'])
    clock.alarm(later(NOON, 9n), () => {})
    expect([...system.alarms].map(({ deadline }) => deadline - NOON)).toContain(9n)
  })
})
