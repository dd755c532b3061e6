import { describe, expect, it } from 'vitest'
import { instant, later } from './clock.ts'
import type { Log } from './log.ts'
import { silentLog } from './log.ts'
import { Rounds, type RoundsOptions } from './rounds.ts'
import { TestClock } from './test-clock.ts'

const NOON = instant(1_700_000_000_000_000n)
const SECOND_US = 1_000_000n
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

function roundsOf(act: RoundsOptions['act'], options: Partial<RoundsOptions> = {}) {
  const clock = new TestClock()
  clock.freeze(NOON)
  const logged: string[] = []
  const log: Log = { ...silentLog, warn: (_details, message) => void logged.push(message) }
  const common = { name: 'watering', clock, log, everyUs: SECOND_US, trouble: 'the plants are dry' }
  const rounds = new Rounds({ ...common, act, ...options })
  const pass = async (us = SECOND_US) => {
    clock.advance(us + 1n)
    await turn()
  }
  return { rounds, clock, logged, pass }
}

/** An act that ends when it is told to. */
function slowAct() {
  const ends: (() => void)[] = []
  return { ends, act: () => new Promise<void>((resolve) => void ends.push(resolve)) }
}

describe('rounds', () => {
  it('come at the start, and one interval after the end of each', async () => {
    let count = 0
    const { rounds, pass } = roundsOf(async () => count++)
    await pass()
    expect(count).toBe(0)
    rounds.start()
    await turn()
    expect(count).toBe(1)
    await pass(SECOND_US / 2n)
    expect(count).toBe(1)
    await pass(SECOND_US / 2n)
    expect(count).toBe(2)
    await rounds.stop()
    await pass()
    expect(count).toBe(2)
  })

  it('come at once when the clock was moved past the next while one was under way', async () => {
    const { act, ends } = slowAct()
    const { rounds, clock } = roundsOf(act)
    rounds.start()
    clock.advance(60n * SECOND_US)
    ends[0]?.()
    await expect.poll(() => ends.length).toBe(2)
  })

  it('may leave the first interval alone', async () => {
    let count = 0
    const { rounds, pass } = roundsOf(async () => count++, { isFirstLater: true })
    rounds.start()
    await turn()
    expect(count).toBe(0)
    await pass()
    expect(count).toBe(1)
  })

  it('are done once at a time, and once more when they were asked for meanwhile, however often', async () => {
    const { act, ends } = slowAct()
    const { rounds, pass } = roundsOf(act)
    rounds.start()
    const asked = [rounds.now(), rounds.now()]
    await pass()
    expect(ends).toHaveLength(1)
    ends[0]?.()
    await turn()
    expect(ends).toHaveLength(2)
    ends[1]?.()
    await Promise.all(asked)
    await turn()
    expect(ends).toHaveLength(2)
  })

  it('begin again at once when a round asks for it', async () => {
    let left = 3
    const { rounds } = roundsOf(async () => {
      left--
      if (left > 0) void rounds.now()
    })
    rounds.start()
    await turn()
    expect(left).toBe(0)
  })

  it('are done when asked for without having been started, and then go on no further', async () => {
    let count = 0
    const { rounds, pass } = roundsOf(async () => count++)
    await rounds.now()
    await pass()
    expect(count).toBe(1)
  })

  it('end with the one under way, which is told', async () => {
    const { ends, act } = slowAct()
    let told: AbortSignal | undefined
    const { rounds } = roundsOf((signal) => {
      told = signal
      return act()
    })
    rounds.start()
    const asked = rounds.now()
    let isStopped = false
    const stopped = rounds.stop().then(() => {
      isStopped = true
    })
    await turn()
    expect(isStopped).toBe(false)
    expect(told?.aborted).toBe(true)
    ends[0]?.()
    await Promise.all([stopped, asked])
    expect(ends).toHaveLength(1)
  })

  it('come as soon as an expected moment is over, the first of several', async () => {
    let count = 0
    const { rounds, pass } = roundsOf(async () => count++, { everyUs: 60n * SECOND_US, isFirstLater: true })
    rounds.start()
    rounds.expect(later(NOON, 5n * SECOND_US))
    rounds.expect(later(NOON, SECOND_US))
    rounds.expect(later(NOON, 3n * SECOND_US))
    await pass()
    expect(count).toBe(1)
    await pass(5n * SECOND_US)
    expect(count).toBe(1)
  })

  it('pause as long as the outcome asks for, and not at all before somebody does', async () => {
    let count = 0
    const everyUs = (failures: number) => (failures > 0 ? BigInt(failures) * SECOND_US : null)
    const { rounds, pass } = roundsOf(
      async () => {
        count++
        if (count < 3) throw new Error('not yet')
      },
      { everyUs },
    )
    rounds.start()
    await turn()
    await pass()
    expect(count).toBe(2)
    await pass()
    expect(count).toBe(2)
    await pass()
    expect(count).toBe(3)
    await pass(1_000n * SECOND_US)
    expect(count).toBe(3)
  })
})

describe('a round that fails', () => {
  it('is told once per outage, counted and remembered', async () => {
    let reason: string | null = 'no water'
    const { rounds, logged, pass } = roundsOf(async () => {
      if (reason !== null) throw new RangeError(reason)
    })
    expect(rounds.state()).toMatchObject({ name: 'watering', lastRunAt: null, failures: 0, lastError: null })
    rounds.start()
    await turn()
    await pass()
    expect(logged).toEqual(['the plants are dry'])
    expect(rounds.state()).toMatchObject({
      lastRunAt: later(NOON, SECOND_US + 1n),
      failures: 2,
      isFailing: true,
      lastError: { errorClass: 'RangeError', errorMessage: 'no water' },
    })
    reason = 'no can'
    await pass()
    expect(logged).toHaveLength(2)
    reason = null
    await pass()
    expect(rounds.state()).toMatchObject({
      failures: 3,
      isFailing: false,
      lastError: { errorMessage: 'no can' },
    })
    reason = 'no can'
    await pass()
    expect(logged).toHaveLength(3)
  })

  it('is one that throws before it has begun, too', async () => {
    const { rounds } = roundsOf(() => {
      throw new Error('at once')
    })
    await rounds.now()
    expect(rounds.state()).toMatchObject({ isFailing: true, failures: 1 })
  })
})
