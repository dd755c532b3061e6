/**
 * A receiver of callbacks that writes down when each began and ended, and which server made it. One job must never be called twice
 * at the same time, and every call carries the bytes that were broadcast. One consumer fails half of its calls. It runs in a thread of
 * its own: whatever else the test does must not make it look away.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import type { Random } from '../world/random.ts'

/** Fails half of its calls. */
export const SHAKY = 'shaky'
export const CONSUMERS = ['steady', 'swift', SHAKY] as const

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

/** What was seen. */
export interface Record {
  /** By job, in the order in which they began. */
  readonly calls: ReadonlyMap<string, readonly Call[]>
  /** What must never happen, as it happened. */
  readonly violations: readonly string[]
  /** Calls that were answered. */
  readonly answered: number
  /** Calls that were answered with success. */
  readonly received: number
  /** For how long it could not look, at the most. */
  readonly longestLagMs: number
}

/** The bytes of a message, which its id tells. They are no text. */
export function payloadOf(messageId: string): Buffer {
  const digest = createHash('sha256').update(messageId).digest()
  return Buffer.alloc(20 + (digest.readUInt16BE(0) % 400), digest)
}

export const jobOf = (consumerId: string, messageId: string): string => `${consumerId} ${messageId}`

/** Milliseconds by a clock that all threads have in common. */
export const nowMs = (): number => performance.timeOrigin + performance.now()

/** The recorder, as the test sees it. */
export class Recorder {
  readonly url: string
  readonly #thread: Worker

  private constructor(thread: Worker, url: string) {
    this.#thread = thread
    this.url = url
  }

  static async start(seed: number): Promise<Recorder> {
    const thread = new Worker(new URL('./crash-recorder-thread.ts', import.meta.url), { workerData: seed })
    const [url] = await once(thread, 'message')
    return new Recorder(thread, url)
  }

  /** What was seen so far. */
  async record(): Promise<Record> {
    const answer = once(this.#thread, 'message')
    this.#thread.postMessage('record')
    // The thread sends nothing else.
    const [record] = (await answer) as [Record]
    return record
  }

  async stop(): Promise<void> {
    await this.#thread.terminate()
  }
}

/** The recorder itself. */
export class RecordingServer {
  readonly #calls = new Map<string, Call[]>()
  readonly #violations: string[] = []
  readonly #lag = monitorEventLoopDelay({ resolution: 10 })
  readonly #server: Server
  readonly #random: Random
  #answered = 0
  #received = 0

  constructor(random: Random) {
    this.#random = random
    this.#server = createServer({ keepAliveTimeout: 120_000 })
    this.#server.on('request', (request, response) => void this.#serve(request, response))
  }

  /** Gives its URL. */
  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#lag.enable()
    // A server that listens on a port has an address with one.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  record(): Record {
    return {
      calls: this.#calls,
      violations: this.#violations,
      answered: this.#answered,
      received: this.#received,
      longestLagMs: this.#lag.max / 1e6,
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers } = request
    const consumerId = request.url?.slice(1) ?? ''
    const messageId = String(headers['x-broker-message-id'])
    const call = this.#begin(jobOf(consumerId, messageId), String(headers['user-agent']))
    // Answered or broken off: whichever comes first ends it.
    response.once('close', () => {
      call.endedMs ??= nowMs()
    })
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return // its server was killed
    }
    if (!Buffer.concat(chunks).equals(payloadOf(messageId)))
      this.#violations.push(`${consumerId} got other bytes for ${messageId}`)
    const status = this.#statusFor(consumerId)
    const delayMs = this.#random.chance(0.02) ? this.#random.whole(50, 300) : this.#random.whole(0, 5)
    setTimeout(() => {
      if (call.endedMs !== null || status === null) return
      call.endedMs = nowMs()
      call.status = status
      this.#answered += 1
      if (status < 300) this.#received += 1
      response.writeHead(status).end()
    }, delayMs)
  }

  #begin(job: string, server: string): Call {
    const calls = this.#calls.get(job) ?? []
    this.#calls.set(job, calls)
    const other = calls.find(({ endedMs }) => endedMs === null)
    if (other !== undefined) this.#violations.push(`${job}: called by ${server} and ${other.server} at once`)
    const call: Call = { server, beganMs: nowMs(), endedMs: null, status: null }
    calls.push(call)
    return call
  }

  /** null: it never answers. */
  #statusFor(consumerId: string): number | null {
    if (consumerId !== SHAKY || this.#random.chance(0.5)) return 204
    if (this.#random.chance(0.005)) return null
    return [500, 503, 404, 302][this.#random.whole(0, 3)] ?? 500
  }
}
