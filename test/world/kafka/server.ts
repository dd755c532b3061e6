/**
 * Servers on a real broker: in this process, one for many tests with a service for each, or processes of their own. What is asked of
 * them goes over HTTP.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { expect } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import {
  type ServerHere,
  type SpawnedServer,
  type StandbyServer,
  standbyServer,
  startServer,
} from '../server.ts'
import type { StoreKind } from '../stores.ts'
import { violationsIn } from '../verified.ts'
import { kafkaBroker } from './broker-of-run.ts'
import { TOKEN, TOKEN_HASH } from './http.ts'
import { type RecordDraft, record } from './records.ts'
import { newName, type Place, type TestRecord, type Topics } from './topics.ts'

/** A service as a test wants it. Left out: one with a DLQ topic and a retry topic of its own, of one partition each. */
export interface ServiceDraft {
  /** Its name where that matters; otherwise one that nothing else has. */
  readonly name?: string
  /** The service whose DLQ topic it shares. */
  readonly sharesWith?: string
  readonly partitions?: number
  /** What its retry topic is called. */
  readonly retry?: (service: string) => string
  /** Its topic does not exist. */
  readonly hasNoDlqTopic?: boolean
  readonly hasNoRetryTopic?: boolean
  /** Configuration of its DLQ topic and of its retry topic. */
  readonly dlqConfig?: Readonly<Record<string, string>>
  readonly retryConfig?: Readonly<Record<string, string>>
  /** More keys of its configuration. */
  readonly keys?: Readonly<Record<string, unknown>>
}

export interface Service {
  readonly name: string
  readonly dlq: string
  readonly retry: string
}

export interface KafkaServerOptions {
  /** By what the tests call them. */
  readonly services: Readonly<Record<string, ServiceDraft>>
  /** More keys of the section `kafka`. */
  readonly kafka?: Readonly<Record<string, unknown>>
  readonly broker?: Topics
  readonly log?: Logger
  /** Files beside the configuration. */
  readonly files?: Readonly<Record<string, string>>
}

/** What a server on the same store and broker may do differently. */
export interface AnotherOptions {
  readonly clock?: Clock
  readonly log?: Logger
}

export class KafkaServers {
  readonly broker: Topics
  readonly group: string
  readonly storeUrl: string
  readonly configPath: string
  readonly #services: ReadonlyMap<string, Service>
  readonly #log: Logger | undefined
  readonly #dispose: () => Promise<void>
  readonly #others: ServerHere[] = []
  readonly #spawned: SpawnedServer[] = []
  #server: ServerHere | null = null

  private constructor(
    parts: Pick<KafkaServers, 'broker' | 'group' | 'storeUrl' | 'configPath'>,
    services: ReadonlyMap<string, Service>,
    log: Logger | undefined,
    dispose: () => Promise<void>,
  ) {
    this.broker = parts.broker
    this.group = parts.group
    this.storeUrl = parts.storeUrl
    this.configPath = parts.configPath
    this.#services = services
    this.#log = log
    this.#dispose = dispose
  }

  /** Makes topics and store; `start` makes the server. */
  static async prepare(kind: StoreKind, options: KafkaServerOptions): Promise<KafkaServers> {
    const broker = options.broker ?? (await kafkaBroker())
    const services = await makeServices(broker, options.services)
    const [group, place] = [newName('group'), await kind.fresh()]
    const folder = await mkdtemp(join(tmpdir(), 'bartleby-kafka-'))
    const configPath = join(folder, 'bartleby.json')
    const kafka = {
      enabled: true,
      servers: [broker.bootstrap],
      group_id: group,
      token_hashes: [TOKEN_HASH],
      services: Object.fromEntries(
        [...services].map(([called, { name, dlq, retry }]) => [
          name,
          { dlq_topic: dlq, retry_topic: retry, ...options.services[called]?.keys },
        ]),
      ),
      session_timeout_ms: 2_000,
      topic_refresh_ms: 300,
      ...options.kafka,
    }
    await writeFile(configPath, JSON.stringify({ kafka }))
    for (const [name, text] of Object.entries(options.files ?? {})) await writeFile(join(folder, name), text)
    const parts = { broker, group, storeUrl: place.url, configPath }
    return new KafkaServers(parts, services, options.log, async () => {
      await rm(folder, { recursive: true, force: true })
      await place.dispose()
    })
  }

