/**
 * The answers of the Kafka API, to the byte; refusals, which are thrown where they are found, among them. Bodies are texts, because
 * payloads go into them as they were stored; nothing here writes them anew.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Answer, sendAnswer } from '../../../api/exact-answer.ts'
import { BartlebyError } from '../../../core/errors.ts'
import type { Reason } from '../event.ts'
import type { ShapeRefused } from './call.ts'

/** The refusals with their data, as the contract has them. Clients switch on `exception_id`. */
interface RefusalData {
  readonly previewParamsError: { readonly skip: number; readonly limit: number }
  readonly overrideValidationError: {
    readonly event: object
    readonly reason: string
    readonly reasons: readonly Reason[]
  }
  readonly unexpectedBodyError: Readonly<Record<never, never>>
  readonly invalidCorrelationId: Readonly<Record<never, never>>
  readonly unknownServiceError: { readonly service: string }
  readonly emptyDLQError: { readonly service: string; readonly topic?: string }
  readonly dlqSequenceError: {
    readonly service: string
    /** null where the call names no topic. */
    readonly topic: string | null
    readonly supplied_dlq_id: string
    readonly expected_dlq_id: string
  }
  readonly dlqBusyError: { readonly service: string; readonly dlq_id: string | null }
  readonly publishGuardError: { readonly dlq_id: string; readonly reasons: readonly Reason[] }
  readonly uncertainPublishError: { readonly dlq_id: string; readonly event_id: string }
  readonly processingError: { readonly dlq_id: string; readonly message: string }
  readonly processingTimeoutError: { readonly dlq_id: string; readonly message: string }
  readonly kafkaUnavailableError: Readonly<Record<never, never>>
}
type RefusalId = keyof RefusalData

const REFUSAL_STATUS: Readonly<Record<RefusalId, number>> = {
  previewParamsError: 400,
  overrideValidationError: 400,
  unexpectedBodyError: 400,
  invalidCorrelationId: 400,
  unknownServiceError: 404,
  emptyDLQError: 404,
  dlqSequenceError: 409,
  dlqBusyError: 409,
  publishGuardError: 409,
  uncertainPublishError: 409,
  processingError: 500,
  processingTimeoutError: 504,
  kafkaUnavailableError: 503,
}

export class KafkaRefused<Id extends RefusalId = RefusalId> extends Error {
  override readonly name = 'KafkaRefused'
  readonly id: Id
  readonly data: RefusalData[Id]
  /** Differs from the table's only where a condition of the request failed: 412 instead of 409. */
  readonly status: number

  constructor(id: Id, data: RefusalData[Id], description: string, status: number = REFUSAL_STATUS[id]) {
    super(description)
    this.id = id
    this.data = data
    this.status = status
  }
}

const JSON_HEADERS = { 'Content-Type': 'application/json' }

/** What was asked for; `text` is JSON. */
export const json = (text: string, headers: Answer['headers'] = {}): Answer => ({
  status: 200,
  body: text,
  headers: { ...JSON_HEADERS, ...headers },
})

/** Nothing, on purpose: what was asked for would be discarded. */
export const empty = (headers: Answer['headers']): Answer => ({ status: 200, body: '', headers })

export const noContent = (headers: Answer['headers'] = {}): Answer => ({ status: 204, body: '', headers })

/** What concerns the request alone: who sends it, where to. */
const detail = (status: number, text: string, headers: Answer['headers'] = {}): Answer => ({
  status,
  body: JSON.stringify({ detail: text }),
  headers: { ...JSON_HEADERS, ...headers },
})

const CHALLENGE = { 'WWW-Authenticate': 'Bearer' }

/** Answers to those who are not let in. */
export const NOT_ADMITTED = {
  unauthenticated: detail(401, 'Not authenticated', CHALLENGE),
  wrong_token: detail(401, 'Invalid authentication credentials', CHALLENGE),
  role_too_low: detail(403, 'Not authorized'),
} as const satisfies Record<string, Answer>

/** What is limited for everybody: wrong tokens, and the time of a body. Null for everything else. */
export function limited(thrown: unknown): Answer | null {
  if (!(thrown instanceof BartlebyError)) return null
  const { code, message, details } = thrown
  if (code === 'body_late') return detail(408, message, { Connection: 'close' })
  if (code === 'wrong_tokens_limited') return detail(429, message, { 'Retry-After': String(details.seconds) })
  return null
}

export const UNKNOWN_PATH: Answer = detail(404, 'Not Found')

/** The path is there, but not for this method. */
export const methodNotAllowed = (allow: string): Answer => detail(405, 'Method Not Allowed', { Allow: allow })

/** `data` is JSON. */
const failed = (status: number, id: string, description: string, data: string): Answer => ({
  status,
  body: `{"description":${JSON.stringify(description.toWellFormed())},"data":${data},"exception_id":"${id}"}`,
  headers: JSON_HEADERS,
})

/** How long who meets them should wait, in seconds. */
const RETRY_AFTER: Readonly<Record<string, string>> = { dlqBusyError: '1', kafkaUnavailableError: '5' }

/** A refusal; `data` is JSON, left out it is that of the refusal. */
export function refused({ id, status, message, data }: KafkaRefused, dataText?: string): Answer {
  const answer = failed(status, id, message, dataText ?? JSON.stringify(data))
  const seconds = RETRY_AFTER[id]
  return seconds === undefined
    ? answer
    : { ...answer, headers: { ...answer.headers, 'Retry-After': seconds } }
}

export const misshapen = ({ body }: ShapeRefused): Answer => ({ status: 422, body, headers: JSON_HEADERS })

/** Beyond what the contract knows: bodies have a limit. */
export const bodyTooLarge = (limit: number): Answer =>
  failed(413, 'bodyTooLargeError', `the body has more than ${limit} bytes`, JSON.stringify({ limit }))

/** The server ends; another one, or this one in a while, can be asked. */
export const STOPPING: Answer = {
  ...failed(503, 'kafkaUnavailableError', 'the server is shutting down', '{}'),
  headers: { ...JSON_HEADERS, 'Retry-After': '1' },
}

/** What cannot be told to anybody but the log. */
export const INTERNAL: Answer = failed(500, 'internalServerError', 'something went wrong inside', '{}')

const ALWAYS = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store' }

export const sendReply = (
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  writeTimeoutSeconds: number,
): void => sendAnswer(request, reply, answer, writeTimeoutSeconds, ALWAYS)
