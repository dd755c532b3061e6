/** `GET /api/engines`. */
import type { FastifyInstance } from 'fastify'
import { type ApiCall, type ApiScope, serveApi } from '../../api/calls.ts'
import type { ServedApi, ServerScope } from '../../api/source-http.ts'
import { viewOf } from '../../api/view.ts'
import type { LetterNumbers } from '../../letters/numbers/letter-numbers.ts'
import type { EngineDirectory, KnownEngine } from '../../queues/engines/engine-directory.ts'
import { ENGINES_VIEW, OPERATION_VIEW } from './shapes.ts'
import { type EngineRuns, type OperationStatistics, withoutRuns } from './statistics.ts'

interface EngineParts {
  readonly engines: EngineDirectory
  readonly statistics: { read(): Promise<EngineRuns> }
  readonly numbers: Pick<LetterNumbers, 'pendingBy'>
}

export const engineApi = (parts: EngineParts, server: ServerScope): ServedApi => ({
  routes: async (app) => void (await app.register(engineRoutes, { ...parts, ...server })),
})

export async function engineRoutes(app: FastifyInstance, options: EngineParts & ApiScope): Promise<void> {
  serveApi(app, options, [listCall(options)])
}

const listCall = ({ engines, statistics, numbers }: EngineParts): ApiCall => ({
  method: 'GET',
  path: '/api/engines',
  role: 'viewer',
  operationId: 'engines.list',
  tag: 'engines',
  summary: 'Engines with their pending letters, and how their operations did lately',
  data: ENGINES_VIEW,
  answer: async () => {
    const [lately, pending] = await Promise.all([statistics.read(), numbers.pendingBy('engine')])
    const items = (await allOf(engines, lately, pending)).map(({ name, queue, operations }) => ({
      name,
      queue,
      pending: pending.get(name) ?? 0,
      operations: operationsOf(engines.operationsOf(name), operations, lately.engines.get(name)).map(
        operationOnWire,
      ),
    }))
    return { status: 200, data: { items, basis: lately.basis } }
  },
})

/** Known engines, and all others with letters or runs: the numbers must add up. */
async function allOf(
  engines: EngineDirectory,
  lately: EngineRuns,
  pending: ReadonlyMap<string, number>,
): Promise<readonly KnownEngine[]> {
  const known = await engines.known()
  const names = new Set(known.map(({ name }) => name))
  const others = [...lately.engines.keys(), ...pending.keys()].filter((name) => !names.has(name))
  return [...known, ...[...new Set(others)].sort().map((name) => ({ name, queue: null, operations: [] }))]
}

/** The engine's own operations, run or not; then acts on its letters. */
function operationsOf(
  known: readonly string[],
  own: readonly string[],
  ran: ReadonlyMap<string, OperationStatistics> = new Map(),
): OperationStatistics[] {
  return [...new Set([...known, ...ran.keys()])].flatMap((operation) => {
    const found = ran.get(operation)
    if (found !== undefined) return found
    return own.includes(operation) ? withoutRuns(operation) : []
  })
}

const operationOnWire = viewOf(OPERATION_VIEW)
