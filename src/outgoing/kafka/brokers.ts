/**
 * Connections to the brokers of a cluster for those who speak its protocol themselves, and the topics they have. The library's clients are
 * not used: here each request has a version of our choice, and each part of an answer its own outcome.
 */
import { isIP } from 'node:net'
import type { BaseOptions, Broker, Connection, ConnectionPool } from '@platformatic/kafka'
import type { ConnectionSettings, FoundTopic, TopicsFound } from './connection.ts'
import { type KafkaLibrary, loadKafkaLibrary } from './library.ts'

export function clientOptions({ servers, clientId, tls, sasl }: ConnectionSettings): BaseOptions {
  return {
    clientId,
    bootstrapBrokers: [...servers],
    autocreateTopics: false,
    connectTimeout: 5_000,
    ...(tls === null ? {} : tlsOptions(tls, servers)),
    ...(sasl === null
      ? {}
      : {
          sasl: {
            mechanism: sasl.mechanism,
            ...given({ username: sasl.username, password: sasl.password, token: sasl.token }),
          },
        }),
  }
}

function tlsOptions(
  { ca, cert, key, passphrase, checkHostname }: NonNullable<ConnectionSettings['tls']>,
  servers: readonly string[],
): Pick<BaseOptions, 'tls' | 'tlsServerName'> {
  return {
    tls: {
      ...given({ ca, cert, key, passphrase }),
      // The chain is checked in any case; this is about the name in it.
      ...(checkHostname ? {} : { checkServerIdentity: () => undefined }),
    },
    // Proxies choose the broker by it. An address is no name.
    tlsServerName: servers.some((server) => isIP(hostOf(server)) === 0),
  }
}

/** Of `HOST:PORT`, without the brackets of an IPv6 address. */
export const hostOf = (server: string): string =>
  server.slice(0, server.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1')

/** Without nulls, which the library takes for values. */
const given = <Key extends string>(options: Readonly<Record<Key, string | null>>): { [K in Key]?: string } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null)) as { [K in Key]?: string }

/** Errors reach whoever waits for a connection; an unheard error event would end the process. */
function quietPool(library: KafkaLibrary, options: BaseOptions): ConnectionPool {
  const pool = new library.ConnectionPool(options.clientId, options)
  return pool.on('connecting', ({ connection }) => connection.on('error', () => {}))
}

export function breakConnections(pool: ConnectionPool): void {
  for (const [, connection] of pool) connection.socket?.destroy()
}

type ApiVersions = ReadonlyMap<number, { readonly min: number; readonly max: number }>

const REQUEST_TIMEOUT_MS = 30_000
const GROUP_KEY_TYPE = 0

/** Codes of a broker that does not coordinate a group, or not yet: an unused cluster first creates what groups need. */
export const COORDINATOR_AWAY = [
  'NOT_COORDINATOR',
  'COORDINATOR_NOT_AVAILABLE',
  'COORDINATOR_LOAD_IN_PROGRESS',
] as const

/** A broker answers one connection's requests in order, so waiting requests (for records, for a group to gather) have pools of their own. */
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

  /** Further connections, closed with the others. Requests in them time out after `requestTimeoutMs`. */
  newPool(requestTimeoutMs = REQUEST_TIMEOUT_MS): ConnectionPool {
    const pool = quietPool(this.library, { ...this.#options, requestTimeout: requestTimeoutMs })
    this.#pools.push(pool)
    return pool
  }

  /** Any reachable broker: configured ones first, then others that are known. */
  any(): Promise<Connection> {
    return this.asking.getFirstAvailable([...this.#servers, ...this.#brokers.values()])
  }

  remember(brokers: ReadonlyMap<number, Broker>): void {
    this.#brokers = brokers
  }

  async to(node: number, pool: ConnectionPool = this.asking): Promise<Connection> {
    const broker = this.#brokers.get(node)
    if (broker === undefined) throw new Error(`broker ${node} is not known`)
    return pool.get(broker)
  }

  async coordinatorOf(group: string): Promise<Broker> {
    const { api } = this.library.findCoordinatorV3
    const asked = await api.async(await this.any(), GROUP_KEY_TYPE, [group])
    const { host = '', port = 0 } = asked.coordinators[0] ?? {}
    return { host, port }
  }

  /** Versions by request number, asked once per connection. */
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

  /** The library throws answers in which anything went wrong; here each part has its own outcome. */
  answered<Answer>(asked: Promise<Answer>): Promise<Answer> {
    return asked.catch((error: unknown) => {
      // Set by the library on errors inside an answer.
      const { response } = error as { readonly response?: Answer }
      if (response === undefined) throw error
      return response
    })
  }

  /** The name of an error code; '' for 0. */
  code(errorCode: number): string {
    if (errorCode === 0) return ''
    const names: Readonly<Record<number, string>> = this.library.protocolErrorsCodesById
    return names[errorCode] ?? `ERROR_${errorCode}`
  }

  close(): void {
    for (const pool of this.#pools) {
      // Closing alone would wait for answers.
      breakConnections(pool)
      pool.close(() => {})
    }
  }
}

const METADATA_KEY = 3
const TOPIC_AUTHORIZATION_FAILED = 29

/** Bits of rights in an answer, and the value when nobody asked. */
const READ = 1 << 3
const WRITE = 1 << 4
const NOT_SAID = -2_147_483_648

/** Asks any reachable broker. Rights only on demand: brokers write an audit line for each that is not granted. */
export async function lookUpTopics(
  link: BrokerLink,
  topics: readonly string[],
  { withRights = false } = {},
): Promise<TopicsFound> {
  const { library } = link
  const connection = await link.any()
  const newest = (await link.versions(connection)).get(METADATA_KEY)?.max ?? 0
  const answer =
    newest >= 12
      ? await link.answered(library.metadataV12.api.async(connection, [...topics], false, withRights))
      : await link.answered(library.metadataV9.api.async(connection, [...topics], false, false, withRights))
  const found = new Map<string, FoundTopic>()
  const missing: string[] = []
  const forbidden: string[] = []
  for (const topic of answer.topics) {
    const name = topic.name ?? ''
    if (topic.errorCode === TOPIC_AUTHORIZATION_FAILED) forbidden.push(name)
    else if (topic.errorCode !== 0 || topic.partitions.length === 0) missing.push(name)
    else {
      const leaders: number[] = []
      for (const { partitionIndex, leaderId } of topic.partitions) leaders[partitionIndex] = leaderId
      const rights = topic.topicAuthorizedOperations
      const may = (right: number) => (rights === NOT_SAID ? null : (rights & right) !== 0)
      const id = 'topicId' in topic ? String(topic.topicId) : ''
      found.set(name, { id, leaders, mayRead: may(READ), mayWrite: may(WRITE) })
    }
  }
  link.remember(new Map(answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }])))
  return { found, missing, forbidden }
}

/** Whether topics or partitions changed, or a topic was created anew. Leaders move all the time. */
export function areOthers(before: TopicsFound, after: TopicsFound): boolean {
  if (before.found.size !== after.found.size) return true
  for (const [name, { id, leaders }] of before.found) {
    const now = after.found.get(name)
    if (now === undefined || now.id !== id || now.leaders.length !== leaders.length) return true
  }
  return before.forbidden.join() !== after.forbidden.join()
}
