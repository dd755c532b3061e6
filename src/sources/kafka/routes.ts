/**
 * The Kafka API on HTTP. Calls run in Fastify's first hook: its own parsing would judge a body before its sender. Every request needs a
 * token, of this API or of the server with the right role, on this machine too; without one nobody learns whether a path or a service
 * exists.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { authenticator, type Caller, reaches, requireRole } from '../../api/auth.ts'
import { ClientGone } from '../../api/body.ts'
import { schemasOnlyDescribe, unreachable } from '../../api/calls.ts'
import { type Answer, methodsAt, paramsOf } from '../../api/exact-answer.ts'
import { pathOf } from '../../api/facade.ts'
import type { ServerScope } from '../../api/source-http.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Role } from '../../core/roles.ts'
import { KAFKA } from './event.ts'
import { serviceCalls } from './routes/by-service.ts'
import { topicCalls } from './routes/by-topic.ts'
import { hasRequestId, type KafkaCall, type KafkaCalls, KafkaRequest, ShapeRefused } from './routes/call.ts'
import { describeCall, roleOf } from './routes/describe.ts'
import {
  bodyTooLarge,
  INTERNAL,
  KafkaRefused,
  limited,
  methodNotAllowed,
  misshapen,
  NOT_ADMITTED,
  refused,
  STOPPING,
  sendReply,
  UNKNOWN_PATH,
} from './routes/reply.ts'

export const KAFKA_CALLS: readonly KafkaCall[] = [...topicCalls, ...serviceCalls]
const knownAt = methodsAt(KAFKA_CALLS)

/** Everything below `/kafka`, where Kafka is enabled. */
export class KafkaApi {
  readonly #calls: KafkaCalls
  readonly #server: ServerScope
  readonly #authenticate: (authorization: string) => Caller

  constructor(calls: KafkaCalls, server: ServerScope) {
    this.#calls = calls
    this.#server = server
    const tokens = server.tokens.filter((token) => reaches(token, KAFKA))
    // Without tokens the server trusts everybody; this API does not.
    this.#authenticate = authenticator(tokens, null)
  }

  async addRoutes(app: FastifyInstance): Promise<void> {
    schemasOnlyDescribe(app)
    for (const call of KAFKA_CALLS) {
      app.route({
        method: call.method,
        url: call.path,
        schema: describeCall(call),
        onRequest: (request, reply) => void this.#perform(call, request, reply),
        handler: unreachable,
      })
    }
  }

  async #perform(call: KafkaCall, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (isNoCall(paramsOf(request))) {
      this.answerUnrouted(request, reply)
      return
    }
    try {
      this.#send(request, reply, await this.#answer(call, request))
    } catch (thrown) {
      // Logged also when nobody waits for the answer any more.
      const answer = thrown instanceof ClientGone ? null : this.#failed(call, request, thrown)
      if (answer === null || request.raw.socket.destroyed) reply.hijack()
      else this.#send(request, reply, answer)
    }
  }

  answerUnrouted(request: FastifyRequest, reply: FastifyReply): void {
    this.#send(request, reply, this.#unrouted(request))
  }

  #unrouted(request: FastifyRequest): Answer {
    try {
      const isRead = request.method === 'GET' || request.method === 'HEAD'
      const admission = this.#admit(request, isRead ? 'viewer' : 'operator')
      if ('refused' in admission) return NOT_ADMITTED[admission.refused]
      return answerWithoutCall(request.method, request.url)
    } catch (thrown) {
      return limited(thrown) ?? INTERNAL
    }
  }

  /** Counts wrong tokens. */
  #admit(request: FastifyRequest, needed: Role): Admission {
    const { wrongTokens } = this.#server
    const { clientAddress, caller } = request
    const admission = this.#identify(request, needed)
    if ('actor' in admission) {
      if (caller === undefined) wrongTokens.right(clientAddress, admission.actor)
      request.caller ??= { name: admission.actor, role: needed }
    } else if (admission.refused === 'wrong_token') wrongTokens.wrong(clientAddress)
    return admission
  }

  /** By a session or the `Authorization` header. */
  #identify({ headers: { authorization }, caller: visitor }: FastifyRequest, needed: Role): Admission {
    const isVisit = authorization === undefined && visitor !== undefined
    const [, scheme, token] = CREDENTIALS.exec(authorization?.trim() ?? '') ?? []
    if (!isVisit && (scheme?.toLowerCase() !== 'bearer' || token === undefined))
      return { refused: 'unauthenticated' }
    try {
      // Headers arrive byte by byte: these are the bytes of the token as sent.
      const sent = Buffer.from(token ?? '', 'latin1').toString()
      const caller = isVisit ? visitor : this.#authenticate(`Bearer ${sent}`)
      requireRole(caller, needed)
      return { actor: caller.name }
    } catch (error) {
      if (!(error instanceof BartlebyError)) throw error
      return { refused: error.code === 'role_insufficient' ? 'role_too_low' : 'wrong_token' }
    }
  }

  async #answer(call: KafkaCall, request: FastifyRequest): Promise<Answer> {
    const calls = this.#calls
    // Everybody may know that the process lives.
    if (call.isOpen === true) return call.answer(new KafkaRequest(request, '', this.#server), calls)
    const admission = this.#admit(request, roleOf(call))
    if ('refused' in admission) return NOT_ADMITTED[admission.refused]
    if (!calls.settings.generateCorrelationId && !hasRequestId(request.raw)) {
      throw new KafkaRefused('invalidCorrelationId', {}, 'X-Request-Id must be a UUID of version 4')
    }
    if (this.#server.stopping()) return STOPPING
    return call.answer(new KafkaRequest(request, admission.actor, this.#server), calls)
  }

  #failed(call: KafkaCall, request: FastifyRequest, thrown: unknown): Answer {
    if (thrown instanceof KafkaRefused) return refused(thrown)
    if (thrown instanceof ShapeRefused) return misshapen(thrown)
    if (thrown instanceof BartlebyError && thrown.code === 'body_too_large') {
      return bodyTooLarge(this.#server.maxBodyBytes)
    }
    const tooMuch = limited(thrown)
    if (tooMuch !== null) return tooMuch
    // The server may stop while a call waits for its turn.
    if (thrown instanceof BartlebyError && thrown.code === 'service_stopping') return STOPPING
    // Inner errors are for the log alone.
    request.log.error(
      { err: thrown, method: request.method, path: call.path, requestId: request.id },
      'call failed',
    )
    return INTERNAL
  }

  #send(request: FastifyRequest, reply: FastifyReply, answer: Answer): void {
    sendReply(request, reply, answer, this.#server.writeTimeoutSeconds)
  }
}

/** An empty name, or a dry run without its service. */
function isNoCall(names: Readonly<Record<string, string>>): boolean {
  const { service, topic } = names
  return Object.values(names).includes('') || (service === 'rpc' && topic === 'dry-run')
}

function answerWithoutCall(method: string, url: string): Answer {
  const path = pathOf(url)
  const methods = knownAt(path)
  // The method fits: a name is none, or bytes are no text.
  if (methods.length === 0 || methods.includes(method) || path === '/kafka/rpc/dry-run') return UNKNOWN_PATH
  return methodNotAllowed(methods.join(', '))
}

/** The actor's name in history, or why the request does not pass. */
type Admission =
  | { readonly actor: string }
  | { readonly refused: 'unauthenticated' | 'wrong_token' | 'role_too_low' }

const CREDENTIALS = /^([!-~]+) +(.+)$/
