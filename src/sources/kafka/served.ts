/** What a server asks of Kafka: APIs, tokens, metrics and health. `kafka` is null where it is not enabled. */
import type { OwnTokens } from '../../api/auth.ts'
import { type ServedSource, type SourceHealth, WELL } from '../../api/source-http.ts'
import { failure } from '../../core/errors.ts'
import { KAFKA } from './event.ts'
import { type IntakeStatus, publicTroubles } from './intake/intake-status.ts'
import type { ServedKafka } from './routes/call.ts'

export const servedKafka = (kafka: ServedKafka | null): ServedSource => ({
  http: {
    isPresent: () => kafka !== null,
    ...(kafka !== null && { ownTokens: ownTokens(kafka.calls.settings.tokenHashes) }),
    serve: async (server) => (await import('./api.ts')).kafkaApi(kafka, server),
  },
  ...(kafka !== null && { metrics: async () => kafka.metrics() }),
  health: async () => kafkaHealth(kafka?.status() ?? null),
  isDegraded: () => kafka !== null && publicTroubles(kafka.status()).length > 0,
})

/** History knows them by their number. */
const ownTokens = (hashes: readonly string[]): OwnTokens => ({
  source: KAFKA,
  tokens: hashes.map((sha256, index) => ({ name: `token#${index + 1}`, sha256 })),
  routes: ['/api/kafka/events/'],
  missing: () => failure('kafka_token_missing'),
})

export function kafkaHealth(status: IntakeStatus | null): SourceHealth {
  if (status === null) return { state: 'off', note: 'Kafka is not enabled' }
  const known = publicTroubles(status)
  const troubles = (status.troubles.length > 0 ? status.troubles : known).join('; ')
  const output = known.join('; ') || null
  const checks = { 'kafka:intake': { status: output === null ? 'pass' : 'warn', output } } as const
  if (status.state === 'stopped') return { state: 'fail', note: troubles || 'intake has stopped', checks }
  return troubles === '' ? { ...WELL, checks } : { state: 'warn', note: troubles, checks }
}
