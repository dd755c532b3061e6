/**
 * Connections to the brokers of a cluster, for those who speak its protocol themselves. Brokers answer the requests of a connection one
 * after the other; so what waits on purpose (for records, for a group to gather) asks in a pool of its own.
 */
import type { BaseOptions, Broker, Connection, ConnectionPool } from '@platformatic/kafka'
import { breakConnections, clientOptions, type KafkaLibrary, loadKafkaLibrary, poolOf } from './client.ts'
import type { ConnectionSettings } from './settings.ts'

export type ApiVersions = ReadonlyMap<number, { readonly min: number; readonly max: number }>

const REQUEST_TIMEOUT_MS = 30_000

export class BrokerLink {
  readonly library: KafkaLibrary
  /** For what is answered at once. */
  readonly asking: ConnectionPool
  readonly #options: BaseOptions
  readonly #servers: readonly Broker[]
  readonly #pools: ConnectionPool[] = []
  #brokers: ReadonlyMap<number, Broker> = new Map()
  readonly #versions = new WeakMap<Connection, ApiVersions>()

  /** Loads the library; connects to nothing yet. */
  static async open(settings: ConnectionSettings): Promise<BrokerLink> {
    return new BrokerLink(await loadKafkaLibrary(), settings)
  }

  private constructor(library: KafkaLibrary, settings: ConnectionSettings) {
    this.library = library
    this.#options = clientOptions(settings)
    this.#servers = settings.servers.map((server) => library.parseBroker(server))
    this.asking = this.newPool()
  }

  /** Further connections, closed with the others. Whoever asks in them is told after `requestTimeoutMs` that nobody answers. */
  newPool(requestTimeoutMs = REQUEST_TIMEOUT_MS): ConnectionPool {
    const pool = poolOf(this.library, { ...this.#options, requestTimeout: requestTimeoutMs })
    this.#pools.push(pool)
    return pool
  }

  /** A connection to whichever broker can be reached: those of the configuration first, then the others that are known. */
  any(): Promise<Connection> {
    return this.asking.getFirstAvailable([...this.#servers, ...this.#brokers.values()])
  }

  /** What the cluster said of its brokers. */
  remember(brokers: ReadonlyMap<number, Broker>): void {
    this.#brokers = brokers
  }

  async to(node: number, pool: ConnectionPool = this.asking): Promise<Connection> {
    const broker = this.#brokers.get(node)
    if (broker === undefined) throw new Error(`broker ${node} is not known`)
    return pool.get(broker)
  }

  /** What the broker at the other end can do, by the number of the request; asked once. */
  async versions(connection: Connection): Promise<ApiVersions> {
    const known = this.#versions.get(connection)
    if (known !== undefined) return known
    const { apiKeys } = await this.library.apiVersionsV3.api.async(connection, 'bartleby', '1')
    const versions = new Map(
      apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, { min: minVersion, max: maxVersion }]),
    )
    this.#versions.set(connection, versions)
    return versions
  }

  /** The library throws answers in which anything went wrong; here each part of an answer has an outcome of its own. */
  answered<Answer>(asked: Promise<Answer>): Promise<Answer> {
    return asked.catch((error: unknown) => {
      // Set by the library on errors that it found inside an answer.
      const { response } = error as { readonly response?: Answer }
      if (response === undefined) throw error
      return response
    })
  }

  /** The name of a number in an answer; '' for 0, when all is well. */
  code(errorCode: number): string {
    if (errorCode === 0) return ''
    const names: Readonly<Record<number, string>> = this.library.protocolErrorsCodesById
    return names[errorCode] ?? `ERROR_${errorCode}`
  }

  close(): void {
    for (const pool of this.#pools) {
      // Breaking comes first: closing alone would wait for answers.
      breakConnections(pool)
      pool.close(() => {})
    }
  }
}
