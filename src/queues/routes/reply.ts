/** Replies of the queue API: status, code and text, and its facade. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Facade, pathOf } from '../../api/facade.ts'
import { type BartlebyError, ERRORS, failure } from '../../core/errors.ts'
import { type Encoded, encodeMessage, type Format, negotiate } from '../wire/codec.ts'
import { ReplySchema } from '../wire/queues_pb.ts'

const CODE_TEXTS: Readonly<Record<number, string>> = {
  200: 'OK',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  408: 'Request Timeout',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  453: 'Request Failed',
  454: 'Retry Request',
  455: 'Client Content Error',
  500: 'Internal Service Error',
  501: 'Not Implemented',
}

export const queueErrorCodes = (): readonly (readonly [number, string])[] =>
  Object.entries(CODE_TEXTS)
    .map(([code, text]) => [Number(code), text] as const)
    .filter(([code]) => code !== 200)

const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  json: 'application/json',
  protobuf: 'application/protobuf',
}

/**
 * Sends a reply; set together, status and code cannot differ. Written past Fastify, which would add a charset to the content type; text
 * leaves in one piece with its headers, where bytes would take a second buffer.
 */
export function sendQueueReply(reply: FastifyReply, code: number, format: Format, body: Encoded): void {
  reply.hijack()
  reply.raw.writeHead(code, CODE_TEXTS[code], {
    'Content-Type': CONTENT_TYPES[format],
    'X-Content-Type-Options': 'nosniff',
    'Content-Length': typeof body === 'string' ? Buffer.byteLength(body) : body.length,
  })
  reply.raw.end(body)
}

export function queueErrorBody(error: BartlebyError, format: Format): Encoded {
  const code = ERRORS[error.code].queues
  const codeText = CODE_TEXTS[code] ?? ''
  return encodeMessage(ReplySchema, { code, codeText, message: error.message.toWellFormed() }, format)
}

/** Sends an error, as JSON where the accepted format is unknown. */
export function sendQueueError(request: FastifyRequest, reply: FastifyReply, error: BartlebyError): void {
  const format = negotiate(request.headers.accept).format ?? 'json'
  sendQueueReply(reply, ERRORS[error.code].queues, format, queueErrorBody(error, format))
}

/** `/health` belongs to the contract of this API; everything else in it is POST. */
export const queueFacade: Facade = {
  about:
    'Below /v1/: durable queues with leases, attempts, schedules and dead queues. Calls are POST with JSON or binary ' +
    'protobuf; the content type says what is sent, Accept what is answered.',
  owns: (path) => path.startsWith('/v1/') || path === '/health',
  admit(request, gate) {
    const { method, url } = request
    if (method !== 'POST' && !(method === 'GET' && pathOf(url) === '/health')) {
      throw failure('method_not_allowed', { method })
    }
    gate.ask(request)
  },
  sendError: sendQueueError,
  malformedBody: (reason) => {
    const message = `malformed HTTP request; ${reason}`
    return String(encodeMessage(ReplySchema, { code: 400, codeText: 'Bad Request', message }, 'json'))
  },
}
