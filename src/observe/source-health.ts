/**
 * How the sources of letters are, for those who may see the office: which is well, which needs a look and why, and which is not in
 * use. Who asks gets an answer in good time, whatever is slow.
 */
import type { IntakeStanding } from '../kafka/ports.ts'
import { publicTroubles } from '../kafka/standing.ts'
import type { SourceName } from '../letters/letter.ts'
import type { AskSources, SourceHealth } from '../letters/routes/activity.ts'
import { type HealthStatus, worstOf } from '../outbox/health.ts'
import type { OutboxReading } from '../outbox/readings.ts'
import { pausedText, within } from './health.ts'

/** Who is asked. */
export interface HealthWitnesses {
  /** The outboxes that are configured, after so many milliseconds at the latest. */
  readonly outboxes: (options: { readonly patienceMs: number }) => Promise<readonly OutboxReading[]>
  /** How many consumers of webhooks are paused, because all deliveries to them failed. */
  readonly pausedConsumers: () => Promise<number>
  /** How intake of dead events stands; null where there is none. */
  readonly kafka: (() => IntakeStanding) | null
}

/** The overview answers within half a second. */
const PATIENCE_MS = 400

/** What asks them. Queues, engines and HTTP are the office itself: they are well when it can be asked at all. */
export const sourceHealth =
  ({ outboxes, pausedConsumers, kafka }: HealthWitnesses): AskSources =>
  async () => {
    const [readings, paused] = await Promise.all([
      outboxes({ patienceMs: PATIENCE_MS }),
      within(PATIENCE_MS, pausedConsumers(), null),
    ])
    return [
      ok('queues'),
      ok('engines'),
      outboxHealth(readings),
      webhookHealth(paused),
      kafkaHealth(kafka?.() ?? null),
      ok('http'),
    ]
  }

const ok = (source: SourceName): SourceHealth => ({ source, health: 'ok', note: null })

const HEALTH = { ok: 'ok', degraded: 'warn', unhealthy: 'fail' } as const satisfies Record<
  HealthStatus,
  SourceHealth['health']
>

function outboxHealth(readings: readonly OutboxReading[]): SourceHealth {
  if (readings.length === 0) return { source: 'outbox', health: 'off', note: 'no outbox is configured' }
  const unwell = readings.filter(({ health }) => health.status !== 'ok')
  const notes = unwell.map(({ outbox, health }) => `${outbox}: ${health.reasons.join(', ')}`)
  return {
    source: 'outbox',
    health: HEALTH[worstOf(readings.map(({ health }) => health.status))],
    note: notes.length === 0 ? null : notes.join('; '),
  }
}

/** `paused` is null when that could not be found out. */
function webhookHealth(paused: number | null): SourceHealth {
  if (paused === 0) return ok('webhooks')
  const note =
    paused === null ? 'whether deliveries are paused could not be found out in time' : pausedText(paused)
  return { source: 'webhooks', health: 'warn', note }
}

function kafkaHealth(standing: IntakeStanding | null): SourceHealth {
  if (standing === null) return { source: 'kafka', health: 'off', note: 'Kafka is not enabled' }
  const { state } = standing
  const troubles = standing.troubles.length > 0 ? standing.troubles : publicTroubles(standing)
  if (state === 'stopped')
    return { source: 'kafka', health: 'fail', note: troubles.join('; ') || 'intake has stopped' }
  if (troubles.length === 0) return ok('kafka')
  return { source: 'kafka', health: 'warn', note: troubles.join('; ') }
}
