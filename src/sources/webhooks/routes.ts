/**
 * The webhook API on HTTP. Calls run in Fastify's first hook: its own parsing would judge a body before its sender. What no call takes is
 * answered here too.
 */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ClientGone } from '../../api/body.ts'
import { schemasOnlyDescribe, unreachable } from '../../api/calls.ts'
import { type Answer, methodsAt, paramsOf, type RequestLimits, sendAnswer } from '../../api/exact-answer.ts'
import type { Clock } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import { Refused } from './refusal.ts'
import { percentDecoded } from './registry/texts.ts'
import { broadcastCall } from './routes/broadcast.ts'
import { type CalledWebhooks, type CallScope, roleOf, type WebhookCall } from './routes/call.ts'
import { deadJobCalls } from './routes/dead-jobs.ts'
import { describeCall } from './routes/describe.ts'
import { jobCalls } from './routes/jobs.ts'
import { messageCalls } from './routes/messages.ts'
import { registryCalls } from './routes/registry.ts'
import {
  INTERNAL,
  methodNotAllowed,
  methodsOf,
  moved,
  refused,
  STOPPING,
  UNKNOWN_PATH,
} from './routes/reply.ts'
import { WebhookRequest } from './routes/request.ts'
import { DLQ_STATUS, statusCalls } from './routes/status.ts'

interface WebhookRoutesOptions extends RequestLimits {
  readonly webhooks: CalledWebhooks
  readonly clock: Clock
  readonly writeTimeoutSeconds: number
  readonly stopping: () => boolean
}

export const WEBHOOK_CALLS: readonly WebhookCall[] = [
  ...registryCalls,
  broadcastCall,
  ...messageCalls,
  ...jobCalls,
  ...deadJobCalls,
  ...statusCalls,
]

/** Metrics are the server's; their path is known here too. */
const knownAt = methodsAt([...WEBHOOK_CALLS, { method: 'GET', path: '/metrics' }])

/** Undefined where no call is. */
function allowedAt(path: string): string | undefined {
  const methods = knownAt(path)
  return methods.length === 0 ? undefined : [...methods, 'OPTIONS'].sort().join(', ')
}

/** At the path, or at it without its last slash, with any method. */
export const isWebhookPath = (path: string): boolean =>
  [path, path.replace(/\/$/, '')].some((each) => allowedAt(each) !== undefined)

/** A wrong method is told the right ones, a trailing slash is redirected, everything else is unknown. */
export function answerUnrouted(request: FastifyRequest, reply: FastifyReply): void {
  sendAnswer(request, reply, answerWithoutCall(request.method, request.url))
}

function answerWithoutCall(method: string, url: string): Answer {
  const end = url.search(/[?#]/)
  const path = end < 0 ? url : url.slice(0, end)
  // Bytes that are no text name nothing.
  if (path.includes('%') && percentDecoded(path) === path) return UNKNOWN_PATH
  const allow = allowedAt(path)
  if (allow !== undefined) return method === 'OPTIONS' ? methodsOf(allow) : methodNotAllowed(allow)
  if (path.endsWith('/') && allowedAt(path.slice(0, -1)) !== undefined) {
    return moved(method, `${path.slice(0, -1)}${url.slice(path.length)}`)
  }
  return UNKNOWN_PATH
}

export async function webhookRoutes(app: FastifyInstance, options: WebhookRoutesOptions): Promise<void> {
  schemasOnlyDescribe(app)
  app.addSchema(DLQ_STATUS)
  const scope: CallScope = { ...options.webhooks, clock: options.clock }
  for (const call of WEBHOOK_CALLS) {
    const role = roleOf(call.access, scope.settings)
    app.route({
      method: call.method,
      url: call.path,
      config: { role },
      schema: describeCall(call, role),
      onRequest: (request, reply) => void perform(call, scope, options, request, reply),
      handler: unreachable,
    })
  }
}

async function perform(
  call: WebhookCall,
  scope: CallScope,
  options: WebhookRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // An empty id is none.
  if (Object.values(paramsOf(request)).includes('')) {
    answerUnrouted(request, reply)
    return
  }
  const { writeTimeoutSeconds } = options
  try {
    const answer = options.stopping()
      ? STOPPING
      : await call.answer(new WebhookRequest(request, options), scope)
    sendAnswer(request, reply, answer, writeTimeoutSeconds)
  } catch (thrown) {
    if (thrown instanceof ClientGone || request.raw.socket.destroyed) reply.hijack()
    else if (thrown instanceof Refused) sendAnswer(request, reply, refused(thrown), writeTimeoutSeconds)
    // The server may stop during a long call, such as a purge.
    else if (thrown instanceof BartlebyError && thrown.code === 'service_stopping')
      sendAnswer(request, reply, STOPPING, writeTimeoutSeconds)
    else {
      // Inner errors are for the log alone.
      request.log.error(
        { err: thrown, method: request.method, path: call.path, requestId: request.id },
        'call failed',
      )
      sendAnswer(request, reply, INTERNAL, writeTimeoutSeconds)
    }
  }
}
