/** Webhooks on a server: two APIs, and the answer to what nobody else answers. */
import { ANYONE } from '../../api/auth.ts'
import { type Facade, sendPlainError } from '../../api/facade.ts'
import type { ServedApi, ServerScope } from '../../api/source-http.ts'
import { webhookAdminRoutes } from './admin/admin-routes.ts'
import { logAccess, requestIds } from './routes/request.ts'
import { signatureCheck } from './routes/signature-check.ts'
import { answerUnrouted, isWebhookPath, webhookRoutes } from './routes.ts'
import type { Webhooks } from './webhooks.ts'

export const webhookApi = (webhooks: Webhooks, server: ServerScope): ServedApi => ({
  facade: webhookFacade(webhooks, server),
  routes: async (app) => {
    await app.register(webhookAdminRoutes, { webhooks, ...server })
    await app.register(webhookRoutes, { webhooks, ...server })
  },
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
      // `Authorization` may be for consumers, if the sender wants it forwarded.
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
