/**
 * The queue API on HTTP. Everything about a request happens in the order of the contract: method and
 * `Authorization` header (the server's gate), path, body up to its limit, content type, operation, `Accept`.
 * Calls run in Fastify's first hook: its own body parsing would judge the content type before the body.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BartlebyError, failure } from '../core/errors.ts'
import { ClientGone, readBody } from '../http/body.ts'
import { sendQueueError, sendQueueReply } from '../http/facades.ts'
import { negotiate } from '../http/negotiate.ts'
import { messageSchema } from '../http/proto-schema.ts'
import type { Queues } from './queue.ts'
import type { CallScope, QueueCall, TimeControl, WriteReply } from './routes/call.ts'
import { callSchema } from './routes/describe.ts'
import { itemCalls } from './routes/items.ts'
import { queueCalls } from './routes/queues.ts'
import { storageCalls } from './routes/storage.ts'
import { testControlCalls } from './routes/test-control.ts'
import { file_queues } from './wire/queues_pb.ts'

export interface QueueRoutesOptions {
  readonly queues: Queues
  readonly maxProduceBytes: number
  /** Given on a server that was started for tests; the test control calls exist only then. */
  readonly time: TimeControl | undefined
  /** True from the moment the server has begun to shut down. */
  readonly stopping: () => boolean
}

/** Adds the calls of the queue API to a server. */
export async function queueRoutes(app: FastifyInstance, options: QueueRoutesOptions): Promise<void> {
  // The schemas describe the calls in OpenAPI; the codecs are what checks a body.
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => (payload) => JSON.stringify(payload))
  for (const message of file_queues.messages) app.addSchema(messageSchema(message))

  const served = [...itemCalls, ...queueCalls, ...storageCalls]
  for (const call of options.time === undefined ? served : [...served, ...testControlCalls]) {
    const limit = call.limit === 'produce' ? options.maxProduceBytes : call.limit
    app.route({
      method: 'POST',
      url: call.path,
      config: { role: call.role },
      schema: callSchema(call),
      onRequest: (request, reply) => void perform(call, limit, options, request, reply),
      handler: unreachable,
    })
  }
}

async function perform(
  call: QueueCall,
  limit: number,
  options: QueueRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const connection = watch(request)
  try {
    const body = await readBody(request.raw, limit)
    const content = negotiate(request.headers['content-type'])
    if (content.format === undefined) throw failure('content_type_unknown', { given: content.given })
    if (options.stopping()) throw failure('service_stopping')
    const scope: CallScope = {
      queues: options.queues,
      time: options.time,
      signal: connection.signal,
    }
    answer(request, reply, await call.answer(body, content.format, scope))
  } catch (error) {
    if (connection.closed() || error instanceof ClientGone) reply.hijack()
    else refuse(request, reply, error)
  } finally {
    connection.release()
  }
}

function answer(request: FastifyRequest, reply: FastifyReply, write: WriteReply): void {
  const accepted = negotiate(request.headers.accept)
  if (accepted.format === undefined) throw failure('accept_unknown', { given: accepted.given })
  sendQueueReply(reply, 200, accepted.format, write(accepted.format))
}

function refuse(request: FastifyRequest, reply: FastifyReply, thrown: unknown): void {
  if (!(thrown instanceof BartlebyError)) request.log.error({ err: thrown, path: request.url }, 'call failed')
  const error = thrown instanceof BartlebyError ? thrown : failure('internal')
  // Why a write failed is for the log; the client can only try again.
  if (error.cause !== undefined && error.retryable) request.log.warn({ err: error }, 'call refused')
  sendQueueError(request, reply, error)
}

/** The client's connection, as far as a call needs to know about it. */
interface Connection {
  closed(): boolean
  signal(): AbortSignal
  release(): void
}

/** Only calls that wait ask for the signal; the others do not pay for it. */
function watch(request: FastifyRequest): Connection {
  const { socket } = request.raw
  let controller: AbortController | undefined
  const abort = () => controller?.abort()
  return {
    closed: () => socket.destroyed,
    signal: () => {
      controller = new AbortController()
      if (socket.destroyed) abort()
      else socket.once('close', abort)
      return controller.signal
    },
    release: () => {
      if (controller !== undefined) socket.off('close', abort)
    },
  }
}

function unreachable(): never {
  throw new Error('the call was answered by its first hook')
}
