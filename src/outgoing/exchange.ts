/**
 * One POST over a kept connection, and its answer. The status decides; of the body only the beginning is read, for a short while, so that
 * the connection can be reused. A receiver that answers without end, or not at all, costs one connection for a bounded time. Errors are one
 * visible line, without the query and credentials of the address, which may be secrets.
 */
import { STATUS_CODES } from 'node:http'
import type { Dispatcher } from 'undici'
import { type Alarm, after, type Clock } from '../core/clock.ts'
import { describeError } from '../core/thrown.ts'
import type { Connection, Connections } from './connections.ts'

interface Posting {
  readonly path: string
  readonly headers: string[]
  readonly body: Uint8Array
}

interface PostTerms {
  /** The request's name in errors. */
  readonly target: string
  readonly clock: Clock
  /** Limit for the answer; null leaves it to the signal. */
  readonly timeoutSeconds: number | null
  readonly signal: AbortSignal
}

interface ExchangeTerms extends PostTerms {
  /** Called when the exchange has done with the connection; `isSound` means that it can be reused. */
  readonly onEnd: (isSound: boolean) => void
}

const EMPTY = new Uint8Array(0)
/** Kept of the body of an unsuccessful answer. */
const MOST_KEPT = 2_048
/** Read of a body before the connection is given up. */
const MOST_READ = 65_536
/** Time for the body after the status. */
const BODY_US = 1_000_000n

/** Posts and gives the answer; rejects without one, or with the signal's reason when aborted before there is a connection. */
export async function post(
  connections: Connections,
  posting: Posting,
  terms: PostTerms,
  { fresh = false } = {},
): Promise<Answer> {
  const connection = await connections.take(terms.signal, { fresh })
  const onEnd = (isSound: boolean): void => connections.giveBack(connection, isSound)
  try {
    return await new Exchange(connection, { ...terms, onEnd }).run(posting)
  } catch (error) {
    if (!connection.wasKept || !wasCut(error)) throw error
    // The receiver closed the connection, most often for want of use, just as it was used again. Sending twice is allowed, so it is sent
    // again at once instead of waiting for the next attempt.
    return post(connections, posting, terms, { fresh: true })
  }
}

const CUT: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/** Whether the other side closed the connection before it answered anything. */
const wasCut = (error: unknown): boolean =>
  error instanceof HttpDeliveryFailed &&
  error.cause instanceof Error &&
  'code' in error.cause &&
  CUT.has(error.cause.code)

class Exchange implements Dispatcher.DispatchHandler {
  readonly #connection: Connection
  readonly #terms: ExchangeTerms
  readonly #outcome = Promise.withResolvers<Answer>()
  readonly #kept: Uint8Array[] = []
  #keptBytes = 0
  #readBytes = 0
  #head: Omit<Answer, 'excerpt'> | null = null
  #controller: Dispatcher.DispatchController | null = null
  #alarm: Alarm | null = null
  #settled = false
  #ended = false
  /** Set when this side broke the exchange off. */
  #broken: Error | null = null

  constructor(connection: Connection, terms: ExchangeTerms) {
    this.#connection = connection
    this.#terms = terms
  }

