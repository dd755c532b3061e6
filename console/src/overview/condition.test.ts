import { describe, expect, it } from 'vitest'
import type { SignatureGroup } from '../api/types.ts'
import { conditionOf } from './condition.ts'

const NOW = Date.parse('2026-11-18T04:20:00Z')

const cause = (lastHour: number): SignatureGroup => ({
  signature: 's1',
  version: 1,
  errorClass: 'TimeoutError',
  title: 'connect ETIMEDOUT <ip>',
  open: 40,
  total: 40,
  firstSeenAtUtc: '2026-10-01T00:00:00Z',
  lastSeenAtUtc: '2026-11-18T04:19:00Z',
  sources: ['engines'],
  engines: ['payments'],
  originalQueues: ['payments'],
  sample: null,
  trend: [...Array(23).fill(1), lastHour],
})
const engines = { source: 'engines', health: 'ok', note: null } as const

describe('the condition of a source', () => {
  it('is what the server says, while no more arrives than usual', () => {
    expect(conditionOf(engines, [cause(2)], NOW)).toEqual({ health: 'ok', note: null })
    expect(conditionOf({ ...engines, health: 'off', note: 'not enabled' }, [], NOW)).toEqual({
      health: 'off',
      note: 'not enabled',
    })
  })

  it('is degraded at ten times the usual, failing at a hundred times, with the reason', () => {
    expect(conditionOf(engines, [cause(12)], NOW)).toEqual({ health: 'warn', note: '12× usual arrivals' })
    expect(conditionOf(engines, [cause(12), cause(290)], NOW)).toEqual({
      health: 'fail',
      note: '290× usual arrivals',
    })
  })

  it('is not made better, nor that of another source worse', () => {
    const broken = { source: 'engines', health: 'fail', note: 'no worker' } as const
    expect(conditionOf(broken, [cause(12)], NOW)).toEqual({ health: 'fail', note: 'no worker' })
    expect(conditionOf({ ...engines, source: 'outbox' }, [cause(290)], NOW)).toEqual({
      health: 'ok',
      note: null,
    })
  })
})
