/** APIs whose answers clients know to the byte. Written past Fastify, which would add a charset; bodies are bounded in bytes and time. */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { readBody } from './body.ts'

export interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export const answer = (status: number, body = '', headers: Answer['headers'] = {}): Answer => ({
  ...{ status, body, headers },
})

export interface RequestLimits {
  readonly maxBodyBytes: number
  readonly readTimeoutSeconds: number
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Length of the answer's body, for the log. */
    answerBytes: number
  }
}

/** Sends an answer with the API's own headers (`always`); a client that does not take it in time is cut off. */
export function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, body, headers }: Answer,
  writeTimeoutSeconds?: number,
  always: Answer['headers'] = {},
): void {
  const length = Buffer.byteLength(body)
  request.answerBytes = length
  reply.hijack()
  reply.raw.writeHead(status, {
    ...headers,
    'X-Request-Id': request.id,
    ...always,
    ...(status === 204 ? {} : { 'Content-Length': length }),
  })
  reply.raw.end(body)
  const { socket } = request.raw
  // Nearly always the network took all of it.
  if (writeTimeoutSeconds === undefined || socket.writableLength === 0) return
  const timer = setTimeout(() => socket.destroy(), writeTimeoutSeconds * 1_000)
  reply.raw.once('close', () => clearTimeout(timer))
}

/** A body bounded in bytes and time; a slower client is cut off. */
export async function readWithin(raw: IncomingMessage, limit: number, seconds: number): Promise<Buffer> {
  const timer = setTimeout(() => raw.destroy(), seconds * 1_000)
  try {
    return await readBody(raw, limit)
  } finally {
    clearTimeout(timer)
  }
}

/** Variable parts of a path, decoded; Fastify gives them as texts. */
export const paramsOf = ({ params }: FastifyRequest) => params as Readonly<Record<string, string>>

/** Methods of calls at a path as it was sent; none where no call is. */
export function methodsAt(calls: readonly { readonly method: string; readonly path: string }[]) {
  const known = calls.map(({ method, path }) => ({ method, segments: path.split('/') }))
  return (path: string): readonly string[] => {
    const sent = path.split('/')
    const fits = (segment: string, at: number) =>
      segment.startsWith(':') ? sent[at] !== '' : sent[at] === segment
    const at = known.filter(({ segments }) => segments.length === sent.length && segments.every(fits))
    return [...new Set(at.map(({ method }) => method))].sort()
  }
}

export function queryOf({ url }: FastifyRequest): URLSearchParams {
  const start = url.indexOf('?')
  return new URLSearchParams(start < 0 ? '' : url.slice(start))
}
