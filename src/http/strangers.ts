/**
 * Connections without a token, counted by address, so that nobody can take all that a server has. One that shows a right token is counted
 * no more. Beyond the limit a connection has a few seconds to show one, or its first request is answered 429; beyond twice the limit it is
 * not accepted. Trusted proxies share connections among clients: there requests are counted instead.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { pathOf } from '../api/facade.ts'
import { type BartlebyError, failure } from '../core/errors.ts'
import type { ClientAddresses } from './client-address.ts'
import type { Facades } from './facades.ts'
import { isHealth } from './hosts.ts'

/** Time for a connection beyond the limit to show a token. */
const GRACE_MS = 5_000

interface StrangersOptions {
  /** Connections without a token per address. */
  readonly most: number
  readonly addresses: ClientAddresses
}

/** For a server that asks for tokens. Its hooks run after the gate. */
export function boundStrangers(app: FastifyInstance, facades: Facades, options: StrangersOptions): void {
  /** Some APIs check tokens of their own. */
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
  /** Ends the counting of a connection, or of a request through a proxy. */
  readonly #leaving = new WeakMap<object, () => void>()
  readonly #beyond = new WeakSet<Socket>()

  constructor(options: StrangersOptions) {
    this.#options = options
  }

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

  /** Why a request without a token is not served. Call it once per request. */
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
