import { describe, expect, it } from 'vitest'
import type { Redrive } from '../api/redrive-types.ts'
import { bodyOf, CAREFUL, type Draft, draftOf, FRESH, fieldOf, problemOf, shapeOf } from './plan-draft.ts'

const request = { act: 'retry', filter: { engine: 'hmac', minAttempts: '3' }, what: '' } as const

/** Read as the server does, which keeps digits on its own. */
const asked = (...[of, draft]: Parameters<typeof bodyOf>): unknown => JSON.parse(bodyOf(of, draft))

describe('what the server is asked for', () => {
  it('is the filter and the act, and the terms that were given', () => {
    expect(asked(request, FRESH)).toEqual({
      filter: { engine: 'hmac', minAttempts: 3 },
      action: 'retry',
      order: 'key',
    })
    expect(asked(request, { ...FRESH, ...CAREFUL, rate: 0.5, reason: 'mended' })).toMatchObject({
      rate: 0.5,
      canary: { letters: 10, confirmPercent: 100, waitSeconds: 600 },
      stopRule: { percent: 20, of: 100 },
      reason: 'mended',
    })
  })

  it('is the chosen letters, where they were chosen', () => {
    const keys = [{ engine: 'hmac', rowKey: 'a' }]
    expect(asked({ ...request, keys }, FRESH)).toEqual({ ids: keys, action: 'retry', order: 'key' })
  })

  it('has nothing that the act has no use for', () => {
    const draft: Draft = { ...FRESH, ...CAREFUL, payload: 'mapping', mapping: '$', reason: 'test data' }
    expect(asked({ ...request, act: 'discard', filter: {} }, draft)).toEqual({
      filter: {},
      action: 'discard',
      reason: 'test data',
    })
  })

  it('has the patch as it was typed, so that its numbers keep their digits', () => {
    const patch = '[{"op":"add","path":"/serial","value":9007199254740993}]'
    expect(bodyOf(request, { ...FRESH, payload: 'patch', patch })).toContain(`"repair":{"patch":${patch}}`)
  })

  it('has the repair', () => {
    const draft: Draft = {
      ...FRESH,
      payload: 'patch',
      patch: '[{"op":"test","path":"/a","value":1}]',
      mapping: 'left over',
      headers: { kind: 'v2', reference: null },
    }
    expect(asked(request, draft)).toMatchObject({
      repair: {
        patch: [{ op: 'test', path: '/a', value: 1 }],
        headers: { set: { kind: 'v2' }, remove: ['reference'] },
      },
    })
  })
})

describe('a draft', () => {
  it('is not asked with before it can be', () => {
    expect(problemOf('retry', FRESH)).toBeNull()
    expect(problemOf('move', FRESH)?.field).toBe('queue')
    expect(problemOf('discard', FRESH)?.field).toBe('reason')
    expect(problemOf('retry', { ...FRESH, payload: 'patch', patch: '[{' })?.says).toContain('Not JSON')
    expect(problemOf('retry', { ...FRESH, payload: 'patch', patch: '{}' })?.field).toBe('patch')
    expect(problemOf('retry', { ...FRESH, payload: 'mapping' })?.field).toBe('mapping')
    expect(problemOf('restore', { ...FRESH, payload: 'mapping' })).toBeNull()
  })

  it('has to be looked at again when what is sent changes, not when the pace does', () => {
    const shape = shapeOf('retry', FRESH)
    expect(shapeOf('retry', { ...FRESH, ...CAREFUL, rate: 3, reason: 'x' })).toBe(shape)
    expect(shapeOf('retry', { ...FRESH, headers: { kind: '' } })).not.toBe(shape)
    expect(shapeOf('retry', { ...FRESH, order: 'none' })).not.toBe(shape)
  })

  it('is made of a redrive, to plan the same again', () => {
    // Only what a draft is made of.
    const redrive = {
      queue: null,
      rate: 5,
      canary: { letters: 3, confirmPercent: 50, waitSeconds: 60 },
      stopRule: { percent: 12.5, of: 100 },
      order: 'capture',
      repair: { mapping: '$', headers: { set: { kind: 'a' }, remove: ['reference'] }, version: '1-a' },
      reason: null,
    } as unknown as Redrive
    expect(draftOf(redrive)).toEqual({
      ...FRESH,
      rate: 5,
      canary: 3,
      confirmPercent: 50,
      waitSeconds: 60,
      stopPercent: 12.5,
      order: 'capture',
      payload: 'mapping',
      mapping: '$',
      headers: { kind: 'a', reference: null },
    })
  })

  it('knows which field a refusal is about', () => {
    expect(fieldOf('repair.patch[2].path')).toBe('patch')
    expect(fieldOf('stopRule.percent')).toBe('stopRule')
    expect(fieldOf('rate')).toBe('rate')
    expect(fieldOf('repair.headers.set.kind')).toBe('headers')
    expect(fieldOf('filter.engine')).toBeNull()
    expect(fieldOf(null)).toBeNull()
  })
})
