/** What a call of the Kafka API reads of its request. Of parameters that are given twice the last counts; unknown ones are ignored. */
import type { FastifyRequest } from 'fastify'
import { readBody } from '../../http/body.ts'
import type { Caller } from '../event.ts'
import { type FaultKind, ShapeRefused } from './shape.ts'

export interface RequestLimits {
  readonly maxBodyBytes: number
  readonly readTimeoutSeconds: number
}

const INTEGER = /^[+-]?\d+$/
const YES: readonly string[] = ['true', '1', 'yes', 'on']
const NO: readonly string[] = ['false', '0', 'no', 'off']

export class KafkaRequest {
  readonly caller: Caller
  readonly #request: FastifyRequest
  readonly #limits: RequestLimits
  readonly #query: URLSearchParams

  constructor(request: FastifyRequest, actor: string, limits: RequestLimits) {
    this.caller = { actor, requestId: request.id }
    this.#request = request
    this.#limits = limits
    const start = request.url.indexOf('?')
    this.#query = new URLSearchParams(start < 0 ? '' : request.url.slice(start))
  }

  /** A variable part of the path, decoded. */
  param(name: string): string {
    // Fastify gives the named parts of a path as texts.
    return (this.#request.params as Readonly<Record<string, string>>)[name] ?? ''
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
  async body(limit: number = this.#limits.maxBodyBytes): Promise<Buffer> {
    const { raw } = this.#request
    const timer = setTimeout(() => raw.destroy(), this.#limits.readTimeoutSeconds * 1_000)
    try {
      return await readBody(raw, limit)
    } finally {
      clearTimeout(timer)
    }
  }
}

const fault = (name: string, kind: FaultKind, text: string) =>
  new ShapeRefused([{ loc: ['query', name], kind, input: JSON.stringify(text.toWellFormed()) }])
