import { describe, expect, it } from 'vitest'
import { CallFailure } from '../api/call.ts'
import type { LetterItem, LetterKey } from '../api/types.ts'
import { afterReload, newRun, paceOf, type Run, type RunPlan, remainingOf, unconfirmedOf } from './run.ts'
import { Runner, type RunWorld } from './runner.ts'

const PLAN: RunPlan = {
  act: 'retry',
  sentence: 'Retry letters',
  what: 'letters',
  filter: {},
  walks: [{ status: 'Pending' }],
  keys: null,
  planned: 10,
  reason: '',
  perSecond: null,
}
const START = '2027-01-01T00:00:00.000Z'

const key = (rowKey: string): LetterKey => ({ engine: 'hmac', rowKey })
const refusal = (code: string, status: number) => new CallFailure(code, status, `refused: ${code}`)

/** An office whose list has pages of three, and in which each letter fares as told. */
function officeWith(names: readonly string[], fate: (name: string, tries: number) => void = () => {}) {
  const tries = new Map<string, number>()
  const order: string[] = []
  const waits: number[] = []
  let nowMs = Date.parse(START)
  const world: RunWorld = {
    page: async (_, token) => {
      const start = Number(token ?? 0)
      const items = names.slice(start, start + 3).map((name) => key(name) as LetterItem)
      return { items, continuationToken: start + 3 < names.length ? String(start + 3) : null }
    },
    perform: async (_, { rowKey }) => {
      const count = (tries.get(rowKey) ?? 0) + 1
      tries.set(rowKey, count)
      fate(rowKey, count)
      order.push(rowKey)
    },
    sleep: async (ms) => {
      waits.push(ms)
      nowMs += ms
    },
    nowMs: () => nowMs,
  }
  return { world, order, waits, tries }
}

const named = (count: number) => Array.from({ length: count }, (_, n) => `l${n}`)

function runnerOf(
  world: RunWorld,
  plan: Partial<RunPlan>,
  onChange: (run: Run, runner: Runner) => void = () => {},
) {
  const runner: Runner = new Runner(newRun({ ...PLAN, ...plan }, 'run', 'ada', START), world, (run) =>
    onChange(run, runner),
  )
  return runner
}

const numbers = ({ planned, done, skipped, failed }: Run) => ({ planned, done, skipped, failed })

