/** What a server asks of webhooks: APIs, metrics and health. */
import { type ServedSource, type SourceHealth, WELL } from '../../api/source-http.ts'
import { within } from '../../core/waiting.ts'
import type { Webhooks } from './webhooks.ts'

export const servedWebhooks = (webhooks: Webhooks) =>
  ({
    http: {
      isPresent: () => true,
      serve: async (server) => (await import('./api.ts')).webhookApi(webhooks, server),
    },
    metrics: () => webhooks.metrics.text(),
    health: async (patienceMs) => webhookHealth(await within(patienceMs, webhooks.pausedConsumers(), null)),
  }) satisfies ServedSource

/** `paused` is null when that could not be found out. */
function webhookHealth(paused: number | null): SourceHealth {
  if (paused === 0) return WELL
  if (paused === null)
    return { state: 'warn', note: 'whether deliveries are paused could not be found out in time' }
  const consumers = paused === 1 ? '1 consumer' : `${paused} consumers`
  const note = `deliveries to ${consumers} are paused, because all of them failed`
  return { state: 'warn', note, checks: { 'webhooks:deliveries': { status: 'warn', output: note } } }
}
