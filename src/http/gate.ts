/**
 * The gate before every route: form of the `Authorization` header, page of origin, token or session, role. In this order; the first failure
 * is the answer. APIs may admit in another way (`Facade.admit`).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type Caller,
  countingAuthenticator,
  knownTokens,
  type OwnTokens,
  requireReach,
  requireRole,
  type TokenEntry,
  visitorOf,
  type WrongTokens,
  wellFormed,
} from '../api/auth.ts'
import type { Gate } from '../api/facade.ts'
import type { Clock } from '../core/clock.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import { Facades } from './facades.ts'
import type { Session, Sessions } from './session/sessions.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set when it came instead of a token. */
    session?: Session
  }
}

/** Requests that change nothing need not name their page. */
const isHarmless = (method: string): boolean => method === 'GET' || method === 'HEAD'

const LETTER = '/api/dlq/:engine/'
/** Lists that can be asked for one engine. */
const LISTS = ['/api/dlq', '/api/dlq/total', '/api/counts', '/api/signatures', '/api/activity']

/** Whether the call is on one letter of the source. By its route, because a path can be written in many ways. */
function namesLetterOf(
  { source, routes }: OwnTokens,
  { routeOptions: { url = '' }, params }: FastifyRequest,
): boolean {
  if (routes.some((route) => url.startsWith(route))) return true
  // Fastify gives the named parts of a path as texts.
  return url.startsWith(LETTER) && (params as Readonly<Record<string, string>>).engine === source
}

/** Whether the call is on letters of the source and no others. */
function concerns(guarded: OwnTokens, request: FastifyRequest): boolean {
  if (namesLetterOf(guarded, request)) return true
  const { routeOptions, method, url } = request
  if (method !== 'GET' || !LISTS.includes(routeOptions.url ?? '')) return false
  const engines = new URL(url, 'http://localhost').searchParams.getAll('engine')
  return engines.length === 1 && engines[0] === guarded.source
}

interface GateOptions {
  /** Default: the server's own APIs. */
  readonly facades?: Facades
  /** null while no tokens are configured. */
  readonly sessions?: Sessions | null
  /** Tokens of sources, which reach their letters by every door. */
  readonly own?: readonly OwnTokens[]
  /** Absent: wrong tokens are not counted. */
  readonly wrongTokens?: WrongTokens
}

/** The hook that lets requests pass or refuses them. */
export function gate(
  tokens: readonly TokenEntry[],
  clock: Clock,
  { facades = new Facades([], clock), sessions = null, own = [], wrongTokens }: GateOptions = {},
) {
  const authenticate = countingAuthenticator(knownTokens(tokens, own), visitorOf(tokens, own), wrongTokens)

  /** The session of a request without a token. Browsers send its cookie for any page: a change must come from our own. */
  const sessionOf = ({ method, headers }: FastifyRequest): Session | null => {
    if (sessions === null || headers.authorization !== undefined) return null
    const session = sessions.find(headers.cookie)
    if (session !== null && !isHarmless(method) && headers.origin === undefined)
      throw failure('origin_missing')
    return session
  }

  const identify = (request: FastifyRequest): Caller => {
    const session = sessionOf(request)
    if (session === null) return authenticate(request.headers.authorization, request.clientAddress)
    request.session = session
    return session.caller
  }

  /** Letters of a source with tokens are for those who have one, and such a token is for nothing else. */
  const checkReach = (request: FastifyRequest, { reach, ...caller }: Caller): void => {
    if (reach === undefined) return
    if ('only' in reach) {
      const guarded = own.find(({ source }) => source === reach.only)
      // Here it is unknown.
      if (guarded === undefined || !concerns(guarded, request)) throw failure('token_unknown')
    } else if (!isHarmless(request.method)) {
      const named = reach.allBut.filter((guarded) => namesLetterOf(guarded, request))
      if (named.length === 0) return
      if (request.headers.authorization !== undefined) wrongTokens?.wrong(request.clientAddress)
      requireReach(
        { reach, ...caller },
        named.map(({ source }) => source),
      )
    }
  }

  const door: Gate = {
    hasTokens: tokens.length > 0,
    /** A page of another site must not use a server that trusts everybody on this machine; browsers name the page. */
    refuseForeign({ headers: { origin, host } }) {
      if (origin === undefined) return
      if (!URL.canParse(origin) || new URL(origin).host !== host) throw failure('origin_foreign')
    },
    isOpen: (request) => request.routeOptions.config.role === 'open' || facades.isPage(request),
    signedIn: (request) => sessionOf(request)?.caller ?? null,
    ask(request) {
      if (!wellFormed(request.headers.authorization)) throw failure('authorization_malformed')
      door.refuseForeign(request)
      if (door.isOpen(request)) return
      const caller = identify(request)
      const { role } = request.routeOptions.config
      if (role !== undefined && role !== 'open') requireRole(caller, role)
      checkReach(request, caller)
      request.caller = caller
    },
  }

  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    try {
      const facade = facades.of(request.url)
      if (facade.admit === undefined) door.ask(request)
      else facade.admit(request, door)
    } catch (error) {
      facades.sendError(request, reply, error instanceof BartlebyError ? error : failure('internal'))
      return
    }
    // Before Fastify looks at a body that nobody will read.
    if (request.is404 && request.method !== 'GET') facades.answerUnknown(request, reply)
    else done()
  }
}
