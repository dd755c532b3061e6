/** The calls for those who look after an office: its queues and engines, its settings, and whether its store keeps its promises. */
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/index.ts'
import { engineRoutes } from '../engines/routes.ts'
import type { ApiScope } from '../http/api-routes.ts'
import type { Office } from '../office.ts'
import { queueOverviewRoutes } from '../queues/overview-routes.ts'
import { pendingLetters } from './pending-letters.ts'
import { settingsRoutes } from './settings-routes.ts'
import { verifyRoutes } from './verify-routes.ts'

export interface OperatorRoutesOptions extends ApiScope {
  readonly office: Office
  readonly config: Config
}

/** Adds the calls to a server. */
export async function operatorRoutes(
  app: FastifyInstance,
  { office, config, ...scope }: OperatorRoutesOptions,
): Promise<void> {
  const { ledger } = office.letters
  await app.register(queueOverviewRoutes, {
    ...scope,
    queues: office.queues,
    pendingLetters: () => pendingLetters(ledger, 'originalQueue'),
  })
  await app.register(engineRoutes, {
    ...scope,
    engines: office.engines,
    statistics: office.engineStatistics,
    pendingLetters: () => pendingLetters(ledger, 'engine'),
  })
  await app.register(settingsRoutes, {
    ...scope,
    startedAt: office.clock.now(),
    store: config.store,
    retentionDays: config.engines.tables.retentionDays,
    environment: { name: config.console.environment, colour: config.console.colour },
    tokens: config.auth.tokens,
  })
  await app.register(verifyRoutes, { ...scope, verifyRun: office.verifyRun })
}
