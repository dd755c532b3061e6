/**
 * What every request passes before its route: the method (queue API only), the form of the `Authorization`
 * header, the page it comes from, the token or else the session, and the role that the route asks for. In this
 * order; the first failure is the answer.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { TokenEntry } from '../api/auth.ts'
import {
  ANYONE,
  authenticator,
  type Caller,
  counted,
  knownTokens,
  type Role,
  requireKafka,
  requireRole,
  visitorOf,
  type WrongTokens,
  wellFormed,
} from '../api/auth.ts'
import type { Clock } from '../core/clock.ts'
import { BartlebyError, failure } from '../core/errors.ts'
import type { KafkaFacade } from '../sources/kafka/routes.ts'
import { answerUnrouted, isWebhookPath } from '../sources/webhooks/routes.ts'
import { ASSETS, facadeOf, pathOf, sendError } from './facades.ts'
import type { Session, Sessions } from './session/sessions.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may use the route; `open` is everyone. A path without a route asks only for a known token. */
    readonly role?: Role | 'open'
    /** Its answer ends when the client goes: how long it took says nothing. */
    readonly isStream?: boolean
  }
  interface FastifyRequest {
    /** Whom the request comes from; undefined on open routes, which ask nobody. */
    caller?: Caller
    /** The address that it comes from, as limits count it. */
    clientAddress: string
    /** What it came with in place of a token, if it did. */
    session?: Session
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

/**
 * A browser that opens an address which is no call: it gets the page. Below the prefix of an API there is none, nor at a path that
 * the webhook API knows with other methods, and a file of the page that is missing is just missing.
 */
export function isPage({ method, headers, is404, url }: FastifyRequest): boolean {
  if (!is404 || method !== 'GET') return false
  const path = pathOf(url)
  if (path === '/') return true
  return (
    headers.accept?.includes('text/html') === true &&
    !path.startsWith(ASSETS) &&
    ['server', 'webhooks'].includes(facadeOf(path)) &&
    !isWebhookPath(path)
  )
}

/** The engine of letters of Kafka. */
const KAFKA = 'kafka'

/** What may change nothing may come without its page being named. */
const isHarmless = (method: string): boolean => method === 'GET' || method === 'HEAD'

const EVENTS = '/api/kafka/events/'
const LETTER = '/api/dlq/:engine/'
/** Lists that can be asked for letters of one engine. */
const LISTS = ['/api/dlq', '/api/dlq/total', '/api/counts', '/api/signatures', '/api/activity']

/** Whether the call is on one letter of Kafka. By its route: a path can be written in many ways. */
function namesKafkaLetter({ routeOptions: { url = '' }, params }: FastifyRequest): boolean {
  if (url.startsWith(EVENTS)) return true
  // Fastify gives the named parts of a path as texts.
  return url.startsWith(LETTER) && (params as Readonly<Record<string, string>>).engine === KAFKA
}

/** Whether the call is on letters of Kafka, and on no others. */
function concernsKafka(request: FastifyRequest): boolean {
  if (namesKafkaLetter(request)) return true
  const { routeOptions, method, url } = request
  if (method !== 'GET' || !LISTS.includes(routeOptions.url ?? '')) return false
  const engines = new URL(url, 'http://localhost').searchParams.getAll('engine')
  return engines.length === 1 && engines[0] === KAFKA
}

/** What answers requests of the Kafka API that no route takes; it asks for tokens itself. */
export type KafkaUnrouted = Pick<KafkaFacade, 'answerUnrouted'>

export interface GateOptions {
  /** The webhook API asks nobody for a token, so it does not where it has no call either. */
  readonly openWebhooks?: boolean
  /** null while there is no Kafka API: then everything below its prefix is unknown, to everybody. */
  readonly kafka?: KafkaUnrouted | null
  /** null while no tokens are configured. */
  readonly sessions?: Sessions | null
  /** The tokens of the Kafka part, which reach its letters by every door. */
  readonly kafkaHashes?: readonly string[]
  /** Left out, wrong tokens are not counted. */
  readonly wrongTokens?: WrongTokens
}

/** The hook that lets requests pass or answers them with what is wrong. */
export function gate(
  tokens: readonly TokenEntry[],
  clock: Clock,
  { openWebhooks = false, kafka = null, sessions = null, kafkaHashes = [], wrongTokens }: GateOptions = {},
) {
  const known = knownTokens(tokens, kafkaHashes)
  const authenticate = counted(authenticator(known, visitorOf(tokens, kafkaHashes)), wrongTokens)

  /** The session of a request without a token. Browsers send its cookie whoever asks them to: a change must come from our own page. */
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

  /** Letters of Kafka are for those who have a token, and a token of Kafka is for nothing else. */
  const checkReach = (request: FastifyRequest, caller: Caller): void => {
    // As a token that is not known: it is not, here.
    if (caller.reach === 'kafka' && !concernsKafka(request)) throw failure('token_unknown')
    if (caller.reach !== 'all-but-kafka' || isHarmless(request.method) || !namesKafkaLetter(request)) return
    if (request.headers.authorization !== undefined) wrongTokens?.wrong(request.clientAddress)
    requireKafka(caller)
  }

  const pass = (request: FastifyRequest): void => {
    const path = pathOf(request.url)
    const { method } = request
    const facade = facadeOf(path)
    if (facade === 'queues' && method !== 'POST' && !(method === 'GET' && path === '/health')) {
      throw failure('method_not_allowed', { method })
    }
    const { authorization, origin, host } = request.headers
    const { role } = request.routeOptions.config
    if (facade === 'webhooks') {
      // What it says is forwarded to consumers if the sender wants so: it need not be for us.
      if (isForeign(origin, host)) throw failure('origin_foreign')
      if (role === 'open' || isPage(request) || (openWebhooks && request.is404)) return
      if (tokens.length === 0) {
        request.caller = ANYONE
        return
      }
    }
    if (facade === 'kafka') {
      if (kafka === null) return
      if (isForeign(origin, host)) throw failure('origin_foreign')
      // It has tokens of its own, and asks for them everywhere but at its health.
      const session = sessionOf(request)
      if (session !== null) request.caller = session.caller
      return
    }
    if (!wellFormed(authorization)) throw failure('authorization_malformed')
    if (isForeign(origin, host)) throw failure('origin_foreign')
    if (role === 'open' || isPage(request)) return
    const caller = identify(request)
    if (role !== undefined) requireRole(caller, role)
    checkReach(request, caller)
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
      answerUnknown(request, reply, clock, kafka)
      return
    }
    done()
  }
}

/** Answers what no route answers, in the shape of the API that the path belongs to. */
export function answerUnknown(
  request: FastifyRequest,
  reply: FastifyReply,
  clock: Clock,
  kafka: KafkaUnrouted | null,
): void {
  const path = pathOf(request.url)
  const facade = facadeOf(path)
  if (facade === 'webhooks') answerUnrouted(request, reply)
  else if (facade === 'kafka' && kafka !== null) kafka.answerUnrouted(request, reply)
  else sendError(request, reply, failure('path_unknown', { path }), clock)
}
