/** `GET /api/events`: counts of the office and its redrives, as they change. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ANYONE } from '../../api/auth.ts'
import { type ApiScope, refuseOtherMethods, unreachable } from '../../api/calls.ts'
import { failuresOf } from '../../api/describe.ts'
import { asFailure, correlationIdOf, sendEnvelopeError } from '../../api/envelope.ts'
import { readQuery } from '../../api/query.ts'
import { failure } from '../../core/errors.ts'
import { type LiveCounts, MOST_LISTENERS, MOST_OF_ONE } from './live-counts.ts'

interface EventRoutesOptions extends ApiScope {
  readonly liveCounts: LiveCounts
}

const PATH = '/api/events'

const DESCRIPTION =
  'Needs the role viewer once tokens are configured. Events: `hello` with the version of the server; `counts` with Pending, Resolved, ' +
  'Expired, captured and unconfirmed, at once and whenever one of them has changed; `redrives` with those that are under way or paused, ' +
  'at once, whenever something of them has changed, and with none when the last has ended; `trouble` with a message while neither can be read. ' +
  'The stream ends with the session that it was asked for with. One caller may have 50 of them (429), all together 200 (503).'

export async function eventRoutes(app: FastifyInstance, options: EventRoutesOptions): Promise<void> {
  app.addHook('preClose', async () => options.liveCounts.stop())
  app.route({
    method: 'GET',
    url: PATH,
    config: { role: 'viewer', isStream: true },
    schema: {
      operationId: 'events.follow',
      tags: ['letters'],
      summary: 'Follow the counts of the office and its redrives, as server-sent events',
      description: DESCRIPTION,
      response: {
        200: {
          description: 'A stream without an end',
          content: { 'text/event-stream': { schema: { type: 'string' } } },
        },
        ...failuresOf({ role: 'viewer' }),
      },
    },
    onRequest: (request, reply) => follow(options, request, reply),
    handler: unreachable,
  })
  refuseOtherMethods(app, options, PATH, ['GET'])
}

function follow(
  { liveCounts, stopping, clock }: EventRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { caller = ANYONE } = request
  const name = caller === ANYONE ? null : caller.name
  try {
    readQuery(request.url, [])
    if (stopping()) throw failure('service_stopping')
    if (name !== null && liveCounts.isFullFor(name))
      throw failure('listeners_of_caller_full', { name, limit: MOST_OF_ONE })
    if (liveCounts.isFull) throw failure('listeners_full', { limit: MOST_LISTENERS })
  } catch (thrown) {
    sendEnvelopeError(request, reply, clock, asFailure(thrown))
    return
  }
  reply.hijack()
  reply.raw.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    // Buffering proxies would hold back every event.
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff',
    'x-correlation-id': correlationIdOf(request),
  })
  liveCounts.add(reply.raw, request.session?.deadline ?? null, name)
}
