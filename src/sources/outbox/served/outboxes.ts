/** The outboxes of an office: each is served, its dead rows become letters, and letters go back to their rows. */
import type { Clock } from '../../../core/clock.ts'
import { BartlebyError, failure } from '../../../core/errors.ts'
import type { Log } from '../../../core/log.ts'
import type { Rounds, Service } from '../../../core/rounds.ts'
import type { Registers } from '../../../letters/registers.ts'
import type { LetterSource } from '../../../letters/source.ts'
import type { ConnectionSettings } from '../../../outgoing/kafka/connection.ts'
import type { ConnectionOptions } from '../../../outgoing/kafka/connection-keys.ts'
import type { StoreQueues } from '../../../queues/queues.ts'
import type { Database } from '../../../store/database.ts'
import { transportOf } from '../dispatcher/create-dispatcher.ts'
import { OutboxLetterClerk } from '../letters/clerk.ts'
import { outboxLetterSource } from '../letters/source.ts'
import { refuse } from '../refusal.ts'
import { type HttpTransportOptions, httpTransport } from '../transports/http.ts'
import { type KafkaTransportOptions, kafkaTransport, kafkaTransportOn } from '../transports/kafka.ts'
import { localQueueTransport, queueTransport } from '../transports/queue.ts'
import { type LocalTransport, logTransport, type Transport } from '../transports/transport.ts'
import type { OutboxHandle } from './outbox-handle.ts'
import { ServedOutbox, type ServedSettings } from './served-outbox.ts'

/**
 * A transport as configured. `none`: somebody else delivers. The keys of a connection to Kafka are those of the section
 * `kafka`, which is used where a transport has no servers of its own.
 */
export interface TransportSettings
  extends ConnectionOptions,
    Omit<HttpTransportOptions, 'url' | 'clock'>,
    Partial<Pick<KafkaTransportOptions, 'topic' | 'compression'>> {
  readonly type: 'http' | 'queue' | 'kafka' | 'log' | 'none'
  readonly url?: string
  readonly queue?: string
}

export interface OutboxSettings extends ServedSettings {
  /**
   * Settings, their short form (`https://…`, `queue:NAME`, `kafka:TOPIC`, `log`, `none`), a transport or a function.
   * Default: `none`.
   */
  readonly transport?: string | TransportSettings | Transport | LocalTransport | Transport['deliver']
}

export interface OutboxesContext {
  readonly store: { readonly url: string; readonly db: Database }
  readonly clock: Clock
  readonly log: Log
  readonly registers: Registers
  readonly queues: StoreQueues
  /** The connection of the section `kafka`. */
  readonly kafka?: ConnectionSettings | null
}

export class Outboxes implements Service {
  readonly name = 'outbox'
  readonly source: LetterSource
  readonly #served: readonly ServedOutbox[]
  readonly #clerk: OutboxLetterClerk

  constructor(given: readonly OutboxSettings[], context: OutboxesContext) {
    const { store, clock, log, registers } = context
    const handles = () => this.#served
    const dispatch = (outbox: string) => this.#served.find(({ name }) => name === outbox)?.wake()
    this.#clerk = new OutboxLetterClerk({ db: store.db, clock, log, registers, handles, dispatch })
    this.source = outboxLetterSource(handles, { dispatch, reconcile: (outbox) => this.#clerk.wake(outbox) })
    const served: ServedOutbox[] = []
    try {
      for (const settings of given) served.push(this.#serve(settings, context))
    } catch (error) {
      for (const outbox of served) void outbox.close()
      throw error
    }
    this.#served = served
  }

  /** In the order of the configuration. */
  all(): readonly OutboxHandle[] {
    return this.#served
  }

  get(name: string): OutboxHandle {
    const found = this.#served.find((outbox) => outbox.name === name)
    if (found !== undefined) return found
    const known = this.#served.map((outbox) => outbox.name).join(', ') || 'none'
    throw failure('outbox_unknown', { name, known })
  }

  get rounds(): readonly Rounds[] {
    return [...this.#served, this.#clerk].flatMap(({ rounds }) => rounds)
  }

  start(): void {
    if (this.#served.length === 0) return
    for (const outbox of this.#served) outbox.start()
    this.#clerk.start()
  }

  /** Deliveries end first: the clerk still reports what came of them. */
  async stop(): Promise<void> {
    await Promise.all(this.#served.map((outbox) => outbox.stop()))
    await this.#clerk.stop()
    await Promise.all(this.#served.map((outbox) => outbox.close()))
  }

  #serve({ transport: given, ...settings }: OutboxSettings, context: OutboxesContext): ServedOutbox {
    const { store, clock, log } = context
    const inStore = settings.url === undefined || settings.url === store.url
    const where = `outbox '${settings.name}'`
    const transport = naming(`${where}: transport.`, () => makeTransport(given, inStore, context))
    const onLetterDue = () => this.#clerk.wake(settings.name)
    return naming(
      `${where}: `,
      () => new ServedOutbox(settings, { store, clock, log, transport, onLetterDue }),
    )
  }
}

/** Prefixes the name of a wrong option: an office has several outboxes. */
function naming<T>(where: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof BartlebyError) || error.code !== 'outbox_option_invalid') throw error
    const { option, reason } = error.details
    return refuse(`${where}${String(option)}`, String(reason))
  }
}

function makeTransport(
  given: OutboxSettings['transport'],
  inStore: boolean,
  context: OutboxesContext,
): Transport | LocalTransport | null {
  if (given === undefined) return null
  if (typeof given === 'string') return fromSettings(settingsOf(given), inStore, context)
  if (typeof given === 'object' && 'type' in given) return fromSettings(given, inStore, context)
  return transportOf(given)
}

function settingsOf(short: string): TransportSettings {
  if (short === 'log' || short === 'none') return { type: short }
  if (short.startsWith('queue:')) return { type: 'queue', queue: short.slice('queue:'.length) }
  if (short.startsWith('kafka:')) return { type: 'kafka', topic: short.slice('kafka:'.length) }
  return { type: 'http', url: short }
}

function fromSettings(
  { type, queue = '', url = '', ...rest }: TransportSettings,
  inStore: boolean,
  { store: { db }, clock, log, queues, kafka = null }: OutboxesContext,
): Transport | LocalTransport | null {
  switch (type) {
    case 'none':
      return null
    case 'log':
      return logTransport({ log })
    case 'http':
      return httpTransport({ url, clock, ...rest })
    case 'queue':
      return inStore
        ? localQueueTransport({ db, clock, queue, put: (work, name, items) => queues.put(work, name, items) })
        : queueTransport({ queues, queue })
    case 'kafka': {
      const { topic = '', ...options } = rest
      if (options.servers !== undefined) return kafkaTransport({ topic, ...options })
      const stray = Object.keys(options).find((key) => key !== 'compression')
      if (stray !== undefined) refuse(stray, 'without servers the connection is that of the section kafka')
      if (kafka === null) refuse('servers', 'there are none, neither here nor in the section kafka')
      return kafkaTransportOn(kafka, { topic, ...options })
    }
  }
}
