/**
 * The answers of the webhook API, to the byte: JSON without a charset and with one newline, errors as bare text, and the texts of
 * unknown paths and wrong methods that its clients know. They are written past Fastify, which would add a charset.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { REFUSALS, type Refused } from '../refusal.ts'

export interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** How long the body of the answer is; for the log. */
    answerBytes: number
  }
}

const JSON_HEADERS = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }
const TEXT_HEADERS = { 'Content-Type': 'text/plain; charset=utf-8' }
const PLAIN_HEADERS = { ...TEXT_HEADERS, 'X-Content-Type-Options': 'nosniff' }

/** What was asked for. */
export const json = (value: unknown, headers: Answer['headers'] = {}): Answer => ({
  status: 200,
  body: `${JSON.stringify(value)}\n`,
  headers: { ...JSON_HEADERS, ...headers },
})

/** It exists now, and is found there. */
export const created = (location: string): Answer => ({
  status: 201,
  body: '',
  headers: { Location: location },
})

/** It is done. */
export const ACCEPTED: Answer = { status: 202, body: '', headers: {} }
export const NO_CONTENT: Answer = { status: 204, body: '', headers: {} }

export const UNKNOWN_PATH: Answer = { status: 404, body: '404 page not found\n', headers: PLAIN_HEADERS }

export const STOPPING: Answer = {
  status: 503,
  body: 'service is shutting down',
  headers: { ...TEXT_HEADERS, 'Retry-After': '1' },
}

/** What cannot be told to anybody but the log. */
export const INTERNAL: Answer = {
  status: REFUSALS.internal.status,
  body: REFUSALS.internal.text,
  headers: TEXT_HEADERS,
}

export const refused = ({ status, message }: Refused): Answer => ({
  status,
  body: message,
  headers: TEXT_HEADERS,
})

/** The path is there, but not for this method. */
export const methodNotAllowed = (allow: string): Answer => ({
  status: 405,
  body: 'Method Not Allowed\n',
  headers: { ...PLAIN_HEADERS, Allow: allow },
})

/** The methods of a path, to who asks for them. */
export const methodsOf = (allow: string): Answer => ({ status: 200, body: '', headers: { Allow: allow } })

/** The same without the slash at its end. */
export const moved = (method: string, location: string): Answer => ({
  status: method === 'GET' ? 301 : 307,
  body: '',
  headers: { Location: location },
})

/** Sends an answer; a client that does not take it in time is cut off. */
export function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, body, headers }: Answer,
  writeTimeoutSeconds?: number,
): void {
  const length = Buffer.byteLength(body)
  request.answerBytes = length
  reply.hijack()
  reply.raw.writeHead(status, {
    ...headers,
    'X-Request-Id': request.id,
    ...(status === 204 ? {} : { 'Content-Length': length }),
  })
  reply.raw.end(body)
  const { socket } = request.raw
  // The network took all of it, as nearly always: there is nothing to wait for.
  if (writeTimeoutSeconds === undefined || socket.writableLength === 0) return
  const timer = setTimeout(() => socket.destroy(), writeTimeoutSeconds * 1_000)
  reply.raw.once('close', () => clearTimeout(timer))
}
