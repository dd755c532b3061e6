/**
 * One port serves several APIs, each with its own shape of errors. A facade is how one of them looks where none of its routes
 * answers: an unknown path, a wrong method, a missing token, a failure.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { BartlebyError } from '../core/errors.ts'
import type { Caller } from './auth.ts'
import { plainStatus } from './envelope.ts'

export interface Facade {
  /** Where it is and how it speaks, for the document of all APIs. */
  readonly about?: string
  /** Whether a path, without its query, is of this API. Left out: it has what no other one has. */
  owns?(path: string): boolean
  /** The id of a request, on its answer and in the log. Left out: it has none. */
  requestId?(request: IncomingMessage): string
  /** Looks at a request before the gate does, and answers it or goes on. */
  onRequest?(request: FastifyRequest, reply: FastifyReply, done: () => void): void
  /** Lets a request pass, or throws why it does not. Left out: as the gate asks everybody. */
  admit?(request: FastifyRequest, gate: Gate): void
  /** Whether a request that no caller is known of shows a token which its call looks at. */
  isProvedLater?(request: FastifyRequest): boolean
  /** Whether a browser that opens the path gets the console. Left out: it does not. */
  hasPage?(path: string): boolean
  sendError(request: FastifyRequest, reply: FastifyReply, error: BartlebyError): void
  /** Answers what no route takes. Left out: with the error that the path is unknown. */
  answerUnknown?(request: FastifyRequest, reply: FastifyReply): void
  /** The JSON that answers what is no HTTP: it has no path, so that the first API which has an answer gives it. */
  malformedBody?(reason: string): string
  onResponse?(request: FastifyRequest, reply: FastifyReply): void
}

/** What the gate of a server does for an API that lets requests pass in a way of its own. */
export interface Gate {
  /** Whether tokens of the server are configured. */
  readonly hasTokens: boolean
  /** As everywhere: the form of the header, the page, the token or the session, the role, the reach. */
  ask(request: FastifyRequest): void
  /** Throws at a request from a page of another site. */
  refuseForeign(request: FastifyRequest): void
  /** Whether nobody is asked: the route is open, or it is the console. */
  isOpen(request: FastifyRequest): boolean
  /** Who has signed in, in a request without a token. */
  signedIn(request: FastifyRequest): Caller | null
}

/** The path of a request, without its query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

/** Answers with an error as plain text. */
export function sendPlainError(reply: FastifyReply, { code, message }: BartlebyError): void {
  reply
    .code(plainStatus(code))
    .header('content-type', 'text/plain; charset=utf-8')
    .send(code === 'path_unknown' ? '404 page not found\n' : message)
}
