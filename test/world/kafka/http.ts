/** The Kafka API over a store with dead events in it: everything is real but the broker, and intake, which does nothing. */
import { hash } from 'node:crypto'
import type { Config } from '../../../src/config/index.ts'
import { STATE } from '../../../src/sources/kafka/event.ts'
import type { IntakeStatus } from '../../../src/sources/kafka/intake/intake-status.ts'
import { KafkaCounters, metricsText } from '../../../src/sources/kafka/metrics.ts'
import { Processors } from '../../../src/sources/kafka/processors/processors.ts'
import { QueueReader } from '../../../src/sources/kafka/queue-reader.ts'
import { reassign } from '../../../src/sources/kafka/reassign.ts'
import { ReturnPath } from '../../../src/sources/kafka/return/return-path.ts'
import type { ServedKafka } from '../../../src/sources/kafka/routes/call.ts'
import { type Script, type ScriptedServer, scriptedServer } from '../scripted-server.ts'
import type { StoreKind } from '../stores.ts'
import { ScriptedPublisher } from './return.ts'
import type { SettingsDraft } from './settings.ts'
import { KafkaWorld } from './world.ts'

/** A token of the Kafka part, and the hash that the settings have. */
export const TOKEN = '43fadc91-b98f-4925-bd31-1b054b13dc55'
export const TOKEN_HASH = hash('sha256', TOKEN, 'hex')

export interface KafkaHttpOptions {
  readonly settings?: SettingsDraft
  readonly tokens?: Config['auth']['tokens']
  readonly http?: Partial<Config['http']>
  /** The calls on letters, redrives and runs that a test expects. */
  readonly office?: Pick<Script, 'letters' | 'redriveCalls' | 'runs'>
}

/** What is asked of the API; with its token, unless `token` says otherwise. */
export interface Asked {
  readonly method?: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'HEAD' | 'OPTIONS' | 'PATCH'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | object
  readonly token?: string | null
}

export class KafkaHttp {
  readonly store: KafkaWorld
  readonly publisher: ScriptedPublisher
  readonly counters: KafkaCounters
  readonly server: ScriptedServer
  /** How intake is said to stand. */
  standing: IntakeStatus
  readonly #returnPath: ReturnPath
  readonly #processors: Processors

  private constructor(
    parts: Pick<KafkaHttp, 'store' | 'publisher' | 'counters' | 'server'>,
    returnPath: ReturnPath,
    processors: Processors,
  ) {
    this.store = parts.store
    this.publisher = parts.publisher
    this.counters = parts.counters
    this.server = parts.server
    this.standing = wellStanding(parts.store)
    this.#returnPath = returnPath
    this.#processors = processors
  }

  static async open(kind: StoreKind, options: KafkaHttpOptions = {}): Promise<KafkaHttp> {
    const counters = new KafkaCounters()
    const settings = { tokenHashes: [TOKEN_HASH], ...options.settings }
    const store = await KafkaWorld.open(kind, { settings, listener: counters })
    const publisher = new ScriptedPublisher()
    const processors = await Processors.load(store.settings)
    const returnPath = new ReturnPath({
      db: store.db,
      clock: store.clock,
      log: store.log,
      settings: store.settings,
      publisher,
      processors,
      listener: counters,
      instance: 'test',
    })
    const standing = (): IntakeStatus => http.standing
    const kafka: ServedKafka = {
      calls: {
        settings: store.settings,
        returnPath,
        reader: new QueueReader(store.db, store.letters.numbers),
      },
      metrics: () => metricsText(counters, standing()),
      status: standing,
      reassign: (id, assignment, caller) => reassign(store, id, assignment, caller),
    }
    const { tokens = [], http: limits = {}, office = {} } = options
    const server = await scriptedServer({ kafka, tokens, http: limits, clock: store.clock, ...office })
    const http = new KafkaHttp({ store, publisher, counters, server }, returnPath, processors)
    return http
  }

  /** Discards what is unresolved, so that the next test finds nothing. */
  async clear(): Promise<void> {
    for (const { dlqId, state } of await this.store.events()) {
      if (state >= STATE.published) continue
      const { statusCode } = await this.ask(`/kafka/${dlqId}`, { method: 'DELETE' })
      if (statusCode !== 204) throw new Error(`an event cannot be discarded: ${statusCode}`)
    }
    this.publisher.forget()
  }

  async close(): Promise<void> {
    await this.server.app.close()
    await this.#returnPath.stop()
    await this.#processors.close()
    await this.store.close()
  }

  /** Asks the API. */
  async ask(url: string, { method = 'GET', headers = {}, body, token = TOKEN }: Asked = {}) {
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` }
    const given = body === undefined ? {} : { body }
    return this.server.app.inject({ method, url, headers: { ...authorization, ...headers }, ...given })
  }

  /** The events of a preview, and nothing else of the answer. */
  async events<T = Record<string, unknown>>(url: string): Promise<T[]> {
    const reply = await this.ask(url)
    if (reply.statusCode !== 200) throw new Error(`${url} gives ${reply.statusCode}: ${reply.body}`)
    return reply.json<T[]>()
  }
}

const wellStanding = ({ clock }: KafkaWorld): IntakeStatus => ({
  state: 'reading',
  troubles: [],
  missingTopics: [],
  partitions: [],
  since: clock.now(),
})
