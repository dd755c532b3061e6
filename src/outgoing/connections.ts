/**
 * Kept connections to one receiver, each carrying one delivery at a time. When all are in use, deliveries wait in order; a wait can be
 * aborted. Unused connections are closed after some seconds.
 */
import type { Client } from 'undici'
import { type Clock, type Instant, later } from '../core/clock.ts'
import { Semaphore } from '../core/semaphore.ts'
import { type Connector, type ConnectorTerms, connectorOf } from './connector.ts'
import { HttpDeliveryFailed } from './exchange.ts'

interface ConnectionsOptions extends ConnectorTerms {
  readonly most: number
}

export interface Connection {
  readonly client: Client
  /** Kept since an earlier delivery: the receiver may have closed it meanwhile. */
  readonly wasKept: boolean
  /** Ends it at once, also while it is being opened. */
  abandon(reason: Error): void
}

/** However long a receiver offers to keep it open. */
const LONGEST_IDLE_MS = 30_000

export class Connections {
  readonly #origin: string
  readonly #terms: ConnectorTerms
  readonly #turns: Semaphore
  readonly #idle: Client[] = []
  readonly #all = new Set<Client>()
  #connector: Connector | undefined
  #inUse = 0
  #closed = false

  constructor(origin: string, { most, ...terms }: ConnectionsOptions) {
    this.#origin = origin
    this.#terms = terms
    this.#turns = new Semaphore(most)
  }

  get isUsed(): boolean {
    return this.#inUse > 0
  }

  /** A free connection, or a new one with `fresh`; rejects with the signal's reason when it is aborted first. */
  async take(signal: AbortSignal, { fresh = false } = {}): Promise<Connection> {
    this.#inUse += 1
    try {
      return await this.#take(signal, fresh)
    } catch (error) {
      this.#inUse -= 1
      throw error
    }
  }

  async #take(signal: AbortSignal, fresh: boolean): Promise<Connection> {
    this.#connector ??= await connectorOf(this.#origin, this.#terms)
    const connector = this.#connector
    await this.#turns.take(signal)
    if (signal.aborted || this.#closed) {
      this.#turns.giveBack()
      signal.throwIfAborted()
      throw new HttpDeliveryFailed('the transport is closed')
    }
    // The one used last, so that surplus ones are closed for want of use.
    const kept = fresh ? undefined : this.#idle.pop()
    const client = kept ?? this.#open(connector)
    return { client, wasKept: kept !== undefined, abandon: (reason) => connector.abandon(client, reason) }
  }

  /** A failed delivery leaves nothing behind for the next. */
  giveBack({ client }: Connection, isSound: boolean): void {
    this.#inUse -= 1
    if (isSound && !this.#closed) this.#idle.push(client)
    else this.#drop(client)
    this.#turns.giveBack()
  }

  /** Running deliveries fail. */
  async close(): Promise<void> {
    this.#closed = true
    this.#idle.length = 0
    const closed = new Error('the transport was closed')
    await Promise.all([...this.#all].map((client) => this.#connector?.abandon(client, closed)))
    this.#all.clear()
  }

  #open(connector: Connector): Client {
    const client = connector.open(LONGEST_IDLE_MS)
    this.#all.add(client)
    client.on('disconnect', () => {
      const at = this.#idle.indexOf(client)
      if (at < 0) return
      this.#idle.splice(at, 1)
      this.#drop(client)
    })
    return client
  }

  #drop(client: Client): void {
    this.#all.delete(client)
    void client.destroy()
  }
}

/** Longer than connections stay open unused, unless their receivers ask for it. */
const IDLE_US = 10_000_000n

interface Pool {
  readonly connections: Connections
  usedAt: Instant
}

/** Connections to many receivers: a pool per origin, closed when unused for a while. */
export class Origins {
  readonly #clock: Clock
  readonly #options: ConnectionsOptions
  readonly #pools = new Map<string, Pool>()

  /** `options` are those of each origin. */
  constructor(clock: Clock, options: ConnectionsOptions) {
    this.#clock = clock
    this.#options = options
  }

  get size(): number {
    return this.#pools.size
  }

  /** Take one of them at once: an unused pool is swept. */
  to(origin: string): Connections {
    const usedAt = this.#clock.now()
    const known = this.#pools.get(origin)
    if (known !== undefined) {
      known.usedAt = usedAt
      return known.connections
    }
    const connections = new Connections(origin, this.#options)
    this.#pools.set(origin, { connections, usedAt })
    return connections
  }

  async sweep(): Promise<void> {
    const now = this.#clock.now()
    await Promise.all(
      [...this.#pools].map(([origin, { connections, usedAt }]) => {
        if (connections.isUsed || later(usedAt, IDLE_US) > now) return undefined
        this.#pools.delete(origin)
        return connections.close()
      }),
    )
  }

  /** Running deliveries fail. */
  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map(({ connections }) => connections.close()))
    this.#pools.clear()
  }
}
