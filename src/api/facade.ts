/**
 * One port serves several APIs, each with its own shape of errors. A facade is how an API answers where none of its routes does: an unknown
 * path, a wrong method, a missing token, a failure.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BartlebyError } from '../core/errors.ts'
import type { Caller } from './auth.ts'
import { plainStatus } from './envelope.ts'

export interface Facade {
  /** For the document of all APIs. */
  readonly about?: string
  /** Whether a path, without its query, belongs to this API. Absent: the API takes what no other one has. */
  owns?(path: string): boolean
  /** Request id for the answer and the log. */
  requestId?(request: IncomingMessage): string
  /** Runs before the gate; answers or goes on. */
  onRequest?(request: FastifyRequest, reply: FastifyReply, done: () => void): void
  /** Lets a request pass, or throws why not. Default: the gate asks. */
  admit?(request: FastifyRequest, gate: Gate): void
  /** Whether a request without a known caller shows a token that its call checks. */
  isProvedLater?(request: FastifyRequest): boolean
  /** Whether a browser that opens the path gets the console. Default: no. */
  hasPage?(path: string): boolean
  sendError(request: FastifyRequest, reply: FastifyReply, error: BartlebyError): void
  /** Answers what no route takes. Default: the path is unknown. */
  answerUnknown?(request: FastifyRequest, reply: FastifyReply): void
  /** JSON for what is no HTTP. It has no path, so the first API with an answer gives it. */
  malformedBody?(reason: string): string
  onResponse?(request: FastifyRequest, reply: FastifyReply): void
}

/** The server's gate, for an API that admits requests in its own way. */
export interface Gate {
  readonly hasTokens: boolean
  /** The usual checks: header form, page, token or session, role, reach. */
  ask(request: FastifyRequest): void
  /** Throws for a request from a page of another site. */
  refuseForeign(request: FastifyRequest): void
  /** Whether nobody is asked: the route is open, or it is the console. */
  isOpen(request: FastifyRequest): boolean
  /** Who has signed in, for a request without a token. */
  signedIn(request: FastifyRequest): Caller | null
}

export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

export function sendPlainError(reply: FastifyReply, { code, message }: BartlebyError): void {
  reply
    .code(plainStatus(code))
    .header('content-type', 'text/plain; charset=utf-8')
    .send(code === 'path_unknown' ? '404 page not found\n' : message)
}
