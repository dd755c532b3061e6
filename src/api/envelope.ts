/**
 * The envelope of the office API (`/api/`): every reply has a status, a correlation id, a time, and data or an error. The correlation id is
 * the caller's own if usable; replies of the gate and of unknown paths have one too.
 */
import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../core/clock.ts'
import { BartlebyError, ERRORS, type ErrorCode, failure, refuse } from '../core/errors.ts'
import { formatMicros } from '../core/timestamp.ts'
import { StoreUnavailable } from '../store/database.ts'
import type { Facade } from './facade.ts'

const CORRELATION_HEADER = 'x-correlation-id'
const CORRELATION_ID = /^[\x21-\x7e]{1,128}$/

const correlationIds = new WeakMap<FastifyRequest, string>()

/** The caller's own id, or one made for the request. */
export function correlationIdOf(request: FastifyRequest): string {
  const known = correlationIds.get(request)
  if (known !== undefined) return known
  const sent = request.headers[CORRELATION_HEADER]
  const id = typeof sent === 'string' && CORRELATION_ID.test(sent) ? sent : randomUUID()
  correlationIds.set(request, id)
  return id
}

export function sendEnvelope(
  request: FastifyRequest,
  reply: FastifyReply,
  clock: Clock,
  status: number,
  data: unknown,
): void {
  send(request, reply, clock, status, 'Succeeded', { data })
}

export function sendEnvelopeError(
  request: FastifyRequest,
  reply: FastifyReply,
  clock: Clock,
  error: BartlebyError,
): void {
  sayWhen(reply, error)
  send(request, reply, clock, plainStatus(error.code), 'Failed', { error: errorFields(error) })
}

/** Everything below `/api/`, whoever brings its calls. */
export const envelopeFacade = (clock: Clock): Facade => ({
  about:
    'Below /api/: letters, history, redrives and their sources, in JSON; every reply is an envelope with a status, a correlation id and a time.',
  owns: (path) => path.startsWith('/api/'),
  sendError: (request, reply, error) => sendEnvelopeError(request, reply, clock, error),
})

export function errorFields(error: BartlebyError) {
  const { code, message } = error
  const details = detailsOf(error)
  return { code, message: message.toWellFormed(), ...(details === undefined ? {} : { details }) }
}

/** Sets `Retry-After` for limited calls, on the raw answer, which every API sends. */
export function sayWhen(reply: FastifyReply, { code, details }: BartlebyError): void {
  if (plainStatus(code) === 429) reply.raw.setHeader('Retry-After', String(details.seconds ?? 1))
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  clock: Clock,
  code: number,
  status: 'Succeeded' | 'Failed',
  content: { readonly data: unknown } | { readonly error: unknown },
): void {
  const correlationId = correlationIdOf(request)
  const timestamp = formatMicros(clock.now())
  reply
    .code(code)
    .header(CORRELATION_HEADER, correlationId)
    .header('content-type', 'application/json')
    .header('x-content-type-options', 'nosniff')
    .header('cache-control', 'no-store')
    .send(JSON.stringify({ status, correlationId, timestamp, ...content }))
}

/** Errors of the office have details for programs; the others only their text. */
function detailsOf(error: BartlebyError): BartlebyError['details'] | undefined {
  return 'api' in ERRORS[error.code] ? error.details : undefined
}

/** The status outside the queue API, which has codes of its own. */
export function plainStatus(error: ErrorCode): number {
  const entry: { readonly queues: number; readonly api?: number } = ERRORS[error]
  if (entry.api !== undefined) return entry.api
  const code = entry.queues
  if (code === 501) return 404
  if (code === 453 || code === 454) return 503
  if (code === 455) return 415
  return code
}

/** An outage of the store passes; a bug stays inside. */
export function asFailure(thrown: unknown): BartlebyError {
  if (thrown instanceof BartlebyError) return thrown
  if (thrown instanceof StoreUnavailable) return failure('store_write_failed', undefined, { cause: thrown })
  return failure('internal', undefined, { cause: thrown })
}

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/

/** null without one; refuses a malformed one. */
export function idempotencyKeyOf(request: FastifyRequest): string | null {
  const sent = request.headers['idempotency-key']
  if (sent === undefined) return null
  if (typeof sent === 'string' && IDEMPOTENCY_KEY.test(sent)) return sent
  throw refuse('Idempotency-Key', 'give 1 to 255 visible ASCII characters')
}
