/**
 * One call of the queue API: path, role, messages, what it asks of the queues, and how it is answered. The table of calls is the only place
 * that knows the paths; routes and OpenAPI are made from it.
 */
import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ClientGone, readBody } from '../../api/body.ts'
import type { TimeControl } from '../../api/source-http.ts'
import { BartlebyError, failure } from '../../core/errors.ts'
import type { Role } from '../../core/roles.ts'
import type { Queues } from '../queues.ts'
import { decodeMessage, type Encoded, encodeMessage, type Format, negotiate } from '../wire/codec.ts'
import { ReplySchema } from '../wire/queues_pb.ts'
import { sendQueueError, sendQueueReply } from './reply.ts'

export interface CallScope {
  readonly queues: Queues
  /** Only on a server started for tests. */
  readonly time: TimeControl | undefined
  /** Aborted when the client disconnects; only a call that asks has its connection watched. */
  signal(): AbortSignal
}

type WriteReply = (format: Format) => Encoded

export interface QueueCall {
  readonly path: string
  readonly summary: string
  readonly role: Role
  /** Largest body in bytes; `produce` is configurable. */
  readonly limit: number | 'produce'
  readonly request: DescMessage
  readonly reply: DescMessage
  /** Decodes the body, asks the queues, and gives a writer of the answer. */
  answer(body: Buffer, format: Format, scope: CallScope): Promise<WriteReply>
}

type CallFacts = Pick<QueueCall, 'path' | 'summary' | 'role'> & { readonly limit?: QueueCall['limit'] }

const USUAL_LIMIT = 256_000

const DONE: Readonly<Record<Format, Encoded>> = {
  json: encodeMessage(ReplySchema, { code: 200 }, 'json'),
  protobuf: encodeMessage(ReplySchema, { code: 200 }, 'protobuf'),
}

export const written: WriteReply = (format) => DONE[format]

/** A call answered with a plain OK. */
export function command<I extends DescMessage>(
  facts: CallFacts,
  request: I,
  run: (message: MessageShape<I>, scope: CallScope) => Promise<unknown>,
): QueueCall {
  return {
    limit: USUAL_LIMIT,
    ...facts,
    request,
    reply: ReplySchema,
    async answer(body, format, scope) {
      await run(decodeMessage(request, body, format), scope)
      return written
    },
  }
}

/** A call answered with a message of its own. */
export function question<I extends DescMessage, O extends DescMessage>(
  facts: CallFacts,
  request: I,
  reply: O,
  run: (message: MessageShape<I>, scope: CallScope) => Promise<MessageInitShape<O>>,
): QueueCall {
  return {
    limit: USUAL_LIMIT,
    ...facts,
    request,
    reply,
    async answer(body, format, scope) {
      const fields = await run(decodeMessage(request, body, format), scope)
      return (replyFormat) => encodeMessage(reply, fields, replyFormat)
    },
  }
}

export interface Served {
  readonly queues: Queues
  /** Given on a server started for tests; test control calls exist only then. */
  readonly time: TimeControl | undefined
  /** True once the server has begun to shut down. */
  readonly stopping: () => boolean
}

export const answering =
  (call: QueueCall, limit: number, served: Served) =>
  (request: FastifyRequest, reply: FastifyReply): void =>
    void perform(call, limit, served, request, reply)

/** In the contract's order: body up to its limit, content type, operation, `Accept`. */
async function perform(
  call: QueueCall,
  limit: number,
  served: Served,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const connection = watch(request)
  try {
    const body = await readBody(request.raw, limit)
    const content = negotiate(request.headers['content-type'])
    if (content.format === undefined) throw failure('content_type_unknown', { given: content.given })
    if (served.stopping()) throw failure('service_stopping')
    const { queues, time } = served
    const { signal } = connection
    answer(request, reply, await call.answer(body, content.format, { queues, time, signal }))
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
  // Why a write failed is for the log; the client can only retry.
  if (error.cause !== undefined && error.retryable) request.log.warn({ err: error }, 'call refused')
  sendQueueError(request, reply, error)
}

/** The client's connection; only calls that wait pay for the signal. */
function watch(request: FastifyRequest) {
  const { socket } = request.raw
  let controller: AbortController | undefined
  const abort = () => controller?.abort()
  return {
    closed: () => socket.destroyed,
    signal: (): AbortSignal => {
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
