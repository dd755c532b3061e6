import { afterEach, describe, expect, it } from 'vitest'
import { redriveAt } from '../../test/world/redrive.ts'
import { closeServers, scriptedServer } from '../../test/world/scripted-server.ts'
import { instant } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'
import { TestClock } from '../core/test-clock.ts'
import type { OfficeGauges } from '../letters/numbers/gauges.ts'
import type { RedriveStanding } from '../redrive/redrive.ts'
import { Metrics } from './metrics.ts'

afterEach(closeServers)

describe('metrics', () => {
  it('count requests by route, never by what clients ask for', async () => {
    const { app } = await scriptedServer({ queues: { reload: async () => {} } })
    await app.inject({ method: 'POST', url: '/v1/queue.reload?x=1', body: '{}' })
    await app.inject({ method: 'POST', url: '/v1/guessed', body: '{}' })
    await app.inject('/guessed')
    const { body, headers } = await app.inject('/metrics')
    expect(headers['content-type']).toContain('text/plain; version=0.0.4')
    expect(body).toMatch(/http_handler_duration\{path="\/v1\/queue.reload",quantile="0.5"\} \S+/)
    expect(body).toMatch(/http_handler_duration\{path="\/v1\/queue.reload",quantile="0.99"\} \S+/)
    expect(body).toContain('bartleby_http_request_seconds_count{path="/v1/queue.reload",code="200"} 1')
    expect(body).toContain('bartleby_http_request_seconds_count{path="unserved",code="501"} 1')
    expect(body).not.toContain('guessed')
    expect(body).toContain('nodejs_eventloop_lag_seconds')
  })

  it('tell the depth of every queue', async () => {
    const oldestAt = instant(new SystemClock().now() - 60_000_000n)
    const depth = { queueName: 'a "b"', ready: 5, leased: 4, scheduled: 3, held: 1, dead: 2, oldestAt }
    const { app } = await scriptedServer({ queues: { depths: async () => [depth] } })
    const { body } = await app.inject('/metrics')
    expect(body).toContain('bartleby_queue_ready{queue="a \\"b\\""} 5')
    expect(body).toContain('bartleby_queue_leased{queue="a \\"b\\""} 4')
    expect(body).toContain('bartleby_queue_scheduled{queue="a \\"b\\""} 3')
    expect(body).toContain('bartleby_queue_held{queue="a \\"b\\""} 1')
    expect(body).toContain('bartleby_queue_dead{queue="a \\"b\\""} 2')
    expect(body).toMatch(/bartleby_queue_oldest_age_seconds\{queue="a \\"b\\""\} 6\d/)
  })

  it('tell when each round was last, and how many failed', async () => {
    const state = { lastTookMs: 1, isFailing: false, lastError: null }
    const rounds = [
      { ...state, name: 'letters.file', lastRunAt: instant(1_700_000_000_500_000n), failures: 2 },
      { ...state, name: 'runs.look', lastRunAt: null, failures: 0 },
    ]
    const { app } = await scriptedServer({ rounds })
    const { body } = await app.inject('/metrics')
    expect(body).toContain('bartleby_round_last_run_timestamp_seconds{round="letters.file"} 1700000000.5')
    expect(body).not.toContain('bartleby_round_last_run_timestamp_seconds{round="runs.look"}')
    expect(body).toContain('bartleby_round_failures_total{round="letters.file"} 2')
    expect(body).toContain('bartleby_round_failures_total{round="runs.look"} 0')
  })

  it('are told as far as they are known while the store fails', async () => {
    const { app } = await scriptedServer({ queues: { depths: () => Promise.reject(new Error('gone')) } })
    expect((await app.inject('/metrics')).statusCode).toBe(200)
  })

  it('tell how many letters there are, and how many there ever were, as the store has them now', async () => {
    const letters = { Pending: 3, Resolved: 2, Expired: 1 }
    const from = 'source="engines",engine="hmac",queue="q"'
    const counts = { captured: 10, removed: 4, unconfirmed: 2 }
    const gauge = { source: 'engines', engine: 'hmac', queue: 'q', letters, ...counts }
    let told: readonly (typeof gauge)[] = [gauge]
    const metrics = new Metrics({
      depths: async () => [],
      letters: async () => told,
      clock: new SystemClock(),
    })
    for (let scrape = 0; scrape < 2; scrape++) {
      const text = await metrics.text()
      expect(text).toContain(`bartleby_letters{${from},status="Pending"} 3`)
      expect(text).toContain(`bartleby_letters{${from},status="Resolved"} 2`)
      expect(text).toContain(`bartleby_letters{${from},status="Expired"} 1`)
      expect(text).toContain(`bartleby_letters_captured_total{${from}} 10`)
      expect(text).toContain(`bartleby_letters_removed_total{${from}} 4`)
      expect(text).toContain(`bartleby_letters_unconfirmed{${from}} 2`)
    }
    told = []
    expect(await metrics.text()).not.toContain('engine="hmac"')
  })

  it('tell how long the oldest letter waits and what was ever done to letters, while the store answers', async () => {
    const outcomes = { retried: 9, confirmed: 5, returned: 3, discarded: 2, expired: 1 }
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    let told: OfficeGauges | Error = { oldestPendingAt: instant(1_799_999_940_500_000n), outcomes }
    const officeGauges = async () => {
      if (told instanceof Error) throw told
      return told
    }
    const metrics = new Metrics({ depths: async () => [], officeGauges, clock })
    for (let scrape = 0; scrape < 2; scrape++) {
      const text = await metrics.text()
      expect(text).toContain('bartleby_letters_oldest_pending_age_seconds 59.5\n')
      for (const [outcome, times] of Object.entries(outcomes))
        expect(text).toContain(`bartleby_letters_outcomes_total{outcome="${outcome}"} ${times}\n`)
    }
    told = { oldestPendingAt: null, outcomes }
    expect(await metrics.text()).toContain('bartleby_letters_oldest_pending_age_seconds 0\n')
    told = new Error('gone')
    expect(await metrics.text()).not.toMatch(/^bartleby_letters_(oldest_pending|outcomes)/m)
  })

  it('tell of redrives what is under way, while the store answers, and what this server did', async () => {
    let told: readonly RedriveStanding[] | Error = [
      redriveAt({ state: 'running', counts: { planned: 10, sent: 3, failed: 1 } }),
      redriveAt({ state: 'paused', counts: { planned: 5 } }),
      redriveAt({ state: 'paused', counts: { planned: 2, skipped: 2 } }),
    ]
    const redrives = async () => {
      if (told instanceof Error) throw told
      return told
    }
    const metrics = new Metrics({ depths: async () => [], redrives, clock: new SystemClock() })
    const before = await metrics.text()
    expect(before).toContain('bartleby_redrives{state="canary"} 0\n')
    expect(before).toContain('bartleby_redrives{state="running"} 1\n')
    expect(before).toContain('bartleby_redrives{state="paused"} 2\n')
    expect(before).toContain('bartleby_redrive_letters_remaining 11\n')
    expect(before).toContain('bartleby_redrive_letters_total{action="discard",outcome="sent"} 0\n')
    expect(before).toContain('bartleby_redrives_ended_total{state="stopped"} 0\n')
    expect(before).toContain('bartleby_redrives_resumed_total 0\n')
    metrics.redrives.step({ action: 'retry', sent: 5, skipped: 1, failed: 0 })
    metrics.redrives.step({ action: 'retry', sent: 4, skipped: 0, failed: 2 })
    metrics.redrives.ended('stopped')
    metrics.redrives.resumed()
    told = []
    const after = await metrics.text()
    expect(after).toContain('bartleby_redrives{state="paused"} 0\n')
    expect(after).toContain('bartleby_redrive_letters_remaining 0\n')
    expect(after).toContain('bartleby_redrive_letters_total{action="retry",outcome="sent"} 9\n')
    expect(after).toContain('bartleby_redrive_letters_total{action="retry",outcome="skipped"} 1\n')
    expect(after).toContain('bartleby_redrive_letters_total{action="retry",outcome="failed"} 2\n')
    expect(after).toContain('bartleby_redrives_ended_total{state="stopped"} 1\n')
    expect(after).toContain('bartleby_redrives_resumed_total 1\n')
    told = new Error('gone')
    expect(await metrics.text()).not.toMatch(/^bartleby_redrive(s|_letters_remaining)[ {]/m)
  })

  it('add up what runs of retention removed', async () => {
    const metrics = new Metrics({ depths: async () => [], clock: new SystemClock() })
    expect(await metrics.text()).toContain('bartleby_retention_removed_letters_total 0')
    metrics.observeRemoved({ letters: 3, history: 10 })
    metrics.observeRemoved({ letters: 1, history: 0 })
    const text = await metrics.text()
    expect(text).toContain('bartleby_retention_removed_letters_total 4')
    expect(text).toContain('bartleby_retention_removed_history_total 10')
  })
})