  run({ path, headers, body }: Posting): Promise<Answer> {
    const { signal, timeoutSeconds } = this.#terms
    signal.addEventListener('abort', this.#onAbort)
    if (timeoutSeconds !== null) {
      this.#ringAfter(BigInt(Math.round(timeoutSeconds * 1e6)), () => {
        const missing = this.#controller === null ? 'connection' : 'answer'
        this.#breakOff(this.#failure(`got no ${missing} within ${timeoutSeconds} s`))
      })
    }
    this.#connection.client.dispatch({ method: 'POST', path, headers, body }, this)
    return this.#outcome.promise
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#broken !== null) controller.abort(this.#broken)
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // Informational answers, such as 103.
    if (status < 200) return
    this.#head = {
      status,
      retryAfter: first(headers['retry-after']),
      location: first(headers.location),
    }
    if (isSuccess(status)) this.#settle()
    this.#alarm?.cancel()
    // Most answers end with the bytes read together with their status and need no alarm.
    queueMicrotask(() => {
      if (!this.#ended) this.#ringAfter(BODY_US, () => this.#breakOff(new Error('the body takes too long')))
    })
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#readBytes += chunk.length
    if (!this.#settled && this.#keptBytes < MOST_KEPT) {
      // A copy, so that a few bytes do not hold on to a whole buffer.
      const piece = Buffer.from(chunk.subarray(0, MOST_KEPT - this.#keptBytes))
      this.#kept.push(piece)
      this.#keptBytes += piece.length
    }
    if (this.#readBytes > MOST_READ) this.#breakOff(new Error('the body is too long'))
  }

  onResponseEnd(): void {
    this.#end(true)
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#end(false, this.#failure(`failed: ${reasonOf(error)}`, error))
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#terms.signal.reason
    this.#breakOff(this.#failure(`was broken off: ${describeError(reason).errorMessage}`, reason))
  }

  #failure(what: string, cause?: unknown): Error {
    return new HttpDeliveryFailed(`${this.#terms.target} ${what}`, cause === undefined ? {} : { cause })
  }

  #ringAfter(us: bigint, ring: () => void): void {
    const { clock } = this.#terms
    this.#alarm?.cancel()
    this.#alarm = after(clock, us, ring)
  }

  /** Ends it from this side, with its connection. */
  #breakOff(error: Error): void {
    if (this.#broken !== null) return
    this.#broken = error
    this.#settle(error)
    if (this.#controller === null) this.#connection.abandon(error)
    else this.#controller.abort(error)
  }

  #end(isSound: boolean, error?: Error): void {
    this.#ended = true
    this.#alarm?.cancel()
    this.#settle(error)
    this.#terms.onEnd(isSound)
  }

  /** The status decides, once there is one. */
  #settle(error?: Error): void {
    if (this.#settled) return
    this.#settled = true
    this.#terms.signal.removeEventListener('abort', this.#onAbort)
    const excerpt = this.#kept.length === 0 ? EMPTY : Buffer.concat(this.#kept)
    if (this.#head !== null) this.#outcome.resolve({ ...this.#head, excerpt })
    else this.#outcome.reject(error ?? this.#failure('ended without an answer'))
  }
}

const first = (value: string | string[] | undefined): string | null =>
  (Array.isArray(value) ? value[0] : value) ?? null

/** Several addresses may have been tried in vain. */
function reasonOf(error: Error): string {
  const errors: readonly unknown[] = error instanceof AggregateError ? error.errors : [error]
  return [...new Set(errors.map((each) => describeError(each).errorMessage))].join('; ')
}

export interface Answer {
  readonly status: number
  readonly retryAfter: string | null
  readonly location: string | null
  readonly excerpt: Uint8Array
}

/** Delivery over HTTP failed; the next attempt may succeed. */
export class HttpDeliveryFailed extends Error {
  override readonly name = 'HttpDeliveryFailed'
}

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

export const target = (address: URL): string => `POST ${plainAddress(address)}`

const plainAddress = ({ origin, pathname }: URL): string => origin + pathname

/** Such as `404 Not Found`. */
export const phrase = (status: number): string => {
  const words = STATUS_CODES[status]
  return words === undefined ? String(status) : `${status} ${words}`
}

/** Where a redirect leads. It is never followed: a POST would become a GET, or its content go to a stranger. */
export function redirection({ status, location }: Answer, address: URL): string {
  if (status < 300 || status >= 400 || location === null) return ''
  const place = URL.parse(location, address)
  return place === null ? '' : `, to ${plainAddress(place)}; redirects are not followed`
}

/** Line ends, controls and invisible characters: an error is one line and shows all that it has. */
const UNSEEN = /[\s\p{C}]+/gu

/** Beginning of the body, behind a colon; '' without one. */
export function excerptOf({ excerpt }: Answer, mostCharacters: number): string {
  const text = asText(excerpt)
  if (text === null) return `: ${excerpt.length} bytes or more that are not text`
  const line = text.replace(UNSEEN, ' ').trim()
  if (line === '') return ''
  return line.length <= mostCharacters ? `: ${line}` : `: ${line.slice(0, mostCharacters).toWellFormed()}…`
}

/** null when the bytes are not UTF-8. The last character may be cut. */
function asText(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return null
  }
}
