/**
 * Connections to one receiver, kept open between deliveries and opened when they are needed. Each carries one delivery
 * at a time. When all that may be open are in use, deliveries wait in their order; a wait can be ended.
 */
import type { Client } from 'undici'
import { HttpDeliveryFailed } from './http-answer.ts'
import { Turns } from './turns.ts'

const CONNECT_MS = 10_000

/** A connection that is in use. */
export interface Connection {
  readonly client: Client
  /** It was kept open since an earlier delivery: the receiver may have closed it meanwhile. */
  readonly wasKept: boolean
}

export class Connections {
  readonly #origin: string
  readonly #turns: Turns
  readonly #idle: Client[] = []
  readonly #all = new Set<Client>()
  #make: (() => Client) | undefined
  #closed = false

  constructor(origin: string, most: number) {
    this.#origin = origin
    this.#turns = new Turns(most)
  }

  /**
   * A connection that is free, or a new one when that is asked for; rejects with the signal's reason when it is aborted
   * before there is one.
   */
  async take(signal: AbortSignal, { fresh = false } = {}): Promise<Connection> {
    if (this.#make === undefined) this.#make = await clientMaker(this.#origin)
    await this.#turns.take(signal)
    if (signal.aborted || this.#closed) {
      this.#turns.giveBack()
      signal.throwIfAborted()
      throw new HttpDeliveryFailed('the transport is closed')
    }
    // The one that was used last: those that are not needed are closed for want of use.
    const kept = fresh ? undefined : this.#idle.pop()
    const client = kept ?? this.#make()
    this.#all.add(client)
    return { client, wasKept: kept !== undefined }
  }

  /** The delivery is over. One that failed leaves nothing behind for the next. */
  giveBack({ client }: Connection, isSound: boolean): void {
    if (isSound && !this.#closed) this.#idle.push(client)
    else {
      this.#all.delete(client)
      void client.destroy()
    }
    this.#turns.giveBack()
  }

  /** Deliveries that are under way fail. */
  async close(): Promise<void> {
    this.#closed = true
    this.#idle.length = 0
    const closed = new Error('the transport was closed')
    await Promise.all([...this.#all].map((client) => client.destroy(closed)))
  }
}

async function clientMaker(origin: string): Promise<() => Client> {
  // Loading it takes 0.2 s and 25 MB, which applications that deliver otherwise need not spend.
  const { buildConnector, Client } = await import('undici')
  // One for all, so that TLS sessions can be taken up again. HTTP/1.1 only: what happens to one message on its
  // connection happens to no other.
  const connect = buildConnector({ timeout: CONNECT_MS, allowH2: false })
  // The exchange has its own limits of time.
  return () => new Client(origin, { connect, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
}
