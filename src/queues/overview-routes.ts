/** Queues on the office API, for those who look after them: `GET /api/queues`. */
import type { FastifyInstance } from 'fastify'
import { type ApiCall, type ApiScope, serveApi } from '../api/calls.ts'
import { INTEGER, objectOf, PAGE_QUERY, pageOf, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../api/describe.ts'
import { limitOf } from '../api/query.ts'
import { formatGoDuration } from '../core/duration.ts'
import { decodePageToken, encodePageToken, malformed } from '../core/page-token.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { Ledger } from '../letters/numbers/ledger.ts'
import type { QueueOverview, Queues } from './queue.ts'
import { ON_DEATH } from './shapes.ts'

interface QueueOverviewOptions extends ApiScope {
  readonly queues: Pick<Queues, 'overview'>
  readonly ledger: Pick<Ledger, 'pendingBy'>
}

const QUEUE = objectOf({
  name: TEXT,
  deadQueue: TEXT_OR_NULL,
  onDeath: {
    type: 'string',
    enum: [...ON_DEATH],
    description: 'What becomes of an item that dies here while there is no dead queue',
  },
  partitions: INTEGER,
  ready: INTEGER,
  leased: INTEGER,
  scheduled: INTEGER,
  held: { ...INTEGER, description: 'Items that wait for a dead queue that does not exist' },
  dead: { ...INTEGER, description: 'Dead letters that lie in this queue' },
  oldestAtUtc: { ...TIME_OR_NULL, description: 'When the item at its head was created' },
  letters: { ...INTEGER, description: 'Pending letters that came from it' },
  maxAttempts: { ...INTEGER, description: '0 is unlimited' },
  leaseTimeout: TEXT,
  deadTimeout: { ...TEXT_OR_NULL, description: 'How long an item lives; null is for ever' },
})

/** Adds the call to a server. */
export async function queueOverviewRoutes(
  app: FastifyInstance,
  options: QueueOverviewOptions,
): Promise<void> {
  serveApi(app, options, [listCall(options)])
}

const FILTERS = { list: 'queues' }

const listCall = ({ queues, ledger }: QueueOverviewOptions): ApiCall => ({
  method: 'GET',
  path: '/api/queues',
  role: 'viewer',
  operationId: 'queues.overview',
  tag: 'queues',
  summary: 'Queues by name, with their depths, the letters that came from them and their settings',
  query: PAGE_QUERY,
  data: pageOf(QUEUE),
  answer: async ({ query }) => {
    const token = query.get('continuationToken')
    const limit = limitOf(query)
    const [found, letters] = await Promise.all([
      queues.overview({ pivot: token === undefined ? '' : nameIn(token), limit: limit + 1 }),
      ledger.pendingBy('originalQueue'),
    ])
    // The token names the first queue of the next page, so it may be gone by then.
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

/** A queue with the names of the wire. */
const queueOnWire = (queue: QueueOverview, letters: number) => ({
  name: queue.queueName,
  deadQueue: queue.deadQueue === '' ? null : queue.deadQueue,
  onDeath: queue.onDeath,
  partitions: queue.partitions,
  ready: queue.ready,
  leased: queue.leased,
  scheduled: queue.scheduled,
  held: queue.held,
  dead: queue.dead,
  oldestAtUtc: queue.oldestAt === null ? null : formatMicros(queue.oldestAt),
  letters,
  maxAttempts: queue.maxAttempts,
  leaseTimeout: formatGoDuration(queue.leaseTimeoutNs),
  deadTimeout: queue.expireTimeoutNs === 0n ? null : formatGoDuration(queue.expireTimeoutNs),
})
