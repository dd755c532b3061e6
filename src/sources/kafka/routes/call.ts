/** One call of the Kafka API: path, description, answer, and what it reads of its request. */

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

export type ServedKafka = Pick<Kafka, 'calls' | 'metrics' | 'status' | 'reassign'>

export interface KafkaCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With `:name` for its variable parts. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** No token is asked for. */
  readonly isOpen?: boolean
  readonly headers?: Readonly<Record<string, JsonSchema>>
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: JsonSchema
  /** Statuses of success, with their JSON. */
  readonly success: Readonly<Record<number, { readonly meaning: string; readonly shape?: JsonSchema }>>
  readonly errors: readonly number[]
  answer(request: KafkaRequest, calls: KafkaCalls): Promise<Answer>
}

const INTEGER = /^[+-]?\d+$/
const YES: readonly string[] = ['true', '1', 'yes', 'on']
const NO: readonly string[] = ['false', '0', 'no', 'off']

/** Of repeated parameters the last counts; unknown ones are ignored. */
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

  param(name: string): string {
    return paramsOf(this.#request)[name] ?? ''
  }

  get ifMatch(): string | null {
    return this.#request.headers['if-match'] ?? null
  }

  flag(name: string): boolean {
    const text = this.#last(name)
    if (text === null) return false
    const word = text.toLowerCase()
    if (YES.includes(word)) return true
    if (NO.includes(word)) return false
    throw fault(name, 'bool_parsing', text)
  }

  /** Numbers beyond the safe range are cut to it. */
  integer(name: string): number | null {
    const text = this.#last(name)
    if (text === null) return null
    if (!INTEGER.test(text)) throw fault(name, 'int_parsing', text)
    return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(text)))
  }

  #last(name: string): string | null {
    return this.#query.getAll(name).at(-1) ?? null
  }

  /** A client that is too slow is cut off. */
  body(limit: number = this.#limits.maxBodyBytes): Promise<Buffer> {
    return readWithin(this.#request.raw, limit, this.#limits.readTimeoutSeconds)
  }
}

const fault = (name: string, kind: FaultKind, text: string) =>
  new ShapeRefused([{ loc: ['query', name], kind, input: JSON.stringify(text.toWellFormed()) }])

export interface ShapeFault {
  /** `query`, `path` or `body`, then the names on the way. */
  readonly loc: readonly (string | number)[]
  readonly kind: FaultKind
  /** As JSON. */
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

/** Longer inputs are not repeated. */
const SHOWN_CHARACTERS = 4_096

/** 422 with a list of faults, in FastAPI's words. Inputs are shown as they were written: written anew they could change, or fail. */
export class ShapeRefused extends Error {
  override readonly name = 'ShapeRefused'
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

export function hasRequestId({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const sent = headers[HEADER]
  return typeof sent === 'string' && isUuidV4(sent)
}

/** On every answer and in history: the caller's UUID v4, or a new one. */
export function kafkaRequestId(request: Pick<IncomingMessage, 'headers'>): string {
  return hasRequestId(request) ? String(request.headers[HEADER]) : randomUUID()
}
