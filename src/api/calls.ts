/**
 * Serves the calls of the office API: role, query and body are checked the same way for all, and answers leave in the envelope. Calls run
 * in Fastify's first hook, because its own parsing would refuse a body in another shape.
 */
import type { IncomingHttpHeaders } from 'node:http'
// For `hide` in schemas.
import type {} from '@fastify/swagger'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { Clock } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import type { Role } from '../core/roles.ts'
import type { Caller } from './auth.ts'
import { ClientGone } from './body.ts'
import { type ApiDescription, describeCall } from './describe.ts'
import { asFailure, correlationIdOf, idempotencyKeyOf, sendEnvelope, sendEnvelopeError } from './envelope.ts'
import { pathOf } from './facade.ts'
import { BODY_LIMIT, type JsonBody, NO_BODY, readJsonBody, refuseNulls } from './json-body.ts'
import { type Query, readQuery } from './query.ts'

/** A request that has passed the gate. */
export interface ApiRequest {
  readonly method: string
  readonly path: string
  /** Variable parts of the path, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: JsonBody
  readonly caller: Caller
  readonly correlationId: string
  readonly idempotencyKey: string | null
}

/** A request of a call that asks for no token; it finds out itself who calls. */
type OpenRequest = Omit<ApiRequest, 'caller'> & {
  readonly headers: IncomingHttpHeaders
  readonly address: string
}

export const onceKeyOf = ({ caller, method, path, idempotencyKey }: ApiRequest) =>
  idempotencyKey === null ? null : { scope: `${caller.name} ${method} ${path}`, key: idempotencyKey }

export interface ApiAnswer {
  readonly status: number
  readonly data: unknown
  /** Beside those of the envelope. */
  readonly headers?: Readonly<Record<string, string>>
}

export const ok = (data: unknown): ApiAnswer => ({ status: 200, data })

interface CallRules extends ApiDescription {
  readonly isBodyOptional?: boolean
  readonly bodyLimit?: number
  /** The call refuses nulls in its body itself. Default: the schema of the body does. */
  readonly refusesNullsItself?: boolean
}

export interface ApiCall extends CallRules {
  readonly role: Role
  answer(request: ApiRequest): Promise<ApiAnswer>
}

export interface OpenApiCall extends CallRules {
  readonly role: 'open'
  answer(request: OpenRequest): Promise<ApiAnswer>
}

export interface ApiScope {
  readonly clock: Clock
  /** True once the server has begun to shut down. */
  readonly stopping: () => boolean
}

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Schemas only describe calls in the OpenAPI document; the calls check what they are given. */
export function schemasOnlyDescribe(app: FastifyInstance): void {
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(() => (payload) => JSON.stringify(payload))
}

/** Adds calls; all calls of one path go together. */
export function serveApi(
  app: FastifyInstance,
  scope: ApiScope,
  calls: readonly (ApiCall | OpenApiCall)[],
): void {
  schemasOnlyDescribe(app)
  for (const call of calls) {
    const schema = describeCall(call)
    app.route({
      method: call.method,
      url: call.path,
      config: { role: call.role },
      schema,
      onRequest: (request, reply) => void perform(call, schema.body, scope, request, reply),
      handler: unreachable,
    })
  }
  for (const path of new Set(calls.map((call) => call.path))) {
    const known = calls.filter((call) => call.path === path).map((call) => call.method)
    refuseOtherMethods(app, scope, path, known)
  }
}

/** Answers other methods of a path with those that it has. */
export function refuseOtherMethods(
  app: FastifyInstance,
  { clock }: Pick<ApiScope, 'clock'>,
  path: string,
  known: readonly string[],
): void {
  const allowed = known.join(', ')
  app.route({
    method: METHODS.filter((method) => !known.includes(method)),
    url: path,
    config: { role: 'viewer' },
    schema: { hide: true },
    onRequest: (request, reply) => {
      const error = failure('method_unknown', { method: request.method, allowed })
      sendEnvelopeError(request, reply.header('allow', allowed), clock, error)
    },
    handler: unreachable,
  })
}

async function perform(
  call: ApiCall | OpenApiCall,
  bodySchema: unknown,
  scope: ApiScope,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  try {
    const asked = await read(call, bodySchema, request)
    if (scope.stopping()) throw failure('service_stopping')
    const {
      status,
      data,
      headers = {},
    } = call.role === 'open'
      ? await call.answer({ ...asked, headers: request.headers, address: request.clientAddress })
      : await call.answer({ ...asked, caller: whoPassed(request) })
    sendEnvelope(request, reply.headers(headers), scope.clock, status, data)
  } catch (thrown) {
    if (thrown instanceof ClientGone || request.raw.socket.destroyed) reply.hijack()
    else refuse(scope, request, reply, thrown)
  }
}

function whoPassed({ caller }: FastifyRequest): Caller {
  if (caller === undefined) throw new Error('the gate has let nobody pass')
  return caller
}

async function read(
  call: CallRules,
  bodySchema: unknown,
  request: FastifyRequest,
): Promise<Omit<ApiRequest, 'caller'>> {
  const { body, bodyLimit = BODY_LIMIT, query = {}, isBodyOptional, refusesNullsItself } = call
  const { method, params, raw, url } = request
  const asked = readQuery(url, Object.keys(query))
  const takesBody = body !== undefined || isBodyOptional === true
  const sent = takesBody ? await readJsonBody(raw, bodyLimit, isBodyOptional !== true) : NO_BODY
  if (refusesNullsItself !== true) refuseNulls(bodySchema, sent.fields)
  return {
    method,
    path: pathOf(url),
    // Fastify gives the named parts of a path as texts.
    params: params as Readonly<Record<string, string>>,
    query: asked,
    body: sent,
    correlationId: correlationIdOf(request),
    idempotencyKey: idempotencyKeyOf(request),
  }
}

function refuse(scope: ApiScope, request: FastifyRequest, reply: FastifyReply, thrown: unknown): void {
  const error = asFailure(thrown)
  if (error.code === 'internal') {
    request.log.error(
      { err: thrown, path: request.url, correlationId: correlationIdOf(request) },
      'call failed',
    )
  } else if (error.cause !== undefined && error.retryable) {
    // Why the store failed is for the log; the client can only retry.
    request.log.warn({ err: error, correlationId: correlationIdOf(request) }, 'call refused')
  }
  sendEnvelopeError(request, reply, scope.clock, error)
}

/** Calls are answered by their first hook; Fastify wants a handler all the same. */
export function unreachable(): never {
  throw new Error('the call was answered by its first hook')
}
