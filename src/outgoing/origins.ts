/** Connections to many receivers: a pool for each origin, closed when nobody has needed it for a while. */
import { type Clock, type Instant, later } from '../core/clock.ts'
import { Connections, type ConnectionsOptions } from './connections.ts'

/** Longer than connections stay open unused, unless their receivers ask for it. */
const IDLE_US = 10_000_000n

interface Pool {
  readonly connections: Connections
  usedAt: Instant
}

export class Origins {
  readonly #clock: Clock
  readonly #options: ConnectionsOptions
  readonly #pools = new Map<string, Pool>()

  /** `options` are those of each origin. */
  constructor(clock: Clock, options: ConnectionsOptions) {
    this.#clock = clock
    this.#options = options
  }

  /** How many origins have a pool. */
  get size(): number {
    return this.#pools.size
  }

  /** The connections to an origin. Take one of them at once. */
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

  /** Closes what was not needed for a while. */
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

  /** Deliveries that are under way fail. */
  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map(({ connections }) => connections.close()))
    this.#pools.clear()
  }
}
