/**
 * A gate before a broker that knows requests by their kind: a test can stop the server under test at a certain step, with the request
 * on this side of the broker, or with the answer. Other clients pass. The broker is to tell its clients the gate's port.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** Kinds of requests, by their numbers in the protocol. */
export const REQUEST = { produce: 0, offsetCommit: 8 } as const

export interface Turnstile {
  readonly port: number
  /** Stops the next request of this kind, or its answer, and what comes behind it; resolves when there is one. */
  stop(request: keyof typeof REQUEST, side: 'request' | 'answer'): Promise<void>
  /** Lets everything through that was stopped, and all that comes. */
  go(): void
  /** Breaks the connections that were stopped, with what waits in them, and lets through what comes on others. */
  drop(): void
  close(): Promise<void>
}

interface Stop {
  readonly kind: number
  readonly side: 'request' | 'answer'
  readonly met: () => void
}

/** What the server under test calls itself. */
const CLIENT = 'bartleby'

/** Puts one before the port. */
export async function turnstileTo(port: number): Promise<Turnstile> {
  const lines = new Set<Line>()
  let stopAt: Stop | null = null
  const listener = createServer((near) => {
    const line = new Line(near, connect(port, '127.0.0.1'), () => stopAt)
    lines.add(line)
    near.once('close', () => lines.delete(line))
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('the turnstile has no port')
  return {
    port: address.port,
    stop(request, side) {
      const { promise, resolve } = Promise.withResolvers<void>()
      stopAt = { kind: REQUEST[request], side, met: resolve }
      return promise
    },
    go() {
      stopAt = null
      for (const line of lines) line.go()
    },
    drop() {
      stopAt = null
      for (const line of lines) if (line.isStopped) line.break()
    },
    async close() {
      const closed = once(listener, 'close')
      listener.close()
      for (const line of lines) line.break()
      await closed
    },
  }
}

/** One connection. */
class Line {
  readonly #near: Socket
  readonly #far: Socket
  readonly #stop: () => Stop | null
  #begun = Buffer.alloc(0)
  /** What waits, on a line that was stopped there. */
  #requests: Buffer[] | null = null
  #answers: Buffer[] | null = null

  constructor(near: Socket, far: Socket, stop: () => Stop | null) {
    this.#near = near
    this.#far = far
    this.#stop = stop
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      // Broken connections are what tests do here.
      socket.on('error', () => socket.destroy())
      socket.once('close', () => other.destroy())
    }
    near.on('data', (bytes: Buffer) => this.#ask(bytes))
    far.on('data', (bytes: Buffer) => this.#answers?.push(bytes) ?? near.write(bytes))
  }

  go(): void {
    for (const request of this.#requests ?? []) this.#far.write(request)
    for (const answer of this.#answers ?? []) this.#near.write(answer)
    this.#requests = null
    this.#answers = null
  }

  get isStopped(): boolean {
    return this.#requests !== null || this.#answers !== null
  }

  break(): void {
    this.#requests = null
    this.#answers = null
    this.#near.destroy()
    this.#far.destroy()
  }

  #ask(bytes: Buffer): void {
    this.#begun = Buffer.concat([this.#begun, bytes])
    for (;;) {
      if (this.#begun.length < 4) return
      const length = 4 + this.#begun.readInt32BE(0)
      if (this.#begun.length < length) return
      this.#pass(this.#begun.subarray(0, length))
      this.#begun = this.#begun.subarray(length)
    }
  }

  #pass(request: Buffer): void {
    const stop = this.#stop()
    const isMeant = stop !== null && kindOf(request) === stop.kind && clientOf(request) === CLIENT
    if (isMeant && stop.side === 'request') this.#requests ??= []
    if (isMeant && stop.side === 'answer') this.#answers ??= []
    this.#requests?.push(request) ?? this.#far.write(request)
    if (isMeant) stop.met()
  }
}

/** Requests begin: length, kind, version, number, name of the client. */
const kindOf = (request: Buffer): number => request.readInt16BE(4)
const clientOf = (request: Buffer): string =>
  request.subarray(14, 14 + Math.max(0, request.readInt16BE(12))).toString()
