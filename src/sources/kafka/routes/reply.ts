/**
 * The answers of the Kafka API, to the byte, and its refusals, thrown where they are found. Bodies are texts: payloads stand in them as
 * they were stored.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Answer, answer, sendAnswer } from '../../../api/exact-answer.ts'
import { BartlebyError } from '../../../core/errors.ts'
import type { Reason } from '../event.ts'
import type { ShapeRefused } from './call.ts'

type Nothing = Readonly<Record<never, never>>

const refusal = <Data extends object = Nothing>(
  status: number,
): { readonly status: number; readonly data?: Data } => ({ status })

/** As in the contract: clients switch on `exception_id`. */
const REFUSALS = {
  previewParamsError: refusal<{ skip: number; limit: number }>(400),
  /** The call puts the override in as it was given. */
  overrideValidationError: refusal<{ event: Nothing; reason: string; reasons: readonly Reason[] }>(400),
  unexpectedBodyError: refusal(400),
  invalidCorrelationId: refusal(400),
  unknownServiceError: refusal<{ service: string }>(404),
  emptyDLQError: refusal<{ service: string; topic?: string }>(404),
  /** The topic is null where the call names none. */
  dlqSequenceError: refusal<
    Record<'service' | 'supplied_dlq_id' | 'expected_dlq_id', string> & { topic: string | null }
  >(409),
  dlqBusyError: refusal<{ service: string; dlq_id: string | null }>(409),
  publishGuardError: refusal<{ dlq_id: string; reasons: readonly Reason[] }>(409),
  uncertainPublishError: refusal<{ dlq_id: string; event_id: string }>(409),
  processingError: refusal<{ dlq_id: string; message: string }>(500),
  processingTimeoutError: refusal<{ dlq_id: string; message: string }>(504),
  kafkaUnavailableError: refusal(503),
}
type RefusalId = keyof typeof REFUSALS
type RefusalData<Id extends RefusalId> = Readonly<NonNullable<(typeof REFUSALS)[Id]['data']>>

export class KafkaRefused<Id extends RefusalId = RefusalId> extends Error {
  override readonly name = 'KafkaRefused'
  readonly id: Id
  readonly data: RefusalData<Id>
  /** 412 instead of 409 where a condition of the request failed. */
  readonly status: number

  constructor(id: Id, data: RefusalData<Id>, description: string, status: number = REFUSALS[id].status) {
    super(description)
    this.id = id
    this.data = data
    this.status = status
  }
}

const JSON_HEADERS = { 'Content-Type': 'application/json' }

/** `text` is JSON. */
export const json = (text: string, headers: Answer['headers'] = {}): Answer =>
  answer(200, text, { ...JSON_HEADERS, ...headers })

/** The event would be discarded. */
export const empty = (headers: Answer['headers']): Answer => answer(200, '', headers)

export const noContent = (headers: Answer['headers'] = {}): Answer => answer(204, '', headers)

const detail = (status: number, text: string, headers: Answer['headers'] = {}): Answer =>
  answer(status, JSON.stringify({ detail: text }), { ...JSON_HEADERS, ...headers })

const CHALLENGE = { 'WWW-Authenticate': 'Bearer' }

export const NOT_ADMITTED = {
  unauthenticated: detail(401, 'Not authenticated', CHALLENGE),
  wrong_token: detail(401, 'Invalid authentication credentials', CHALLENGE),
  role_too_low: detail(403, 'Not authorized'),
} as const satisfies Record<string, Answer>

/** Limits for everybody; null for anything else. */
export function limited(thrown: unknown): Answer | null {
  if (!(thrown instanceof BartlebyError)) return null
  const { code, message, details } = thrown
  if (code === 'body_late') return detail(408, message, { Connection: 'close' })
  if (code === 'wrong_tokens_limited') return detail(429, message, { 'Retry-After': String(details.seconds) })
  return null
}

export const UNKNOWN_PATH: Answer = detail(404, 'Not Found')

export const methodNotAllowed = (allow: string): Answer => detail(405, 'Method Not Allowed', { Allow: allow })

/** `data` is JSON. */
const failed = (
  status: number,
  id: string,
  description: string,
  data: string,
  headers: Answer['headers'] = {},
): Answer =>
  answer(
    status,
    `{"description":${JSON.stringify(description.toWellFormed())},"data":${data},"exception_id":"${id}"}`,
    { ...JSON_HEADERS, ...headers },
  )

/** Seconds. */
const RETRY_AFTER: Readonly<Record<string, string>> = { dlqBusyError: '1', kafkaUnavailableError: '5' }

/** `data` is JSON. */
export function refused(
  { id, status, message, data: own }: KafkaRefused,
  data = JSON.stringify(own),
): Answer {
  const seconds = RETRY_AFTER[id]
  return failed(status, id, message, data, seconds === undefined ? {} : { 'Retry-After': seconds })
}

export const misshapen = ({ body }: ShapeRefused): Answer => answer(422, body, JSON_HEADERS)

/** Beyond the contract. */
export const bodyTooLarge = (limit: number): Answer =>
  failed(413, 'bodyTooLargeError', `the body has more than ${limit} bytes`, JSON.stringify({ limit }))

export const STOPPING: Answer = failed(503, 'kafkaUnavailableError', 'the server is shutting down', '{}', {
  'Retry-After': '1',
})

export const INTERNAL: Answer = failed(500, 'internalServerError', 'something went wrong inside', '{}')

const ALWAYS = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' }

export const sendReply = (
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  writeTimeoutSeconds: number,
): void => sendAnswer(request, reply, answer, writeTimeoutSeconds, ALWAYS)
