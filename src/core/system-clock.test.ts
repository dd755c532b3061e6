import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { later } from './clock.ts'
import { SystemClock } from './system-clock.ts'

const EPOCH_MS = 1_798_761_600_000

/** A computer whose time passes only by being read or moved, and whose wall clock can be set. */
class FakeComputer {
  // Both are small numbers: at the size of the present, doubles would lose the 50 ns.
  #steadyUs = 5_000_321.5
  #steppedUs = 0
  readonly #readUs: number

  constructor(readUs = 0.05) {
    this.#readUs = readUs
  }

  get trueUs(): number {
    return EPOCH_MS * 1_000 + this.#steadyUs + this.#steppedUs
  }

  readonly wallMs = (): number => {
    this.pass(this.#readUs)
    return EPOCH_MS + Math.floor((this.#steadyUs + this.#steppedUs) / 1_000)
  }

  readonly steadyMs = (): number => {
    this.pass(this.#readUs)
    return this.#steadyUs / 1_000
  }

  /** Time passes on both clocks. */
  pass(us: number): void {
    this.#steadyUs += us
  }

  /** Only the wall clock moves: an operator, NTP or a sleeping laptop. */
  step(us: number): void {
    this.#steppedUs += us
  }
}

function behindUs(clock: SystemClock, computer: FakeComputer): number {
  const nowUs = Number(clock.now())
  return Math.floor(computer.trueUs) - nowUs
}

describe('the system clock', () => {
  it('is never ahead and at most some microseconds behind', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    for (let i = 0; i < 5_000; i++) {
      computer.pass((i * 7919) % 2_003)
      const now = Number(clock.now())
      expect(now).toBeLessThanOrEqual(computer.trueUs)
      expect(now).toBeGreaterThan(computer.trueUs - 5)
    }
  })

  it('never goes backwards', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    let last = clock.now()
    for (let i = 0; i < 5_000; i++) {
      if (i % 100 === 0) computer.step(i === 2_500 ? -900_000 : i % 200 === 0 ? -700 : 700)
      computer.pass(i % 1_500)
      const now = clock.now()
      expect(now >= last).toBe(true)
      last = now
    }
  })

  it('follows a step forward at once', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    computer.step(3_600_000_000)
    expect(behindUs(clock, computer)).toBeLessThan(5)
  })

  it('stands still through a small step back and goes on from there', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    const before = clock.now()
    computer.step(-500_000)
    expect(clock.now()).toBe(before)
    computer.pass(400_000)
    expect(clock.now()).toBe(before)
    computer.pass(200_000)
    expect(Math.abs(behindUs(clock, computer))).toBeLessThan(5)
  })

  it('follows a large step back', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    computer.step(-3_600_000_000)
    expect(Math.abs(behindUs(clock, computer))).toBeLessThan(5)
  })

  it('follows a wall clock that runs faster or slower than the steady one', () => {
    for (const driftPpm of [50, -50]) {
      const computer = new FakeComputer()
      const clock = new SystemClock(computer)
      for (let second = 0; second < 120; second++) {
        for (let i = 0; i < 100; i++) {
          computer.pass(10_007)
          computer.step((10_007 * driftPpm) / 1e6)
          clock.now()
        }
        expect(Math.abs(behindUs(clock, computer))).toBeLessThan(1_000)
      }
      computer.pass(31_000_000)
      expect(Math.abs(behindUs(clock, computer))).toBeLessThan(5)
    }
  })

  it('does not wait for ever on a wall clock that stands still', () => {
    const clock = new SystemClock({ wallMs: () => EPOCH_MS, steadyMs: () => 1 })
    expect(clock.now()).toBe(BigInt(EPOCH_MS) * 1_000n)
  })

  it('agrees with the computer it runs on', () => {
    const clock = new SystemClock()
    const beforeMs = Date.now()
    const nowUs = Number(clock.now())
    expect(nowUs).toBeGreaterThanOrEqual(beforeMs * 1_000)
    expect(nowUs).toBeLessThan((Date.now() + 1) * 1_000)
  })
})

describe('an alarm of the system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** Lets timers and computer move together, a little at a time. */
  function elapse(computer: FakeComputer, ms: number, stepMs = 1): void {
    for (let passed = 0; passed < ms; passed += stepMs) {
      computer.pass(stepMs * 1_000)
      vi.advanceTimersByTime(stepMs)
    }
  }

  it('rings once, after its deadline and soon', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    const deadline = later(clock.now(), 20_000n)
    const rung: bigint[] = []
    clock.alarm(deadline, () => rung.push(clock.now()))
    elapse(computer, 100)
    expect(rung).toHaveLength(1)
    expect(rung.every((at) => at > deadline && at < deadline + 5_000n)).toBe(true)
  })

  it('rings soon, but not within the call, when its deadline is past', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    const wake = vi.fn()
    clock.alarm(later(clock.now(), -1n), wake)
    expect(wake).not.toHaveBeenCalled()
    elapse(computer, 2)
    expect(wake).toHaveBeenCalledOnce()
  })

  it('does not ring early when its timer does', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    const wake = vi.fn()
    clock.alarm(later(clock.now(), 20_000n), wake)
    vi.advanceTimersByTime(30)
    expect(wake).not.toHaveBeenCalled()
    computer.pass(20_001)
    vi.advanceTimersByTime(30)
    expect(wake).toHaveBeenCalledOnce()
  })

  it('waits for a deadline further away than timers reach', () => {
    const computer = new FakeComputer(10)
    const clock = new SystemClock(computer)
    const wake = vi.fn()
    const day = 86_400_000
    clock.alarm(later(clock.now(), 40n * 86_400_000_000n), wake)
    elapse(computer, 39 * day, 60_000)
    expect(wake).not.toHaveBeenCalled()
    elapse(computer, day + 60_000, 60_000)
    expect(wake).toHaveBeenCalledOnce()
  })

  it('rings within a minute when the wall clock is set past it', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    const wake = vi.fn()
    clock.alarm(later(clock.now(), 3_600_000_000n), wake)
    computer.step(3_600_000_000)
    elapse(computer, 61_000, 1_000)
    expect(wake).toHaveBeenCalledOnce()
  })

  it('rings after a time whatever the wall clock is set to meanwhile', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    const wake = vi.fn()
    clock.after(5_000_000n, wake)
    computer.step(-3_600_000_000)
    elapse(computer, 4_990, 10)
    expect(wake).not.toHaveBeenCalled()
    elapse(computer, 20, 10)
    expect(wake).toHaveBeenCalledOnce()
  })

  it('is silent once cancelled, also after it was re-armed', () => {
    const computer = new FakeComputer()
    const clock = new SystemClock(computer)
    const wake = vi.fn()
    const alarm = clock.alarm(later(clock.now(), 120_000_000n), wake)
    elapse(computer, 100_000, 1_000)
    alarm.cancel()
    elapse(computer, 100_000, 1_000)
    expect(wake).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })
})
