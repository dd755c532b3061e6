import { describe, expect, it } from 'vitest'
import { type PlanFlags, planBody } from './plan-flags.ts'

const CHOSEN = { filter: { originalQueue: 'orders', minAttempts: '3' } }
const body = (flags: PlanFlags) => planBody(CHOSEN, flags, undefined)
const FILTER = { originalQueue: 'orders', minAttempts: 3 }

describe('the plan that flags ask for', () => {
  it('is a retry of what matches, and says nothing about what was not given', () => {
    expect(body({})).toEqual({ filter: FILTER, action: 'retry' })
    const ids = [{ engine: 'hmac', rowKey: 'a' }]
    expect(planBody({ ids }, {}, { mapping: '$' })).toEqual({
      ids,
      action: 'retry',
      repair: { mapping: '$' },
    })
  })

  it('has all terms', () => {
    expect(
      body({
        rate: '0.5',
        canary: '10:80',
        canaryWait: '2m30s',
        stop: '12.5/200',
        order: 'none',
        reason: 'why',
      }),
    ).toEqual({
      filter: FILTER,
      action: 'retry',
      rate: 0.5,
      canary: { letters: 10, confirmPercent: 80, waitSeconds: 150 },
      stopRule: { percent: 12.5, of: 200 },
      order: 'none',
      reason: 'why',
    })
    expect(body({ canary: '5', stop: '20%/100' })).toMatchObject({
      canary: { letters: 5 },
      stopRule: { percent: 20, of: 100 },
    })
  })

  it('is a move where a queue is named', () => {
    expect(body({ to: 'later' })).toEqual({ filter: FILTER, action: 'move', queue: 'later' })
    expect(() => body({ action: 'move' })).toThrow('say where they are moved: --to QUEUE')
    expect(() => body({ action: 'discard', to: 'later' })).toThrow('--to is for --action move')
  })

  it('says why letters are discarded', () => {
    expect(() => body({ action: 'discard' })).toThrow('--reason TEXT')
    expect(() => body({ action: 'discard', reason: ' ' })).toThrow('--reason TEXT')
    expect(body({ action: 'discard', reason: 'x' })).toMatchObject({ action: 'discard', reason: 'x' })
  })

  it.each<[PlanFlags, string]>([
    [{ rate: '0' }, "--rate is '0'; expected letters a second above 0"],
    [{ rate: '-1' }, "--rate is '-1'"],
    [{ rate: 'fast' }, "--rate is 'fast'"],
    [{ rate: '' }, "--rate is ''"],
    [{ canary: 'ten' }, "--canary is 'ten'; expected how many letters go first"],
    [{ canary: '10:' }, "--canary is '10:'"],
    [{ canaryWait: '1m' }, '--canary-wait is for --canary'],
    [{ canary: '1', canaryWait: '10ms' }, "--canary-wait is '10ms'; expected a duration of at least 1s"],
    [{ stop: '20' }, "--stop is '20'; expected a part and of how many outcomes"],
    [{ stop: '20/all' }, "--stop is '20/all'"],
  ])('refuses %j', (flags, message) => {
    expect(() => body(flags)).toThrow(message)
  })
})
