import { describe, expect, it } from 'vitest'
import { instant } from '../../../core/clock.ts'
import { TestClock } from '../../../core/test-clock.ts'
import type { DeadCount } from './dead-counts.ts'
import type { WebhookGauges } from './metrics.ts'
import { WebhookMetrics } from './metrics.ts'

const NOW = instant(1_800_000_000_000_000n)
const NOTHING: WebhookGauges = { dead: [], unfolded: 0, lastFoldAt: null, paused: [], runs: [] }

const dead = (channelId: string, deadCount: number, oldestAt: DeadCount['oldestAt'] = null): DeadCount => ({
  channelId,
  channelName: '',
  consumerId: 'k "1"\n',
  consumerName: '',
  consumer: 1,
  deadCount,
  oldestAt,
  newestAt: oldestAt,
})

function metricsOf(gauges: () => Promise<WebhookGauges>) {
  const clock = new TestClock()
  clock.freeze(NOW)
  return new WebhookMetrics({ clock, gauges, held: () => 7 })
}

const linesOf = async (metrics: WebhookMetrics) => (await metrics.text()).trimEnd().split('\n')

describe('metrics of webhooks', () => {
  it('are what the store says at the scrape', async () => {
    let gauges: WebhookGauges = {
      dead: [dead('back\\slash', 3, instant(NOW - 90_000_000n)), dead('c2', 0)],
      unfolded: 5,
      lastFoldAt: instant(NOW - 500_000n),
      paused: [{ channelId: 'c1', consumerId: 'k1', pausedSince: NOW }],
      runs: [
        { kind: 'purge', channelId: 'c1', consumerId: 'k1', expected: 10, done: 4 },
        { kind: 'purge', channelId: 'c1', consumerId: 'k1', expected: 2, done: 1 },
      ],
    }
    const metrics = metricsOf(async () => gauges)
    const lines = await linesOf(metrics)
    expect(lines).toContain('dead_job_count{channel="back\\\\slash",consumer="k \\"1\\"\\n"} 3')
    expect(lines).toContain('dead_job_count{channel="c2",consumer="k \\"1\\"\\n"} 0')
    expect(lines.filter((line) => line.startsWith('bartleby_oldest_dead'))).toEqual([
      'bartleby_oldest_dead_job_age_seconds{channel="back\\\\slash",consumer="k \\"1\\"\\n"} 90',
    ])
    expect(lines).toContain('queued_job_count 7')
    expect(lines).toContain('bartleby_dlq_unfolded_rows 5')
    expect(lines).toContain('bartleby_dlq_last_fold_timestamp_seconds 1799999999.5')
    expect(lines).toContain('bartleby_webhook_consumer_paused{channel="c1",consumer="k1"} 1')
    const run = 'kind="purge",channel="c1",consumer="k1"'
    expect(lines).toContain(`bartleby_webhook_bulk_expected_jobs{${run}} 12`)
    expect(lines).toContain(`bartleby_webhook_bulk_done_jobs{${run}} 5`)
    gauges = NOTHING
    expect((await linesOf(metrics)).filter((line) => line.startsWith('dead_job_count'))).toEqual([])
  })

  it('have no samples of a store that cannot be read, and are there all the same', async () => {
    const lines = await linesOf(metricsOf(() => Promise.reject(new Error('gone'))))
    expect(lines).toContain('# HELP dead_job_count Number of dead jobs per consumer')
    expect(lines).toContain('# TYPE dead_job_count gauge')
    const samples = lines.filter((line) => !line.startsWith('#') && !line.startsWith('bartleby_delivery'))
    expect(samples).toEqual(['queued_job_count 7'])
  })

  it('count the attempts of this server, of a bounded number of consumers each by itself', async () => {
    const metrics = metricsOf(async () => NOTHING)
    const attempt = (channelId: string, outcome: 'success' | 'timeout', seconds: number) =>
      metrics.observe({ channelId, consumerId: 'k', outcome, seconds })
    attempt('c', 'success', 0.02)
    attempt('c', 'success', 0.3)
    attempt('c', 'timeout', 31)
    for (let i = 0; i < 1_500; i++) attempt(`c${i}`, 'success', 0)
    const lines = await linesOf(metrics)
    expect(lines).toContain('bartleby_delivery_attempts_total{channel="c",consumer="k",outcome="success"} 2')
    expect(lines).toContain('bartleby_delivery_attempts_total{channel="c",consumer="k",outcome="timeout"} 1')
    expect(lines).toContain(
      'bartleby_delivery_attempts_total{channel="~others",consumer="~others",outcome="success"} 501',
    )
    expect(lines).toContain('bartleby_delivery_duration_seconds_bucket{le="0.025"} 1501')
    expect(lines).toContain('bartleby_delivery_duration_seconds_bucket{le="30"} 1502')
    expect(lines).toContain('bartleby_delivery_duration_seconds_bucket{le="+Inf"} 1503')
    expect(lines).toContain('bartleby_delivery_duration_seconds_count 1503')
  })

  it('have no more series of dead jobs than a scrape can take', async () => {
    const many = Array.from({ length: 10_002 }, (_, i) => dead(`c${i}`, 2))
    const lines = await linesOf(metricsOf(async () => ({ ...NOTHING, dead: many })))
    expect(lines.filter((line) => line.startsWith('dead_job_count'))).toHaveLength(10_001)
    expect(lines).toContain('dead_job_count{channel="~others",consumer="~others"} 4')
  })
})
