/** Outboxes on a server: their calls, metrics and health. */
import type { ServedSource, SourceHealth } from '../../../api/source-http.ts'
import type { Clock } from '../../../core/clock.ts'
import { type HealthStatus, worstOf } from './health.ts'
import type { OutboxHandles } from './outbox-handle.ts'
import { type OutboxReading, OutboxReadings, outboxMetrics } from './readings.ts'

export function servedOutboxes(handles: OutboxHandles, clock: Clock) {
  const readings = new OutboxReadings(handles, clock)
  return {
    http: {
      isPresent: () => readings.handles().length > 0,
      serve: async (server) => {
        const { outboxRoutes } = await import('./routes.ts')
        return { routes: async (app) => void (await app.register(outboxRoutes, { readings, ...server })) }
      },
    },
    metrics: async () => outboxMetrics(await readings.read()),
    health: async (patienceMs) => outboxHealth(await readings.read({ patienceMs })),
  } satisfies ServedSource
}

const STATES = { ok: 'ok', degraded: 'warn', unhealthy: 'fail' } as const satisfies Record<
  HealthStatus,
  string
>

export function outboxHealth(readings: readonly OutboxReading[]): SourceHealth {
  if (readings.length === 0) return { state: 'off', note: 'no outbox is configured' }
  const unwell = readings.filter(({ health }) => health.status !== 'ok')
  const notes = unwell.map(({ outbox, health }) => `${outbox}: ${health.reasons.join(', ')}`)
  return {
    state: STATES[worstOf(readings.map(({ health }) => health.status))],
    note: notes.length === 0 ? null : notes.join('; '),
    checks: Object.fromEntries(readings.map((reading) => [`outbox:${reading.outbox}`, checkOf(reading)])),
  }
}

function checkOf({ looked, health: { status, reasons } }: OutboxReading) {
  if (status === 'ok') return { status: 'pass', output: null } as const
  // Everybody may read this: what a database said about its failure is for those with a token.
  return { status: STATES[status], output: looked.ok ? reasons.join('; ') : looked.trouble.what }
}
