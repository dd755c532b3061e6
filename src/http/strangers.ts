/**
 * Connections that have shown no token, counted by the address that they come from: nobody can take all that a server has without one. A
 * connection is known from its first request with a token that is right, and is then bounded no more.
 *
 * Beyond the limit a connection has a few seconds to show a token; without one its first request is answered 429. Twice as many are not
 * even accepted. Proxies that are trusted share connections among their clients: there requests are counted in place of connections.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { pathOf } from '../api/facade.ts'
import { type BartlebyError, failure } from '../core/errors.ts'
import type { ClientAddresses } from './client-address.ts'
import type { Facades } from './facades.ts'
import { isHealth } from './hosts.ts'

/** How long a connection beyond the limit may take to show a token. */
const GRACE_MS = 5_000

export interface StrangersOptions {
  /** Connections without a token, from one address. */
  readonly most: number
  readonly addresses: ClientAddresses
}

/** Bounds the connections without a token of a server that asks for tokens. Its hooks run after the gate. */
export function boundStrangers(app: FastifyInstance, facades: Facades, options: StrangersOptions): void {
  /** Some APIs have tokens of their own, which they look at themselves. */
  const isProvedLater = (request: FastifyRequest): boolean =>
    facades.of(request.url).isProvedLater?.(request) === true
  const strangers = new Strangers(options)
  strangers.watch(app.server)
  app.addHook('onRequest', (request, reply, done) => {
    if (request.caller !== undefined) strangers.knows(request)
    else if (!isHealth(pathOf(request.url)) && !isProvedLater(request)) {
      const refusal = strangers.refusal(request, reply)
      if (refusal !== null) {
        facades.sendError(request, reply, refusal)
        return
      }
    }
    done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    const isProved = isProvedLater(request) && reply.statusCode < 400
    if (request.caller !== undefined || isProved) strangers.knows(request)
    done()
  })
}

class Strangers {
  readonly #options: StrangersOptions
  readonly #counts = new Map<string, number>()
  /** What ends the counting of a connection, or of a request that came through a proxy. */
  readonly #leaving = new WeakMap<object, () => void>()
  /** Connections that are beyond the limit. */
  readonly #beyond = new WeakSet<Socket>()

  constructor(options: StrangersOptions) {
    this.#options = options
  }

  /** Counts the connections of a server from now on. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#accept(socket))
  }

  #accept(socket: Socket): void {
    const { most, addresses } = this.#options
    const address = addresses.ofConnection(socket.remoteAddress)
    if (address === null) return
    const count = this.#enter(socket, address)
    socket.once('close', () => this.#leave(socket))
    if (count <= most) return
    if (count > 2 * most) {
      socket.destroy()
      return
    }
    this.#beyond.add(socket)
    const timer = setTimeout(() => {
      if (this.#beyond.has(socket)) socket.destroy()
    }, GRACE_MS)
    timer.unref()
  }

  /** A request that has not shown a token: why it is not served, or null. Call it once for each. */
  refusal(request: FastifyRequest, reply: FastifyReply): BartlebyError | null {
    const { most, addresses } = this.#options
    const { raw, clientAddress } = request
    const { socket } = raw
    if (this.#beyond.has(socket)) {
      reply.raw.once('finish', () => socket.destroySoon())
      return failure('strangers_limited', { limit: most })
    }
    if (addresses.ofConnection(socket.remoteAddress) !== null) return null
    const count = this.#enter(raw, clientAddress)
    reply.raw.once('close', () => this.#leave(raw))
    return count > most ? failure('strangers_limited', { limit: most }) : null
  }

  /** The request has shown a token that is right. */
  knows({ raw }: FastifyRequest): void {
    this.#beyond.delete(raw.socket)
    this.#leave(raw.socket)
    this.#leave(raw)
  }

  #enter(counted: object, address: string): number {
    const count = (this.#counts.get(address) ?? 0) + 1
    this.#counts.set(address, count)
    this.#leaving.set(counted, () => {
      const left = (this.#counts.get(address) ?? 1) - 1
      if (left === 0) this.#counts.delete(address)
      else this.#counts.set(address, left)
    })
    return count
  }

  #leave(counted: object): void {
    this.#leaving.get(counted)?.()
    this.#leaving.delete(counted)
  }
}
