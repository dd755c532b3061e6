import { describe, expect, it } from 'vitest'
import type { HealthStatus } from './health.ts'
import type { OutboxReading } from './readings.ts'
import { outboxHealth } from './readings.ts'

const reading = (outbox: string, status: HealthStatus, ...reasons: string[]) =>
  // Only its name, whether it was read, and its health are looked at.
  ({ outbox, looked: { ok: true }, health: { status, reasons } }) as unknown as OutboxReading

describe('the health of outboxes', () => {
  it('tells that there is none', () => {
    expect(outboxHealth([])).toEqual({ state: 'off', note: 'no outbox is configured' })
  })

  it('is that of the worst, and names those that are not well', () => {
    const well = reading('a', 'ok')
    const late = reading('b', 'degraded', 'backlog is 2, above 1', 'failureRatio is 0.2, above 0.1')
    const stuck = reading('c', 'unhealthy', 'backlog is 9, above 8')
    expect(outboxHealth([well])).toEqual({
      state: 'ok',
      note: null,
      checks: { 'outbox:a': { status: 'pass', output: null } },
    })
    expect(outboxHealth([well, late]).state).toBe('warn')
    expect(outboxHealth([well, late, stuck])).toEqual({
      state: 'fail',
      note: 'b: backlog is 2, above 1, failureRatio is 0.2, above 0.1; c: backlog is 9, above 8',
      checks: {
        'outbox:a': { status: 'pass', output: null },
        'outbox:b': { status: 'warn', output: 'backlog is 2, above 1; failureRatio is 0.2, above 0.1' },
        'outbox:c': { status: 'fail', output: 'backlog is 9, above 8' },
      },
    })
  })

  it('does not tell everybody what a database said', () => {
    const away: OutboxReading = {
      ...reading('orders', 'unhealthy', 'its database cannot be read: no route to 10.0.0.5'),
      looked: { ok: false, trouble: { what: 'its database cannot be read', detail: 'no route to 10.0.0.5' } },
    }
    expect(outboxHealth([away])).toMatchObject({
      note: 'orders: its database cannot be read: no route to 10.0.0.5',
      checks: { 'outbox:orders': { status: 'fail', output: 'its database cannot be read' } },
    })
  })
})
