/**
 * What a call reads of its request. Headers count by their first value, missing ones are empty; every body has a limit of size and time.
 * The access log has nothing of what a request carried.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { paramsOf, queryOf, type RequestLimits, readWithin } from '../../../api/exact-answer.ts'
import { pathOf } from '../../../api/facade.ts'
import { BartlebyError } from '../../../core/errors.ts'
import type { Xids } from '../../../core/xid.ts'
import { Refused } from '../refusal.ts'
import type { PageRequest } from '../registry/pages.ts'

/** A few texts of 255 characters, percent-encoded. */
const SMALL_BODY_BYTES = 1_048_576

const FORM = 'application/x-www-form-urlencoded'

declare module 'fastify' {
  interface FastifyRequest {
    /** Read before the call, to check its signature. */
    signedBody?: Buffer
  }
}

/** Empty when absent. `name` is in lower case. */
export function firstHeader({ headers, rawHeaders }: IncomingMessage, name: string): string {
  const value = headers[name]
  if (value === undefined) return ''
  if (typeof value !== 'string') return value[0] ?? ''
  // Repeated headers arrive joined by commas.
  if (!value.includes(',')) return value
  const at = rawHeaders.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name)
  return rawHeaders[at + 1] ?? ''
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Bytes arrive one by one; clients that write more than ASCII mostly mean UTF-8. */
function asText(value: string): string {
  if (!/[\x80-\xff]/.test(value)) return value
  try {
    return utf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}

export class WebhookRequest {
  readonly #request: FastifyRequest
  readonly #limits: RequestLimits

  constructor(request: FastifyRequest, limits: RequestLimits) {
    this.#request = request
    this.#limits = limits
  }

  param(name: string): string {
    return paramsOf(this.#request)[name] ?? ''
  }

  header(name: string): string {
    return asText(firstHeader(this.#request.raw, name))
  }

  /** Names and values in turn, as sent. */
  get rawHeaders(): readonly string[] {
    return this.#request.raw.rawHeaders
  }

  query(): URLSearchParams {
    return queryOf(this.#request)
  }

  body(): Promise<Buffer> {
    return this.#read(this.#limits.maxBodyBytes)
  }

  smallBody(): Promise<Buffer> {
    return this.#read(Math.min(this.#limits.maxBodyBytes, SMALL_BODY_BYTES))
  }

  /** Another media type is refused unread. */
  async form(): Promise<URLSearchParams> {
    const mediaType = firstHeader(this.#request.raw, 'content-type').split(';', 1)[0]?.trim()
    if (mediaType !== FORM) throw new Refused('form_expected')
    return new URLSearchParams((await this.smallBody()).toString())
  }

  page(): PageRequest {
    const query = this.query()
    return { next: query.get('next'), previous: query.get('previous') }
  }

  #read(limit: number): Promise<Buffer> {
    const { raw, signedBody } = this.#request
    if (signedBody === undefined) return readRequest(raw, limit, this.#limits.readTimeoutSeconds)
    return signedBody.length > limit
      ? Promise.reject(new Refused('body_too_large'))
      : Promise.resolve(signedBody)
  }
}

/** `readWithin` in the words of this API. */
export async function readRequest(raw: IncomingMessage, limit: number, seconds: number): Promise<Buffer> {
  try {
    return await readWithin(raw, limit, seconds)
  } catch (error) {
    const code = error instanceof BartlebyError ? error.code : null
    throw code === 'body_too_large' || code === 'body_late' ? new Refused(code) : error
  }
}

const INTEGER = /^[+-]?\d+$/

/** Null for anything else, and beyond the safe integers. */
export function integerOf(text: string): number | null {
  const value = INTEGER.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : null
}

export const logAccess = (request: FastifyRequest, reply: FastifyReply): void =>
  request.log.debug(
    {
      method: request.method,
      url: pathOf(request.url),
      status: reply.statusCode,
      size: request.answerBytes,
      durationMs: Math.round(reply.elapsedTime * 1_000) / 1_000,
      requestId: request.id,
    },
    'request',
  )

/** Echoed and logged, so bounded and printable. */
const USABLE = /^[\x21-\x7e](?:[\x20-\x7e]{0,126}[\x21-\x7e])?$/

/** On every answer and in the log: the caller's own, or an xid. */
export const requestIds =
  (xids: Xids) =>
  (request: IncomingMessage): string => {
    const sent = firstHeader(request, 'x-request-id')
    return USABLE.test(sent) ? sent : xids.next()
  }
