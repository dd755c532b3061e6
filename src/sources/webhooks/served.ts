/** Webhooks on a server: two APIs, the shape of what nobody else answers, metrics and health. */
import { ANYONE } from '../../api/auth.ts'
import { type Facade, sendPlainError } from '../../api/facade.ts'
import { type ServedSource, type ServerScope, type SourceHealth, WELL } from '../../api/source-http.ts'
import { within } from '../../core/waiting.ts'
import { webhookAdminRoutes } from './admin-routes.ts'
import { logAccess, requestIds } from './routes/request.ts'
import { signatureCheck } from './routes/signature-check.ts'
import { answerUnrouted, isWebhookPath, webhookRoutes } from './routes.ts'
import type { Webhooks } from './webhooks.ts'

export const servedWebhooks = (webhooks: Webhooks): Required<Omit<ServedSource, 'isDegraded'>> => ({
  http: {
    isPresent: true,
    serve: (server) => ({
      facade: webhookFacade(webhooks, server),
      routes: async (app) => {
        await app.register(webhookAdminRoutes, { admin: webhooks.admin, ...server })
        await app.register(webhookRoutes, { webhooks, ...server })
      },
    }),
  },
  metrics: () => webhooks.metrics.text(),
  health: async (patienceMs) => webhookHealth(await within(patienceMs, webhooks.pausedConsumers(), null)),
})

/** It owns no prefix: what no other API has is its. */
function webhookFacade({ settings, xids }: Pick<Webhooks, 'settings' | 'xids'>, server: ServerScope): Facade {
  const { gatewayAuth, openManagement } = settings
  const isLogged = server.log.level === 'debug' || server.log.level === 'trace'
  return {
    about: 'At the root: webhooks, with forms and JSON as webhook-broker has them; errors are plain text.',
    requestId: requestIds(xids),
    ...(gatewayAuth.mode === 'hmac' && { onRequest: signatureCheck({ gatewayAuth, ...server }) }),
    ...(isLogged && { onResponse: logAccess }),
    admit(request, gate) {
      // What an `Authorization` says is forwarded to consumers if the sender wants so: it need not be for us.
      gate.refuseForeign(request)
      if (gate.isOpen(request) || (openManagement && request.is404)) return
      if (gate.hasTokens) gate.ask(request)
      else request.caller = ANYONE
    },
    isProvedLater: ({ headers, url }) =>
      url.startsWith('/channel/') &&
      (headers['x-broker-channel-token'] ?? headers['x-broker-consumer-token']) !== undefined,
    hasPage: (path) => !isWebhookPath(path),
    sendError: (request, reply, error) => sendPlainError(reply.header('x-request-id', request.id), error),
    answerUnknown: answerUnrouted,
  }
}

/** `paused` is null when that could not be found out. */
export function webhookHealth(paused: number | null): SourceHealth {
  if (paused === 0) return WELL
  if (paused === null)
    return { state: 'warn', note: 'whether deliveries are paused could not be found out in time' }
  const consumers = paused === 1 ? '1 consumer' : `${paused} consumers`
  const note = `deliveries to ${consumers} are paused, because all of them failed`
  return { state: 'warn', note, checks: { 'webhooks:deliveries': { status: 'warn', output: note } } }
}
