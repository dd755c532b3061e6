import { describe, expect, it } from 'vitest'
import { instant } from '../../../core/clock.ts'
import { TestClock } from '../../../core/test-clock.ts'
import { DURATION_BOUNDS, OutboxMeter } from './meter.ts'

const SECOND = 1_000_000n
/** In the middle of a second. */
const START = instant(1_800_000_000_500_000n)

function metered(windowSeconds?: number) {
  const clock = new TestClock()
  clock.freeze(START)
  const meter = new OutboxMeter(clock, windowSeconds === undefined ? {} : { windowSeconds })
  const times = (count: number, act: () => void) => {
    for (let n = 0; n < count; n++) act()
  }
  return {
    clock,
    meter,
    dispatch: (count: number, seconds = 0.01) => times(count, () => meter.dispatched(seconds)),
    fail: (count: number, seconds = 0.01) => times(count, () => meter.failed(seconds)),
  }
}

describe('the meter of an outbox', () => {
  it('has nothing to tell at first', () => {
    expect(metered().meter.snapshot()).toMatchObject({
      dispatched: 0,
      failures: 0,
      duplicates: 0,
      conflicts: 0,
      windowSeconds: 60,
      throughputPerSecond: 0,
      failureRatio: 0,
      attempts: 0,
      durations: { sum: 0, counts: [...DURATION_BOUNDS, 0].map(() => 0) },
    })
  })

  it('counts everything since it was made', () => {
    const { meter, clock, dispatch, fail } = metered()
    dispatch(3)
    fail(2)
    meter.duplicate()
    meter.duplicate()
    meter.conflict()
    clock.advance(86_400n * SECOND)
    dispatch(1)
    expect(meter.snapshot()).toMatchObject({ dispatched: 4, failures: 2, duplicates: 2, conflicts: 1 })
  })

  it('tells the throughput of the time that it has watched, and of a whole window later', () => {
    const { meter, clock, dispatch } = metered()
    dispatch(30)
    expect(meter.snapshot().throughputPerSecond).toBe(30)
    clock.advance(10n * SECOND)
    dispatch(30)
    expect(meter.snapshot().throughputPerSecond).toBe(6)
    clock.advance(49n * SECOND)
    // The first second stands in the window to its end.
    expect(meter.snapshot().throughputPerSecond).toBeCloseTo(60 / 59, 5)
    clock.advance(SECOND)
    expect(meter.snapshot().throughputPerSecond).toBeCloseTo(30 / 59.5, 5)
  })

  it('forgets seconds that have left the window, one by one', () => {
    const { meter, clock, dispatch, fail } = metered(3)
    for (let second = 0; second < 10; second++) {
      dispatch(second)
      fail(1)
      clock.advance(SECOND)
    }
    // Seconds 8 and 9, and the one that has begun.
    expect(meter.snapshot()).toMatchObject({ attempts: 19, failureRatio: 2 / 19, windowSeconds: 3 })
    clock.advance(SECOND)
    expect(meter.snapshot()).toMatchObject({ attempts: 10, failureRatio: 0.1 })
    clock.advance(SECOND)
    expect(meter.snapshot()).toMatchObject({ attempts: 0, failureRatio: 0, throughputPerSecond: 0 })
  })

  it('does not take the events of a long past second for those of the present one in its place', () => {
    const { meter, clock, dispatch, fail } = metered(5)
    fail(7)
    clock.advance(5n * SECOND)
    dispatch(1)
    expect(meter.snapshot()).toMatchObject({ attempts: 1, failureRatio: 0 })
  })

  it('says the same however often it is asked', () => {
    const { meter, clock, dispatch, fail } = metered()
    dispatch(5)
    fail(5)
    clock.advance(30n * SECOND)
    const first = meter.snapshot()
    expect(first.failureRatio).toBe(0.5)
    expect(meter.snapshot()).toEqual(first)
  })

  it('sorts deliveries by how long they took, with the bound itself below it', () => {
    const { meter, dispatch, fail } = metered()
    dispatch(1, 0)
    dispatch(1, 0.001)
    fail(1, 0.3)
    fail(1, 3_600)
    const { bounds, counts, sum } = meter.snapshot().durations
    const upTo = (bound: number) => counts[bounds.indexOf(bound)]
    expect([upTo(0.001), upTo(0.25), upTo(0.5), upTo(60), counts.at(-1)]).toEqual([2, 2, 3, 3, 4])
    expect(sum).toBeCloseTo(3_600.301, 6)
  })

  it('reads the clock once in a second, however much happens in it', () => {
    const clock = new TestClock()
    clock.freeze(START)
    let reads = 0
    const meter = new OutboxMeter({
      now: () => {
        reads += 1
        return clock.now()
      },
      alarm: (deadline, wake) => clock.alarm(deadline, wake),
    })
    reads = 0
    for (let n = 0; n < 1_000; n++) meter.dispatched(0.001)
    expect(reads).toBe(1)
    clock.advance(SECOND / 2n)
    for (let n = 0; n < 1_000; n++) meter.failed(0.001)
    expect(reads).toBe(2)
    expect(meter.snapshot().attempts).toBe(2_000)
  })

  it.each([0, 1.5, -1, 3_601, Number.NaN])('refuses a window of %s seconds', (windowSeconds) => {
    expect(() => metered(windowSeconds)).toThrow(/windowSeconds is invalid; .* from 1 to 3600/)
  })
})
