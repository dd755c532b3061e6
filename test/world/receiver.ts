/**
 * The other end of what leaves: a real server on the loopback that records every request, with the instant at which it came, and answers
 * as it is told to, well or badly. It never asks whether a request was expected: tests compare what came with what should have come.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createRawServer, type Server, type Socket } from 'node:net'
import { afterEach } from 'vitest'
import { systemNow } from './time.ts'

export interface Received {
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

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** An answer for all, or one for each; a promise holds the answer back. */
export type Answering = Answer | ((request: Received, nth: number) => Answer | Promise<Answer>)

/** Answers by hand, or not at all. */
export type Respond = (response: ServerResponse, request: Received) => void

export class Receiver {
  /** Everything that came, in order. */
  readonly requests: Received[] = []
  readonly sockets: Socket[] = []
  /** What instants of requests are read from. */
  now: () => bigint = systemNow
  /** Requests that were not answered yet. */
  open = 0
  readonly #server: Server
  readonly #script = new Map<string, Answering>()
  readonly #counts = new Map<string, number>()
  readonly #arrivals: (() => void)[] = []

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket: Socket) => {
      this.sockets.push(socket)
      // Whatever becomes of a connection is what the test is about.
      socket.on('error', () => {})
    })
  }

  /** On a free port; without `respond` it goes by its script, which begins with 204 for everything. */
  static start(respond?: Respond): Promise<Receiver> {
    const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      void receiver.#receive(request, response, respond)
    })
    const receiver = new Receiver(server)
    return receiver.#listen()
  }

  /** Answers with `answer` as soon as anything comes in on a connection, whatever that is. */
  static startRaw(answer: (socket: Socket) => void): Promise<Receiver> {
    const server = createRawServer((socket) => {
      socket.once('data', (body: Buffer) => {
        answer(socket)
        receiver.#arrive({ method: '', path: '', headers: {}, rawHeaders: [], body, at: receiver.now() })
      })
    })
    const receiver = new Receiver(server)
    return receiver.#listen()
  }

  async #listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  get port(): number {
    // It listens on a port, not on a path.
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The URL of a path. */
  hook(path = '/events'): string {
    return `${this.url}${path}`
  }

  get openConnections(): number {
    return this.sockets.filter((socket) => !socket.destroyed).length
  }

  /** What requests to this path are answered from now on; 204 before. */
  answer(path: string, answering: Answering): void {
    this.#script.set(path, answering)
  }

  /** The requests that came to a path so far; with a message id, only those of that message. */
  at(path: string, messageId?: string): Received[] {
    return this.requests.filter(
      (request) =>
        request.path === path &&
        (messageId === undefined || request.headers['x-broker-message-id'] === messageId),
    )
  }

  /** Resolves when `count` requests have arrived. */
  async gets(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((resolve) => this.#arrivals.push(resolve))
  }

  /** Resolves when all connections made so far are gone. */
  async allClosed(): Promise<void> {
    const open = this.sockets.filter((socket) => !socket.destroyed)
    await Promise.all(open.map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    if (!this.#server.listening) return
    this.#server.close()
    await once(this.#server, 'close')
  }

  #arrive(request: Received): void {
    this.requests.push(request)
    for (const tell of this.#arrivals.splice(0)) tell()
  }

  async #receive(request: IncomingMessage, response: ServerResponse, respond?: Respond): Promise<void> {
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
    const { method = '', url: path = '', rawHeaders } = request
    const headers = firstValues(rawHeaders)
    const received = { method, path, headers, rawHeaders, body: Buffer.concat(chunks), at: this.now() }
    if (respond !== undefined) {
      respond(response, received)
      this.#arrive(received)
      return
    }
    this.#arrive(received)
    const nth = (this.#counts.get(path) ?? 0) + 1
    this.#counts.set(path, nth)
    const answering = this.#script.get(path) ?? { status: 204 }
    const answer = typeof answering === 'function' ? await answering(received, nth) : answering
    response.writeHead(answer.status, answer.headers).end(answer.body)
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

const opened: { close?(): unknown }[] = []

/** Call it once in a file: closes what its tests have opened, the last first. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const each of opened.splice(0).reverse()) await each.close?.()
  })
}

/** Remembers what is to be closed after the test. */
export function closing<T extends { close?(): unknown }>(each: T): T {
  opened.push(each)
  return each
}

export const receiving = async (respond: Respond): Promise<Receiver> => closing(await Receiver.start(respond))
export const receivingRaw = async (answer: (socket: Socket) => void): Promise<Receiver> =>
  closing(await Receiver.startRaw(answer))
export const answering = (status: number, headers: Record<string, string> = {}, body = '') =>
  receiving((response) => void response.writeHead(status, headers).end(body))
