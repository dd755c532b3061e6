/** A server that takes dead events out of a real broker, as users run it, and what is asked of it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kafkaBroker, newName, type Place, type Topics } from '../world/kafka.ts'
import { TOKEN, TOKEN_HASH } from '../world/kafka-http.ts'
import { type RecordDraft, record } from '../world/kafka-records.ts'
import { type SpawnedServer, standbyServer } from '../world/server.ts'
import type { StoreKind } from '../world/stores.ts'

export interface DeskOptions {
  readonly partitions?: number
  /** More keys of the section `kafka`, and of its one service. */
  readonly kafka?: Readonly<Record<string, unknown>>
  readonly service?: Readonly<Record<string, unknown>>
  readonly broker?: Topics
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

/** A broker's topics for one service, a store, and servers on them. */
export class ServedKafka {
  readonly broker: Topics
  readonly service: string
  readonly dlq: string
  readonly retry: string
  readonly group: string
  readonly storeUrl: string
  readonly #config: string
  readonly #dispose: () => Promise<void>
  readonly #servers: SpawnedServer[] = []

  private constructor(
    parts: Pick<ServedKafka, 'broker' | 'service' | 'dlq' | 'retry' | 'group' | 'storeUrl'>,
    config: string,
    dispose: () => Promise<void>,
  ) {
    this.broker = parts.broker
    this.service = parts.service
    this.dlq = parts.dlq
    this.retry = parts.retry
    this.group = parts.group
    this.storeUrl = parts.storeUrl
    this.#config = config
    this.#dispose = dispose
  }

  static async open(kind: StoreKind, options: DeskOptions = {}): Promise<ServedKafka> {
    const broker = options.broker ?? (await kafkaBroker())
    const { partitions = 1 } = options
    const service = newName('svc')
    const dlq = await broker.newTopic({ partitions })
    const retry = await broker.newTopic({ name: `retry-${service}`, partitions })
    const group = newName('group')
    const place = await kind.fresh()
    const folder = await mkdtemp(join(tmpdir(), 'bartleby-kafka-'))
    const config = join(folder, 'bartleby.json')
    const kafka = {
      enabled: true,
      servers: [broker.bootstrap],
      group_id: group,
      token_hashes: [TOKEN_HASH],
      services: { [service]: { dlq_topic: dlq, retry_topic: retry, ...options.service } },
      session_timeout_ms: 2_000,
      topic_refresh_ms: 1_000,
      ...options.kafka,
    }
    await writeFile(config, JSON.stringify({ kafka }))
    const parts = { broker, service, dlq, retry, group, storeUrl: place.url }
    return new ServedKafka(parts, config, async () => {
      await rm(folder, { recursive: true, force: true })
      await place.dispose()
    })
  }

  /** A server in a process of its own. */
  async start(): Promise<SpawnedServer> {
    const server = await this.standby().start()
    this.#servers.push(server)
    return server
  }

  /** One that has loaded its program and waits. */
  standby() {
    return standbyServer({ store: this.storeUrl, config: this.#config, testApi: false })
  }

  /** Writes dead events as the service would. */
  async die(drafts: readonly RecordDraft[]): Promise<readonly Place[]> {
    const records = drafts.map((draft) => record({ service: this.service, ...draft }))
    return this.broker.produce(
      this.dlq,
      records.map(({ key, value, headers }, index) => ({
        key,
        value,
        headers: headers.map(({ name, value }) => [name, value] as const),
        ...(drafts[index]?.partition === undefined ? {} : { partition: drafts[index].partition }),
        ...(drafts[index]?.timestampMs === undefined
          ? {}
          : { timestampMs: BigInt(drafts[index].timestampMs) }),
      })),
    )
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.kill9()))
    await this.#dispose()
  }
}

/** Asks the API of a server, with its token. */
export async function ask<Body = unknown>(
  { url }: Pick<SpawnedServer, 'url'>,
  path: string,
  init: RequestInit = {},
): Promise<Reply<Body>> {
  const answer = await fetch(`${url}${path}`, {
    ...init,
    headers: { authorization: `Bearer ${TOKEN}`, ...init.headers },
  })
  const text = await answer.text()
  // The caller promises what it asked for; an empty body is none.
  return {
    status: answer.status,
    body: (text === '' ? null : JSON.parse(text)) as Body,
    headers: answer.headers,
  }
}

/** How many letters are unresolved. */
export async function pending(server: SpawnedServer): Promise<number> {
  const { body } = await ask<Record<string, Record<string, number>>>(server, '/kafka/summary')
  return Object.values(body)
    .flatMap((topics) => Object.values(topics))
    .reduce((sum, count) => sum + count, 0)
}
