/** For tests only: receivers on the loopback that answer as they are told, well or badly. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createRawServer, type Server, type Socket } from 'node:net'

export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

class Receiver {
  readonly requests: Received[] = []
  readonly sockets: Socket[] = []
  readonly #server: Server
  readonly #arrivals: (() => void)[] = []

  constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket: Socket) => {
      this.sockets.push(socket)
      // Whatever becomes of a connection is what the test is about.
      socket.on('error', () => {})
    })
  }

  async listen(): Promise<this> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return this
  }

  get port(): number {
    // It listens on a port, not on a path.
    return (this.#server.address() as AddressInfo).port
  }

  url(path = '/events'): string {
    return `http://127.0.0.1:${this.port}${path}`
  }

  get openConnections(): number {
    return this.sockets.filter((socket) => !socket.destroyed).length
  }

  arrived(request: Received): void {
    this.requests.push(request)
    for (const tell of this.#arrivals.splice(0)) tell()
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
}

export type { Receiver }

/** Takes whole requests and answers with `answer`. */
export function httpReceiver(
  answer: (response: ServerResponse, request: Received) => void,
): Promise<Receiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request
      const received = { method, path, headers, body: Buffer.concat(chunks) }
      answer(response, received)
      receiver.arrived(received)
    })
  })
  const receiver = new Receiver(server)
  return receiver.listen()
}

/** Answers with `answer` as soon as anything of a request comes in on a connection, whatever that is. */
export function rawReceiver(answer: (socket: Socket) => void): Promise<Receiver> {
  const server = createRawServer((socket) => {
    socket.once('data', (body: Buffer) => {
      answer(socket)
      receiver.arrived({ method: '', path: '', headers: {}, body })
    })
  })
  const receiver = new Receiver(server)
  return receiver.listen()
}
