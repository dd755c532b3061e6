/** Kafka on a server: calls of the office API and, where it is enabled, an API of its own. */
import { reaches } from '../../api/auth.ts'
import { plainStatus } from '../../api/envelope.ts'
import { type Facade, pathOf } from '../../api/facade.ts'
import type { ServedApi, ServerScope } from '../../api/source-http.ts'
import { kafkaAdminRoutes } from './admin-routes.ts'
import { KAFKA } from './event.ts'
import { kafkaRequestId, type ServedKafka } from './routes/call.ts'
import { INTERNAL } from './routes/reply.ts'
import type { KafkaApi } from './routes.ts'

export async function kafkaApi(kafka: ServedKafka | null, server: ServerScope): Promise<ServedApi> {
  // Loaded when it is used, as the part of the office that it shows.
  const api = kafka === null ? null : new (await import('./routes.ts')).KafkaApi(kafka.calls, server)
  return {
    facade: kafkaFacade(api),
    routes: async (app) => {
      await app.register(kafkaAdminRoutes, { kafka, ...server })
      if (api !== null) await app.register((scoped) => api.addRoutes(scoped))
    },
  }
}

const kafkaFacade = (api: KafkaApi | null): Facade => ({
  about:
    'Below /kafka/, where it is enabled: dead events of Kafka, with tokens of its own; every answer has an X-Request-Id.',
  owns: (path) => path.startsWith('/kafka/') || path === '/kafka',
  requestId: kafkaRequestId,
  admit(request, gate) {
    if (api === null) return
    gate.refuseForeign(request)
    // It asks for tokens itself, everywhere but at its health.
    const caller = gate.signedIn(request)
    // The session may be that of another source's own token.
    if (caller !== null && reaches(caller, KAFKA)) request.caller = caller
  },
  isProvedLater: ({ headers, url }) => headers.authorization !== undefined && pathOf(url) !== '/kafka/health',
  sendError(request, reply, { code, message }) {
    const detail = code === 'path_unknown' ? 'Not Found' : message.toWellFormed()
    if (request.id !== '') reply.header('x-request-id', request.id)
    reply
      .code(plainStatus(code))
      .header('content-type', 'application/json')
      .send(code === 'internal' ? INTERNAL.body : JSON.stringify({ detail }))
  },
  ...(api !== null && { answerUnknown: (request, reply) => api.answerUnrouted(request, reply) }),
})
