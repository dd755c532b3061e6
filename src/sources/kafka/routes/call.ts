/** One call of the Kafka API: where it is, how it is described, what answers it, and what it reads of its request. */

import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { type Answer, paramsOf, queryOf, type RequestLimits, readWithin } from '../../../api/exact-answer.ts'
import type { JsonSchema } from '../../../api/proto-schema.ts'
import type { Caller } from '../event.ts'
import type { Kafka } from '../kafka.ts'
import type { QueueReader } from '../queue-reader.ts'
import type { ReturnPath } from '../return/return-path.ts'
import { isUuidV4, type KafkaSettings } from '../settings/settings.ts'

export interface KafkaCalls {
  readonly settings: KafkaSettings
  readonly returnPath: ReturnPath
  readonly reader: QueueReader
}

/** What a server needs of the Kafka part of an office. */
export type ServedKafka = Pick<Kafka, 'calls' | 'metrics' | 'standing' | 'reassign'>

export interface KafkaCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With `:name` for its variable parts. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** Whether nobody is asked for a token. */
  readonly isOpen?: boolean
  /** The headers and the parameters of the query that it reads. */
  readonly headers?: Readonly<Record<string, JsonSchema>>
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: JsonSchema
  /** The statuses of success, each with the JSON that comes with it. */
  readonly success: Readonly<Record<number, { readonly meaning: string; readonly shape?: JsonSchema }>>
  /** The other statuses that it knows. */
  readonly errors: readonly number[]
  answer(request: KafkaRequest, calls: KafkaCalls): Promise<Answer>
}

const INTEGER = /^[+-]?\d+$/
const YES: readonly string[] = ['true', '1', 'yes', 'on']
const NO: readonly string[] = ['false', '0', 'no', 'off']

/** Of parameters that are given twice the last counts; unknown ones are ignored. */
export class KafkaRequest {
  readonly caller: Caller
  readonly #request: FastifyRequest
  readonly #limits: RequestLimits
  readonly #query: URLSearchParams

  constructor(request: FastifyRequest, actor: string, limits: RequestLimits) {
    this.caller = { actor, requestId: request.id }
    this.#request = request
    this.#limits = limits
    this.#query = queryOf(request)
  }

  /** A variable part of the path, decoded. */
  param(name: string): string {
    return paramsOf(this.#request)[name] ?? ''
  }

  /** The condition that the request makes; null when it makes none. */
  get ifMatch(): string | null {
    return this.#request.headers['if-match'] ?? null
  }

  /** A parameter that is true or false; false when it is not given. */
  flag(name: string): boolean {
    const text = this.#last(name)
    if (text === null) return false
    const word = text.toLowerCase()
    if (YES.includes(word)) return true
    if (NO.includes(word)) return false
    throw fault(name, 'bool_parsing', text)
  }

  /** A parameter that is a whole number; null when it is not given. What is beyond all numbers is as far as they go. */
  integer(name: string): number | null {
    const text = this.#last(name)
    if (text === null) return null
    if (!INTEGER.test(text)) throw fault(name, 'int_parsing', text)
    return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(text)))
  }

  #last(name: string): string | null {
    return this.#query.getAll(name).at(-1) ?? null
  }

  /** The whole body, of at most so many bytes; a client that is too slow to send it is cut off. */
  body(limit: number = this.#limits.maxBodyBytes): Promise<Buffer> {
    return readWithin(this.#request.raw, limit, this.#limits.readTimeoutSeconds)
  }
}

const fault = (name: string, kind: FaultKind, text: string) =>
  new ShapeRefused([{ loc: ['query', name], kind, input: JSON.stringify(text.toWellFormed()) }])

/** One thing that is wrong. */
export interface ShapeFault {
  /** Where: `query`, `path` or `body`, then the names on the way. */
  readonly loc: readonly (string | number)[]
  readonly kind: FaultKind
  /** What was given, as JSON. */
  readonly input: string
}

const MESSAGES = {
  missing: 'Field required',
  int_parsing: 'Input should be a valid integer, unable to parse string as an integer',
  bool_parsing: 'Input should be a valid boolean, unable to interpret input',
  uuid_type: 'UUID input should be a string, bytes or UUID object',
  uuid_parsing: 'Input should be a valid UUID',
  uuid_version: 'UUID version 4 expected',
  string_type: 'Input should be a valid string',
  string_unicode: 'Input should be a valid string, unable to parse raw data as a unicode string',
  dict_type: 'Input should be a valid dictionary',
  model_attributes_type: 'Input should be a valid dictionary or object to extract fields from',
  extra_forbidden: 'Extra inputs are not permitted',
  json_invalid: 'JSON decode error',
} as const
export type FaultKind = keyof typeof MESSAGES

/** What is longer than this is not repeated. */
const SHOWN_CHARACTERS = 4_096

/**
 * A request of another shape than a call takes: 422 with a list of what is wrong, in the words that clients of FastAPI know. What was
 * given is shown as it was written, because to write it anew could change it, or fail.
 */
export class ShapeRefused extends Error {
  override readonly name = 'ShapeRefused'
  /** The answer's. */
  readonly body: string

  constructor(faults: readonly ShapeFault[]) {
    super('the request has another shape')
    this.body = `{"detail":[${faults.map(faultText).join(',')}]}`
  }
}

function faultText({ loc, kind, input }: ShapeFault): string {
  const shown = input.length > SHOWN_CHARACTERS ? 'null' : input
  return `{"loc":${JSON.stringify(loc)},"msg":${JSON.stringify(MESSAGES[kind])},"type":"${kind}","input":${shown}}`
}

const HEADER = 'x-request-id'

/** Whether the caller sent an id that can be used. */
export function hasRequestId({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const sent = headers[HEADER]
  return typeof sent === 'string' && isUuidV4(sent)
}

/** The id of a request, on every answer and in history: the caller's UUID v4 as it was sent, or a new one. */
export function kafkaRequestId(request: Pick<IncomingMessage, 'headers'>): string {
  return hasRequestId(request) ? String(request.headers[HEADER]) : randomUUID()
}
