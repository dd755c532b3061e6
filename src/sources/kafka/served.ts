/** Kafka on a server: two APIs, the tokens that they ask for, metrics and health. Also where it is not enabled: then it says so. */
import type { OwnTokens } from '../../api/auth.ts'
import { plainStatus } from '../../api/envelope.ts'
import { type Facade, pathOf } from '../../api/facade.ts'
import { type ServedSource, type SourceHealth, WELL } from '../../api/source-http.ts'
import { failure } from '../../core/errors.ts'
import { kafkaAdminRoutes } from './admin-routes.ts'
import { KAFKA } from './event.ts'
import { type IntakeStanding, publicTroubles } from './intake/standing.ts'
import { kafkaRequestId, type ServedKafka } from './routes/call.ts'
import { INTERNAL } from './routes/reply.ts'
import type { KafkaApi } from './routes.ts'

/** `kafka` is null where it is not enabled. */
export const servedKafka = (kafka: ServedKafka | null): ServedSource => ({
  http: {
    isPresent: kafka !== null,
    ...(kafka !== null && { ownTokens: ownTokens(kafka.calls.settings.tokenHashes) }),
    serve: async (server) => {
      // Loaded when it is used, as the part of the office that it shows.
      const api = kafka === null ? null : new (await import('./routes.ts')).KafkaApi(kafka.calls, server)
      return {
        facade: kafkaFacade(api),
        routes: async (app) => {
          await app.register(kafkaAdminRoutes, { kafka, ...server })
          if (api !== null) await app.register((scoped) => api.addRoutes(scoped))
        },
      }
    },
  },
  ...(kafka !== null && { metrics: async () => kafka.metrics() }),
  health: async () => kafkaHealth(kafka?.standing() ?? null),
  isDegraded: () => kafka !== null && publicTroubles(kafka.standing()).length > 0,
})

/** History knows them by their number. */
const ownTokens = (hashes: readonly string[]): OwnTokens => ({
  source: KAFKA,
  tokens: hashes.map((sha256, index) => ({ name: `token#${index + 1}`, sha256 })),
  routes: ['/api/kafka/events/'],
  missing: () => failure('kafka_token_missing'),
})

/** Without an API everything below its prefix is unknown, to everybody. */
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
    if (caller !== null) request.caller = caller
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

export function kafkaHealth(standing: IntakeStanding | null): SourceHealth {
  if (standing === null) return { state: 'off', note: 'Kafka is not enabled' }
  const known = publicTroubles(standing)
  const troubles = (standing.troubles.length > 0 ? standing.troubles : known).join('; ')
  const output = known.join('; ') || null
  const checks = { 'kafka:intake': { status: output === null ? 'pass' : 'warn', output } } as const
  if (standing.state === 'stopped') return { state: 'fail', note: troubles || 'intake has stopped', checks }
  return troubles === '' ? { ...WELL, checks } : { state: 'warn', note: troubles, checks }
}
