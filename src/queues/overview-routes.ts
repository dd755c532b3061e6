/** `GET /api/queues`: queues for operators. */
import type { FastifyInstance } from 'fastify'
import { type ApiCall, type ApiScope, serveApi } from '../api/calls.ts'
import { limitOf } from '../api/query.ts'
import { PAGE_QUERY, pageOf } from '../api/shapes.ts'
import { viewOf } from '../api/view.ts'
import { formatGoDuration } from '../core/duration.ts'
import { decodePageToken, encodePageToken, malformed } from '../core/page-token.ts'
import type { LetterNumbers } from '../letters/numbers/letter-numbers.ts'
import type { QueueOverview } from './queue.ts'
import type { Queues } from './queues.ts'
import { QUEUE_VIEW } from './shapes.ts'

type QueueOverviewOptions = ApiScope & {
  readonly queues: Pick<Queues, 'overview'>
  readonly numbers: Pick<LetterNumbers, 'pendingBy'>
}

export async function queueOverviewRoutes(
  app: FastifyInstance,
  options: QueueOverviewOptions,
): Promise<void> {
  serveApi(app, options, [listCall(options)])
}

const FILTERS = { list: 'queues' }

const listCall = ({ queues, numbers }: QueueOverviewOptions): ApiCall => ({
  method: 'GET',
  path: '/api/queues',
  role: 'viewer',
  operationId: 'queues.overview',
  tag: 'queues',
  summary: 'Queues by name, with their depths, the letters that came from them and their settings',
  query: PAGE_QUERY,
  data: pageOf(QUEUE_VIEW),
  answer: async ({ query }) => {
    const token = query.get('continuationToken')
    const limit = limitOf(query)
    const [found, letters] = await Promise.all([
      queues.overview({ pivot: token === undefined ? '' : nameIn(token), limit: limit + 1 }),
      numbers.pendingBy('originalQueue'),
    ])
    // The first queue of the next page; it may be gone by then.
    const next = found[limit]
    const data = {
      items: found.slice(0, limit).map((queue) => queueOnWire(queue, letters.get(queue.queueName) ?? 0)),
      continuationToken: next === undefined ? null : encodePageToken(FILTERS, { name: next.queueName }),
    }
    return { status: 200, data }
  },
})

function nameIn(token: string): string {
  const { name } = decodePageToken(FILTERS, token)
  if (name === undefined || name.includes('~')) throw malformed()
  return name
}

const viewed = viewOf(QUEUE_VIEW)

const queueOnWire = (queue: QueueOverview, letters: number) =>
  viewed({
    ...queue,
    name: queue.queueName,
    deadQueue: queue.deadQueue || null,
    letters,
    leaseTimeout: formatGoDuration(queue.leaseTimeoutNs),
    deadTimeout: queue.expireTimeoutNs === 0n ? null : formatGoDuration(queue.expireTimeoutNs),
  })
