import { describe, expect, it } from 'vitest'
import { servedWebhooks } from './served.ts'
import type { Webhooks } from './webhooks.ts'

/** Only asked how many consumers are paused. */
const healthOf = (pausedConsumers: () => Promise<number>) =>
  servedWebhooks({ pausedConsumers } as unknown as Webhooks).health(50)

describe('the health of webhooks', () => {
  it('warns of paused consumers without naming them', async () => {
    const note = 'deliveries to 2 consumers are paused, because all of them failed'
    expect(await healthOf(async () => 2)).toEqual({
      state: 'warn',
      note,
      checks: { 'webhooks:deliveries': { status: 'warn', output: note } },
    })
    expect(await healthOf(async () => 0)).toEqual({ state: 'ok', note: null })
  })

  it('is told in time when nobody answers or can', async () => {
    const unknown = { state: 'warn', note: 'whether deliveries are paused could not be found out in time' }
    expect(await healthOf(() => new Promise(() => {}))).toEqual(unknown)
    expect(await healthOf(() => Promise.reject(new Error('no')))).toEqual(unknown)
  })
})
