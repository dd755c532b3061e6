import { describe, expect, it, vi } from 'vitest'
import { type Alarm, type Clock, type Instant, instant, later } from './clock.ts'
import { BartlebyError } from './errors.ts'
import { TestClock } from './test-clock.ts'

const NOON = instant(1_798_804_800_000_000n)

/** A system clock that stands at noon and rings when told to. */
class StoppedClock implements Clock {
  readonly alarms = new Set<{ deadline: Instant; wake: () => void }>()

  now(): Instant {
    return NOON
  }

  alarm(deadline: Instant, wake: () => void): Alarm {
    const entry = { deadline, wake }
    this.alarms.add(entry)
    return { cancel: () => this.alarms.delete(entry) }
  }

  ringAll(): void {
    for (const { wake } of [...this.alarms]) wake()
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const codeOf = (act: () => void): string => {
  try {
    act()
  } catch (error) {
    if (error instanceof BartlebyError) return error.code
    throw error
  }
  return 'no error'
}

describe('a test clock that is not frozen', () => {
  it('shows and rings the system’s time', () => {
    const system = new StoppedClock()
    const clock = new TestClock(system)
    const wake = vi.fn()
    clock.alarm(later(NOON, 1n), wake)
    expect(clock.now()).toBe(NOON)
    system.ringAll()
    expect(wake).toHaveBeenCalledOnce()
  })

  it('cancels at the system too', () => {
    const system = new StoppedClock()
    new TestClock(system).alarm(NOON, vi.fn()).cancel()
    expect(system.alarms.size).toBe(0)
  })

  it('cannot be advanced', () => {
    expect(codeOf(() => new TestClock(new StoppedClock()).advance(1n))).toBe('clock_not_frozen')
  })
})

describe('a frozen test clock', () => {
  const frozen = (): TestClock => {
    const clock = new TestClock(new StoppedClock())
    clock.freeze(NOON)
    return clock
  }

  it('stands still, also some time before the present', () => {
    const clock = frozen()
    expect(clock.now()).toBe(NOON)
    clock.freeze(later(NOON, -5_000n))
    expect(clock.now()).toBe(NOON - 5_000n)
  })

  it('moves by what it is advanced', () => {
    const clock = frozen()
    clock.advance(1_500n)
    clock.advance(0n)
    expect(clock.now()).toBe(NOON + 1_500n)
  })

  it('cannot be moved backwards by advance', () => {
    const clock = frozen()
    expect(() => clock.advance(-90_000_000n)).toThrow("clock cannot be advanced; '-1m30s' is negative")
    expect(codeOf(() => clock.advance(-1n))).toBe('clock_backwards')
    expect(clock.now()).toBe(NOON)
  })

  it('rings what it passes in the order of deadlines, then of registration', () => {
    const clock = frozen()
    const rung: string[] = []
    for (const [name, us] of [
      ['third', 30n],
      ['first', 10n],
      ['second', 20n],
      ['second again', 20n],
      ['later', 100n],
    ] as const) {
      clock.alarm(later(NOON, us), () => rung.push(name))
    }
    clock.advance(31n)
    expect(rung).toEqual(['first', 'second', 'second again', 'third'])
  })

  it('rings only after a deadline, not at it', () => {
    const clock = frozen()
    const wake = vi.fn()
    clock.alarm(later(NOON, 10n), wake)
    clock.advance(10n)
    expect(wake).not.toHaveBeenCalled()
    clock.advance(1n)
    clock.advance(1n)
    expect(wake).toHaveBeenCalledOnce()
  })

  it('rings what a freeze jumps over, and what was set before the first freeze', () => {
    const system = new StoppedClock()
    const clock = new TestClock(system)
    const early = vi.fn()
    const late = vi.fn()
    clock.alarm(later(NOON, 10n), early)
    clock.alarm(later(NOON, 20n), late)
    clock.freeze(later(NOON, 15n))
    expect(early).toHaveBeenCalledOnce()
    expect(late).not.toHaveBeenCalled()
    expect(system.alarms.size).toBe(0)
    clock.freeze(later(NOON, 21n))
    expect(late).toHaveBeenCalledOnce()
  })

  it('does not ring what is cancelled, even by an alarm that rings in the same move', () => {
    const clock = frozen()
    const wake = vi.fn()
    clock.alarm(later(NOON, 1n), () => second.cancel())
    const second = clock.alarm(later(NOON, 2n), wake)
    clock.advance(10n)
    expect(wake).not.toHaveBeenCalled()
  })

  it('rings an alarm for the past on the next turn, once, unless cancelled', async () => {
    const clock = frozen()
    const wake = vi.fn()
    const cancelled = vi.fn()
    clock.alarm(later(NOON, -1n), wake)
    clock.alarm(later(NOON, -1n), cancelled).cancel()
    expect(wake).not.toHaveBeenCalled()
    await nextTurn()
    clock.advance(1n)
    expect(wake).toHaveBeenCalledOnce()
    expect(cancelled).not.toHaveBeenCalled()
  })

  it('is not caught in a loop by an alarm that sets itself again', async () => {
    const clock = frozen()
    let rung = 0
    let alarm = clock.alarm(later(NOON, 1n), wake)
    function wake(): void {
      rung += 1
      alarm = clock.alarm(later(NOON, 1n), wake)
    }
    clock.advance(10n)
    expect(rung).toBe(1)
    await nextTurn()
    expect(rung).toBe(2)
    alarm.cancel()
  })
})
