/**
 * A receiver of callbacks that writes down when each began and ended, and which server made it. One job must never be called twice
 * at the same time, and every call carries the bytes that were broadcast. One consumer fails half of its calls.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../crash/random.ts'

export const STEADY = ['steady', 'swift'] as const
/** Fails half of its calls. */
export const SHAKY = 'shaky'
export const CONSUMERS = [...STEADY, SHAKY] as const

/** One call of a consumer's URL. */
export interface Call {
  /** The name of the server that made it. */
  readonly server: string
  readonly beganMs: number
  /** When it was answered, or when its connection broke; null while it is under way. */
  endedMs: number | null
  /** null when it was not answered. */
  status: number | null
}

/** The bytes of a message, which its id tells. They are no text. */
export function payloadOf(messageId: string): Buffer {
  const digest = createHash('sha256').update(messageId).digest()
  const size = 20 + (digest.readUInt16BE(0) % 400)
  return Buffer.alloc(size, digest)
}

export const jobOf = (consumerId: string, messageId: string): string => `${consumerId} ${messageId}`

export class CrashRecorder {
  /** By job, in the order in which they began. */
  readonly calls = new Map<string, Call[]>()
  /** What must never happen, as it happened. */
  readonly violations: string[] = []
  readonly url: string
  answered = 0
  /** Calls that were answered with success. */
  received = 0
  readonly #server: Server
  readonly #random: Random

  private constructor(server: Server, random: Random) {
    this.#server = server
    this.#random = random
    // A server that listens on a port has an address with one.
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => void this.#serve(request, response))
  }

  static async open(random: Random): Promise<CrashRecorder> {
    const server = createServer({ keepAliveTimeout: 120_000 }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new CrashRecorder(server, random)
  }

  callsOf(consumerId: string, messageId: string): readonly Call[] {
    return this.calls.get(jobOf(consumerId, messageId)) ?? []
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers } = request
    const consumerId = request.url?.slice(1) ?? ''
    const messageId = String(headers['x-broker-message-id'])
    const call = this.#begin(jobOf(consumerId, messageId), String(headers['user-agent']))
    // Answered or broken off: whichever comes first ends it.
    response.once('close', () => {
      call.endedMs ??= performance.now()
    })
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return // its server was killed
    }
    if (!Buffer.concat(chunks).equals(payloadOf(messageId)))
      this.violations.push(`${consumerId} got other bytes for ${messageId}`)
    const status = this.#statusFor(consumerId)
    const delayMs = this.#random.chance(0.02) ? this.#random.whole(50, 300) : this.#random.whole(0, 5)
    setTimeout(() => {
      if (call.endedMs !== null || status === null) return
      call.endedMs = performance.now()
      call.status = status
      this.answered += 1
      if (status < 300) this.received += 1
      response.writeHead(status).end()
    }, delayMs)
  }

  #begin(job: string, server: string): Call {
    const calls = this.calls.get(job) ?? []
    const underway = calls.find(({ endedMs }) => endedMs === null)
    if (underway !== undefined)
      this.violations.push(`${job}: called by ${server} and ${underway.server} at once`)
    const call: Call = { server, beganMs: performance.now(), endedMs: null, status: null }
    this.calls.set(job, [...calls, call])
    return call
  }

  /** null: it never answers. */
  #statusFor(consumerId: string): number | null {
    if (consumerId !== SHAKY || this.#random.chance(0.5)) return 204
    if (this.#random.chance(0.005)) return null
    return [500, 503, 404, 302][this.#random.whole(0, 3)] ?? 500
  }
}
