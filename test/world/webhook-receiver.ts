/**
 * A consumer's end of webhooks: a real HTTP server that records every callback, with the instant at which it came, and answers as
 * it is told to. It never asks whether a callback was expected: tests compare what came with what should have come.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { systemNow } from './time.ts'

export interface Callback {
  readonly method: string
  /** With the query, as it was sent. */
  readonly path: string
  /** Names in lower case; of repeated ones the first value. */
  readonly headers: Readonly<Record<string, string>>
  /** Names and values by turns, as they were sent. */
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
  /** Microseconds since 1970 by the receiver's clock, when all of it was there. */
  readonly at: bigint
}

export interface CallbackAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An answer for all, or one for each; a promise holds the answer back. */
export type Answering =
  | CallbackAnswer
  | ((callback: Callback, nth: number) => CallbackAnswer | Promise<CallbackAnswer>)

const ACCEPTED: CallbackAnswer = { status: 204 }

export class WebhookReceiver {
  /** Everything that came, in order. */
  readonly callbacks: Callback[] = []
  readonly url: string
  readonly #server: Server
  readonly #answers = new Map<string, Answering>()
  readonly #counts = new Map<string, number>()
  /** What instants of callbacks are read from. */
  now: () => bigint = systemNow
  /** Callbacks that were not answered yet. */
  open = 0

  private constructor(server: Server) {
    this.#server = server
    // A server that listens on a port has an address with one.
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => void this.#receive(request, response))
  }

  /** A receiver on a free port of this machine. */
  static async start(): Promise<WebhookReceiver> {
    const server = createServer({ keepAliveTimeout: 60_000 })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new WebhookReceiver(server)
  }

  /** What callbacks to this path are answered from now on; 204 before. */
  answer(path: string, answering: Answering): void {
    this.#answers.set(path, answering)
  }

  /** The callbacks that came to a path so far; with a message id, only those of that message. */
  at(path: string, messageId?: string): Callback[] {
    return this.callbacks.filter(
      (callback) =>
        callback.path === path &&
        (messageId === undefined || callback.headers['x-broker-message-id'] === messageId),
    )
  }

  async stop(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close').catch(() => {})
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open += 1
    response.once('close', () => {
      this.open -= 1
    })
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return // the sender went away
    }
    const path = request.url ?? ''
    const callback: Callback = {
      method: request.method ?? '',
      path,
      headers: firstValues(request.rawHeaders),
      rawHeaders: request.rawHeaders,
      body: Buffer.concat(chunks),
      at: this.now(),
    }
    this.callbacks.push(callback)
    const nth = (this.#counts.get(path) ?? 0) + 1
    this.#counts.set(path, nth)
    const answering = this.#answers.get(path) ?? ACCEPTED
    const { status, headers, body } =
      typeof answering === 'function' ? await answering(callback, nth) : answering
    response.writeHead(status, headers).end(body)
  }
}

/** Headers by their names in lower case. */
export function firstValues(rawHeaders: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? ''
    headers[name] ??= rawHeaders[i + 1] ?? ''
  }
  return headers
}
