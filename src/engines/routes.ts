/** Engines on the office API, for those who look after them: `GET /api/engines`. */
import type { FastifyInstance } from 'fastify'
import { formatMicros } from '../core/timestamp.ts'
import { type ApiCall, type ApiScope, serveApi } from '../http/api-routes.ts'
import { describeCall, INTEGER, objectOf, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../http/describe-api.ts'
import type { EngineDirectory } from './definitions.ts'
import { type EngineRuns, type OperationStatistics, withoutRuns } from './statistics.ts'

export interface EngineRoutesOptions extends ApiScope {
  readonly engines: EngineDirectory
  readonly statistics: { read(): Promise<EngineRuns> }
  /** Pending letters by engine. */
  readonly pendingLetters: () => Promise<ReadonlyMap<string, number>>
}

const MILLISECONDS = { type: ['integer', 'null'], description: 'null without runs' }

const ENGINE = objectOf({
  name: TEXT,
  queue: { ...TEXT_OR_NULL, description: 'null: there is nothing to lease' },
  pending: { ...INTEGER, description: 'Its pending letters' },
  operations: {
    type: 'array',
    description: 'Its own operations, and whatever else history has of it lately',
    items: objectOf({
      operation: TEXT,
      runs: INTEGER,
      succeeded: INTEGER,
      failed: INTEGER,
      successRate: { type: ['number', 'null'], minimum: 0, maximum: 1 },
      p50Ms: MILLISECONDS,
      p95Ms: MILLISECONDS,
      p99Ms: MILLISECONDS,
      lastAtUtc: TIME_OR_NULL,
    }),
  },
})

/** Adds the call to a server. */
export async function engineRoutes(app: FastifyInstance, options: EngineRoutesOptions): Promise<void> {
  serveApi(app, options, [listCall(options)])
}

const listCall = ({ engines, statistics, pendingLetters }: EngineRoutesOptions): ApiCall => ({
  method: 'GET',
  path: '/api/engines',
  role: 'viewer',
  schema: describeCall({
    operationId: 'engines.list',
    tag: 'engines',
    summary: 'Engines with their pending letters, and how their operations did lately',
    role: 'viewer',
    data: objectOf({ items: { type: 'array', items: ENGINE }, basis: TEXT }),
  }),
  answer: async () => {
    const [lately, pending] = await Promise.all([statistics.read(), pendingLetters()])
    const items = namesOf(engines, lately, pending).map((name) => ({
      name,
      queue: engines.has(name) ? engines.definitionOf(name).queue : null,
      pending: pending.get(name) ?? 0,
      operations: operationsOf(engines, name, lately).map(operationOnWire),
    }))
    return { status: 200, data: { items, basis: lately.basis } }
  },
})

/** All that are defined; then those that are not any more, but have letters or runs: the numbers must add up. */
function namesOf(
  engines: EngineDirectory,
  lately: EngineRuns,
  pending: ReadonlyMap<string, number>,
): readonly string[] {
  const others = [...lately.engines.keys(), ...pending.keys()].filter((name) => !engines.has(name))
  return [...engines.names(), ...[...new Set(others)].sort()]
}

/** The engine's own operations, also those that have not run; then acts on its letters, in their order, if there were any. */
function operationsOf(engines: EngineDirectory, name: string, lately: EngineRuns): OperationStatistics[] {
  const ran = lately.engines.get(name)
  const own = engines.has(name) ? engines.definitionOf(name).operations : []
  const known = engines.has(name) ? engines.operationsOf(name) : []
  return [...new Set([...known, ...(ran?.keys() ?? [])])].flatMap((operation) => {
    const found = ran?.get(operation)
    if (found !== undefined) return found
    return own.includes(operation) ? withoutRuns(operation) : []
  })
}

const operationOnWire = ({ lastAt, ...statistics }: OperationStatistics) => ({
  ...statistics,
  lastAtUtc: lastAt === null ? null : formatMicros(lastAt),
})