  static async open(kind: StoreKind, options: KafkaServerOptions): Promise<KafkaServers> {
    const here = await KafkaServers.prepare(kind, options)
    await here.start()
    return here
  }

  get url(): string {
    if (this.#server === null) throw new Error('the server does not run')
    return this.#server.url
  }

  async start(options: AnotherOptions = {}): Promise<void> {
    this.#server = await this.#serve(options)
  }

  /** A second server on the same store, in the same group. */
  async another(options: AnotherOptions = {}): Promise<ServerHere> {
    const server = await this.#serve(options)
    this.#others.push(server)
    return server
  }

  /** A server in a process of its own. */
  async spawn(): Promise<SpawnedServer> {
    const server = await this.standby().start()
    this.#spawned.push(server)
    return server
  }

  /** One that has loaded its program and waits. */
  standby(): StandbyServer {
    return standbyServer({ store: this.storeUrl, config: this.configPath, testApi: false })
  }

  async stop(): Promise<void> {
    await this.#server?.stop()
    this.#server = null
  }

  /** Stops all servers, checks the books of the store, and removes everything. */
  async close(): Promise<void> {
    try {
      await this.stop()
      await Promise.all(this.#others.map((server) => server.stop()))
      await Promise.all(this.#spawned.map((server) => server.kill9()))
      await this.expectVerified()
    } finally {
      await this.#dispose()
    }
  }

  /** Every promise of the store is kept: records are accounted for, letters and events and counts say the same. */
  async expectVerified(): Promise<void> {
    expect(await violationsIn(this.storeUrl)).toEqual([])
  }

  /** The service that the tests call so. */
  service(called: string): Service {
    const service = this.#services.get(called)
    if (service === undefined) throw new Error(`no service is called ${called}`)
    return service
  }

  /** Dead events of a service, as hexkit writes them. */
  async die({ name, dlq }: Service, drafts: readonly RecordDraft[]): Promise<readonly Place[]> {
    return this.broker.produce(
      dlq,
      drafts.map((draft) => rawOf({ service: name, ...draft }, draft)),
    )
  }

  ask<Body = unknown>(path: string, init: RequestInit = {}): Promise<Reply<Body>> {
    return ask<Body>(this, path, init)
  }

  /** The events of a preview, with all that there is about them. */
  async preview({ name }: Pick<Service, 'name'>, query = ''): Promise<PreviewEvent[]> {
    const { body } = await this.ask<PreviewEvent[]>(`/kafka/${name}?detail=true${query}`)
    return body
  }

  /** How many events of a service are unresolved. */
  async pending({ name }: Pick<Service, 'name'>): Promise<number> {
    return pending(this, name)
  }

  /** Waits until so many events of a service are unresolved. */
  async expectPending(service: Pick<Service, 'name'>, count: number): Promise<void> {
    await expect.poll(() => this.pending(service), { interval: 20 }).toBe(count)
  }

  /** Waits until everything that lies in the topic was taken in, and that is committed. */
  async expectNoLag({ dlq }: Pick<Service, 'dlq'>, partition = 0): Promise<void> {
    await expect
      .poll(async () => {
        const committed = await this.broker.committedOffset(this.group, dlq, partition)
        return committed === (await this.broker.endOffset(dlq, partition))
      })
      .toBe(true)
  }

  /** What was published for a service. */
  async published({ retry }: Pick<Service, 'retry'>) {
    return this.broker.readTopic(retry)
  }

  /** What history says of Kafka, the newest first: at most a hundred rows. */
  async history(operation?: string): Promise<readonly HistoryItem[]> {
    const only = operation === undefined ? '' : `&operation=${operation}`
    const { body } = await this.ask<{ data: { items: readonly { rowKey: string }[] } }>(
      `/api/history?engine=kafka&limit=100${only}`,
    )
    return Promise.all(
      body.data.items.map(async ({ rowKey }) => {
        const path = `/api/history/kafka/${encodeURIComponent(rowKey)}`
        return (await this.ask<{ data: HistoryItem }>(path)).body.data
      }),
    )
  }

  #serve({ clock, log = this.#log }: AnotherOptions): Promise<ServerHere> {
    return startServer({
      store: this.storeUrl,
      config: this.configPath,
      testApi: false,
      ...(log === undefined ? {} : { log }),
      ...(clock === undefined ? {} : { clock }),
    })
  }
}

/** Asks the API of a server, with its token. */
export async function ask<Body = unknown>(
  { url }: { readonly url: string },
  path: string,
  init: RequestInit = {},
): Promise<Reply<Body>> {
  const headers = { authorization: `Bearer ${TOKEN}`, ...init.headers }
  const answer = await fetch(`${url}${path}`, { ...init, headers })
  const text = await answer.text()
  // The caller promises what it asked for; an empty body is none.
  const body = (text === '' ? null : JSON.parse(text)) as Body
  return { status: answer.status, body, headers: answer.headers }
}

/** How many events of a service are unresolved. */
export async function pending(server: { readonly url: string }, service: string): Promise<number> {
  const { body } = await ask<Record<string, Record<string, number>>>(server, '/kafka/summary')
  return Object.values(body[service] ?? {}).reduce((sum, count) => sum + count, 0)
}

/** What came back: the status, the body when it is JSON, the headers. */
export interface Reply<Body> {
  readonly status: number
  readonly body: Body
  readonly headers: Headers
}

/** A preview event, as far as tests look at it. */
export interface PreviewEvent {
  readonly topic: string
  readonly type_: string
  readonly payload: unknown
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly bartleby?: Readonly<Record<string, unknown>> & {
    readonly dlq_id: string
    readonly attempts: number
    readonly chain: readonly Readonly<Record<string, unknown>>[]
  }
}

/** A row of history, as far as tests look at it. */
export interface HistoryItem {
  readonly operation: string
  readonly status: string
  /** JSON, as a text. */
  readonly output: string | null
  readonly error: string | null
  readonly actor: string | null
}

/** A dead event as it is written to a topic. */
export function rawOf(draft: RecordDraft, { partition, timestampMs }: RecordDraft = draft): TestRecord {
  const { key, value, headers } = record(draft)
  return {
    key,
    value,
    headers: headers.map(({ name, value }) => [name, value] as const),
    ...(partition === undefined ? {} : { partition }),
    ...(timestampMs === undefined ? {} : { timestampMs: BigInt(timestampMs) }),
  }
}

async function makeServices(
  broker: Topics,
  drafts: Readonly<Record<string, ServiceDraft>>,
): Promise<ReadonlyMap<string, Service>> {
  const services = new Map<string, Service>()
  for (const [called, { name = newName(called), sharesWith, retry }] of Object.entries(drafts)) {
    const shared = sharesWith === undefined ? undefined : services.get(sharesWith)
    services.set(called, {
      name,
      dlq: shared?.dlq ?? newName('dlq'),
      retry: retry?.(name) ?? `retry-${name}`,
    })
  }
  const topics = [...services].flatMap(([called, { dlq, retry }]) => {
    const { partitions = 1, sharesWith, dlqConfig = {}, retryConfig = {}, ...draft } = drafts[called] ?? {}
    const hasDlq = sharesWith === undefined && draft.hasNoDlqTopic !== true
    return [
      ...(hasDlq ? [{ name: dlq, partitions, config: dlqConfig }] : []),
      ...(draft.hasNoRetryTopic === true ? [] : [{ name: retry, partitions, config: retryConfig }]),
    ]
  })
  await Promise.all(topics.map((topic) => broker.newTopic(topic)))
  return services
}
