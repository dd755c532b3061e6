/**
 * A client of the webhook API that hides nothing: paths and headers go out as they are given, and an answer is its status, its
 * headers and its bytes. Nothing is followed, decoded or retried.
 */
import { Agent, type IncomingMessage, request } from 'node:http'
import { expect } from 'vitest'
import { firstValues } from '../receiver.ts'

export type Headers = Readonly<Record<string, string>>

export interface WebhookRequest {
  readonly headers?: Headers | readonly (readonly [name: string, value: string])[]
  readonly body?: string | Uint8Array
  /** Sent as a form instead of a body. */
  readonly form?: Readonly<Record<string, string>>
  /** Sent without saying how long it is. */
  readonly chunked?: boolean
}

/** Methods that say nothing of a body when they have none. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE'])

const LENIENT = new TextDecoder()

export class WebhookAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Buffer
  /** How long it took, in milliseconds. */
  readonly tookMs: number

  constructor(status: number, headers: Readonly<Record<string, string>>, bytes: Buffer, tookMs: number) {
    this.status = status
    this.headers = headers
    this.bytes = bytes
    this.tookMs = tookMs
  }

  get text(): string {
    return LENIENT.decode(this.bytes)
  }

  /** The body of a JSON answer, which must look like one of this API. */
  json<T = Record<string, unknown>>(): T {
    expect({ status: this.status, type: this.headers['content-type'], text: this.text }).toMatchObject({
      status: 200,
      type: 'application/json',
      text: expect.stringMatching(/[^\n]\n$/),
    })
    return JSON.parse(this.text)
  }

  /** A header that must be there. */
  header(name: string): string {
    return this.headers[name] ?? expect.fail(`the answer has no header ${name}`)
  }
}

export class WebhookClient {
  readonly url: string
  /** The longest of all answers so far, in milliseconds. */
  slowestMs = 0
  readonly #host: string
  readonly #port: number
  readonly #agent = new Agent({ keepAlive: true })

  constructor(url: string) {
    this.url = url
    const { hostname, port } = new URL(url)
    this.#host = hostname
    this.#port = Number(port)
  }

  /** Any request; `path` goes out as it is. */
  async send(method: string, path: string, options: WebhookRequest = {}): Promise<WebhookAnswer> {
    const given = options.headers ?? []
    const headers: string[] = ['Host', `${this.#host}:${this.#port}`]
    for (const [name, value] of isPairs(given) ? given : Object.entries(given)) headers.push(name, value)
    let body = options.body
    if (options.form !== undefined) {
      body = new URLSearchParams(options.form).toString()
      headers.push('Content-Type', 'application/x-www-form-urlencoded')
    }
    if (options.chunked) headers.push('Transfer-Encoding', 'chunked')
    else if (body !== undefined || !BODILESS.has(method)) {
      headers.push('Content-Length', String(Buffer.byteLength(body ?? '')))
    }
    const startedAt = performance.now()
    const reply = await this.#exchange(method, path, headers, body)
    const chunks: Buffer[] = []
    for await (const chunk of reply) chunks.push(chunk)
    const tookMs = performance.now() - startedAt
    this.slowestMs = Math.max(this.slowestMs, tookMs)
    return new WebhookAnswer(
      reply.statusCode ?? 0,
      firstValues(reply.rawHeaders),
      Buffer.concat(chunks),
      tookMs,
    )
  }

  get(path: string, headers: Headers = {}): Promise<WebhookAnswer> {
    return this.send('GET', path, { headers })
  }

  put(path: string, form: Readonly<Record<string, string>>, headers: Headers = {}): Promise<WebhookAnswer> {
    return this.send('PUT', path, { headers, form })
  }

  post(path: string, body: string | Uint8Array, headers: Headers = {}): Promise<WebhookAnswer> {
    return this.send('POST', path, { headers, body })
  }

  delete(path: string, headers: Headers = {}): Promise<WebhookAnswer> {
    return this.send('DELETE', path, { headers })
  }

  close(): void {
    this.#agent.destroy()
  }

  #exchange(
    method: string,
    path: string,
    headers: readonly string[],
    body: string | Uint8Array | undefined,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const options = { host: this.#host, port: this.#port, method, path, headers, agent: this.#agent }
      const outgoing = request(options, resolve)
      // Also after the answer: a server that refuses a body closes the connection on the rest of it.
      outgoing.on('error', reject)
      // As bytes: Node writes a text and the headers before it in one encoding, and headers are no UTF-8.
      outgoing.end(body === undefined ? undefined : Buffer.from(body))
    })
  }
}

const isPairs = (
  headers: NonNullable<WebhookRequest['headers']>,
): headers is readonly (readonly [string, string])[] => Array.isArray(headers)