describe('a run', () => {
  it('acts once on every letter, and its numbers add up at every moment', async () => {
    const { world, order } = officeWith(named(10))
    const left: number[] = []
    const runner = runnerOf(world, {}, (run) => left.push(remainingOf(run)))
    await runner.start()
    expect(order.sort()).toEqual(named(10).sort())
    expect(runner.run).toMatchObject({ state: 'done', done: 10, skipped: 0, failed: 0 })
    expect(left).toEqual([...left].sort((a, b) => b - a))
    expect(left.at(-1)).toBe(0)
  })

  it('touches no more letters than were planned', async () => {
    const { world, order } = officeWith(named(10))
    await runnerOf(world, { planned: 4 }).start()
    expect(order).toHaveLength(4)
  })

  it('counts letters that moved on as skipped, also those that it does not meet any more', async () => {
    const { world } = officeWith(named(8), (name) => {
      if (name === 'l2') throw refusal('letter_status_wrong', 409)
      if (name === 'l3') throw refusal('letter_unknown', 404)
    })
    const runner = runnerOf(world, {})
    await runner.start()
    expect(numbers(runner.run)).toEqual({ planned: 10, done: 6, skipped: 4, failed: 0 })
  })

  it('says why letters failed', async () => {
    const { world } = officeWith(named(3), (name) => {
      if (name === 'l1') throw refusal('letter_queue_gone', 409)
    })
    const runner = runnerOf(world, { planned: 3 })
    await runner.start()
    expect(runner.run).toMatchObject({ done: 2, failed: 1 })
    expect(runner.run.failures).toEqual([{ ...key('l1'), reason: 'refused: letter_queue_gone' }])
  })

  it('asks again when the server stumbles, and pauses with the letter in hand when it is gone', async () => {
    const { world, tries } = officeWith(named(2), (name, count) => {
      if (name === 'l0' && count < 3) throw refusal('store_write_failed', 503)
      if (name === 'l1' && count < 5) throw refusal('network', 0)
    })
    const troubles: (string | null)[] = []
    const runner = runnerOf(world, { planned: 2 }, (run, self) => {
      if (run.state !== 'paused') return
      troubles.push(run.trouble)
      queueMicrotask(() => self.goOn())
    })
    await runner.start()
    expect(troubles).toEqual(['refused: network'])
    expect([tries.get('l0'), tries.get('l1')]).toEqual([3, 5])
    expect(numbers(runner.run)).toEqual({ planned: 2, done: 2, skipped: 0, failed: 0 })
  })

  it('pauses when one letter after the other fails', async () => {
    const { world } = officeWith(named(50), () => {
      throw refusal('letter_without_queue', 409)
    })
    const runner = runnerOf(world, { planned: 50 }, (run, self) => {
      if (run.state === 'paused') self.cancel()
    })
    await runner.start()
    expect(runner.run.state).toBe('cancelled')
    expect(runner.run.failed).toBeGreaterThanOrEqual(20)
    expect(runner.run.failed).toBeLessThan(24)
    expect(runner.run.failures).toHaveLength(20)
    expect(runner.run.failed + remainingOf(runner.run)).toBe(50)
  })

  it('lets letters of one key leave in their order', async () => {
    const { world, order } = officeWith(['l2', 'l1', 'l0'], (name, count) => {
      if (name !== 'l0' && count < 2) throw refusal('letter_not_next', 409)
    })
    await runnerOf(world, { planned: 3 }).start()
    expect(order).toEqual(['l0', 'l1', 'l2'])
  })

  it('keeps to its rate', async () => {
    const { world, waits } = officeWith(named(6))
    await runnerOf(world, { planned: 6, perSecond: 2 }).start()
    expect(waits.filter((ms) => ms > 0).length).toBeGreaterThanOrEqual(3)
    expect(world.nowMs() - Date.parse(START)).toBeGreaterThanOrEqual(1_000)
  })

  it('takes exactly the letters it was given, where it was given some', async () => {
    const { world, order } = officeWith([])
    await runnerOf(world, { planned: 2, keys: [key('a'), key('b')], walks: [] }).start()
    expect(order).toEqual(['a', 'b'])
  })

  it('that is cancelled leaves the rest alone', async () => {
    const { world } = officeWith(named(30))
    const runner = runnerOf(world, { planned: 30 }, (run, self) => {
      if (run.done === 5 && run.state === 'running') self.cancel()
    })
    await runner.start()
    expect(runner.run.state).toBe('cancelled')
    expect(runner.run.done).toBeLessThan(10)
    expect(runner.run.done + remainingOf(runner.run)).toBe(30)
  })
})

describe('a run that is kept', () => {
  const run = newRun(PLAN, 'run', 'ada', START)

  it('is interrupted when its tab is loaded anew', () => {
    expect(afterReload(run, '2027-01-01T00:01:00.000Z')).toMatchObject({ state: 'interrupted' })
    expect(afterReload({ ...run, state: 'done' }, START)).toMatchObject({ state: 'done', outcomes: null })
  })

  it('tells its pace and what is left of its time', () => {
    expect(paceOf(run, Date.parse(START))).toBeNull()
    const half = { ...run, done: 4, skipped: 1 }
    expect(paceOf(half, Date.parse(START) + 5_000)).toEqual({ perSecond: 1, leftMs: 5_000 })
  })

  it('has outcomes that add up', () => {
    expect(unconfirmedOf({ asked: 9, confirmed: 5, returned: 1, isFinal: false })).toBe(3)
  })
})
