/**
 * One port serves several APIs, each with its own shape of errors. The path's prefix decides which of them
 * answers what no route answers: an unknown path, a wrong method, a missing token, a failure.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { plainStatus, sayWhen, sendEnvelopeError } from '../api/envelope.ts'
import type { Clock } from '../core/clock.ts'
import { type BartlebyError, ERRORS } from '../core/errors.ts'
import { type Encoded, encodeMessage, type Format, negotiate } from '../queues/wire/codec.ts'
import { ReplySchema } from '../queues/wire/queues_pb.ts'
import { INTERNAL } from '../sources/kafka/routes/reply.ts'

/** `server` is what belongs to no API: health, documents, files of the console. What is left is the webhook API's. */
export type Facade = 'queues' | 'envelope' | 'kafka' | 'server' | 'webhooks'

/** Where the files of the console are. */
export const ASSETS = '/assets/'

/** The path of a request, without its query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

/** `/health` belongs to the queue contract. So does `/metrics`, but a wrong method there is the webhook API's to answer. */
export function facadeOf(path: string): Facade {
  if (path.startsWith('/v1/') || path === '/health') return 'queues'
  if (path.startsWith('/api/')) return 'envelope'
  if (path.startsWith('/kafka/') || path === '/kafka') return 'kafka'
  if (path === '/docs' || path === '/openapi.json') return 'server'
  if (path.startsWith('/health/') || path.startsWith(ASSETS)) return 'server'
  return 'webhooks'
}

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

/** Every code an error of the queue API can have, with its text. */
export const queueErrorCodes = (): readonly (readonly [number, string])[] =>
  Object.entries(CODE_TEXTS)
    .map(([code, text]) => [Number(code), text] as const)
    .filter(([code]) => code !== 200)

const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  json: 'application/json',
  protobuf: 'application/protobuf',
}

/**
 * Sends a reply of the queue API. Set in one place, the status and the code in the body cannot differ.
 * It is written past Fastify, which would add a charset to the content type of text; text leaves in one
 * piece with its headers, where bytes would take a second buffer.
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

/** An error of the queue API as a body. */
export function queueErrorBody(error: BartlebyError, format: Format): Encoded {
  const code = ERRORS[error.code].queues
  const codeText = CODE_TEXTS[code] ?? ''
  return encodeMessage(ReplySchema, { code, codeText, message: error.message.toWellFormed() }, format)
}

/** The answer to what is no HTTP request: without a path it belongs to no facade, so it has the strictest shape. */
export const malformedRequestBody = (reason: string): Encoded =>
  encodeMessage(
    ReplySchema,
    { code: 400, codeText: 'Bad Request', message: `malformed HTTP request; ${reason}` },
    'json',
  )

/** Answers with an error of the queue API. Nobody can read it in a format we do not speak: then it is JSON. */
export function sendQueueError(request: FastifyRequest, reply: FastifyReply, error: BartlebyError): void {
  const format = negotiate(request.headers.accept).format ?? 'json'
  sendQueueReply(reply, ERRORS[error.code].queues, format, queueErrorBody(error, format))
}

/** Answers with an error, in the shape of the facade that the path belongs to. */
export function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  error: BartlebyError,
  clock: Clock,
): void {
  reply.header('x-content-type-options', 'nosniff')
  sayWhen(reply, error)
  switch (facadeOf(pathOf(request.url))) {
    case 'queues':
      sendQueueError(request, reply, error)
      return
    case 'envelope':
      sendEnvelopeError(request, reply, clock, error)
      return
    case 'kafka':
      if (request.id !== '') reply.header('x-request-id', request.id)
      reply
        .code(plainStatus(error.code))
        .header('content-type', 'application/json')
        .send(error.code === 'internal' ? INTERNAL.body : JSON.stringify({ detail: kafkaDetail(error) }))
      return
    case 'webhooks':
      reply.header('x-request-id', request.id)
      sendText(reply, error)
      return
    case 'server':
      sendText(reply, error)
      return
  }
}

const kafkaDetail = ({ code, message }: BartlebyError): string =>
  code === 'path_unknown' ? 'Not Found' : message.toWellFormed()

function sendText(reply: FastifyReply, error: BartlebyError): void {
  reply
    .code(plainStatus(error.code))
    .header('content-type', 'text/plain; charset=utf-8')
    .send(error.code === 'path_unknown' ? '404 page not found\n' : error.message)
}
