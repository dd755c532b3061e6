/**
 * What every request passes before its route: the method (queue API only), the form of the `Authorization`
 * header, the token, and the role that the route asks for. In this order; the first failure is the answer.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TokenEntry } from '../config/index.ts'
import type { Clock } from '../core/clock.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import { authenticator, type Caller, type Role, requireRole, wellFormed } from './auth.ts'
import { facadeOf, pathOf, sendError } from './facades.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may use the route; `open` is everyone. A path without a route asks only for a known token. */
    readonly role?: Role | 'open'
  }
  interface FastifyRequest {
    /** Whom the request comes from; undefined on open routes, which ask nobody. */
    caller?: Caller
  }
}

/**
 * Browsers name the page that a request comes from. A page of another site must not use a server that trusts
 * everybody on this machine.
 */
function isForeign(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== host
}

const QUEUE_GETS: ReadonlySet<string> = new Set(['/health', '/metrics'])

/** The hook that lets requests pass or answers them with what is wrong. */
export function gate(tokens: readonly TokenEntry[], clock: Clock) {
  const authenticate = authenticator(tokens)

  const pass = (request: FastifyRequest): void => {
    const path = pathOf(request.url)
    const { method } = request
    if (facadeOf(path) === 'queues' && method !== 'POST' && !(method === 'GET' && QUEUE_GETS.has(path))) {
      throw failure('method_not_allowed', { method })
    }
    const { authorization } = request.headers
    if (!wellFormed(authorization)) throw failure('authorization_malformed')
    if (isForeign(request.headers.origin, request.headers.host)) throw failure('origin_foreign')
    const { role } = request.routeOptions.config
    if (role === 'open') return
    const caller = authenticate(authorization)
    if (role !== undefined) requireRole(caller, role)
    request.caller = caller
  }

  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    try {
      pass(request)
    } catch (error) {
      sendError(request, reply, error instanceof BartlebyError ? error : failure('internal'), clock)
      return
    }
    // Before Fastify looks at a body: whatever it holds, there is nobody to read it.
    if (request.is404 && request.method !== 'GET') {
      sendError(request, reply, failure('path_unknown', { path: pathOf(request.url) }), clock)
      return
    }
    done()
  }
}
