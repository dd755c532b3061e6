/**
 * A desk where tests send dead events back: a real store, a publisher and processors that do as they are told, and as many return
 * paths on it as there are servers. Every test takes a service of its own.
 */
import { randomUUID } from 'node:crypto'
import type { Publisher, PublishOutcome } from '../../../src/outgoing/kafka/producer.ts'
import type { OutgoingRecord } from '../../../src/outgoing/kafka/record.ts'
import {
  type Caller,
  type EventId,
  eventId,
  type StateName,
  stateName,
} from '../../../src/sources/kafka/event.ts'
import type { KafkaListener } from '../../../src/sources/kafka/metrics.ts'
import type { Decision } from '../../../src/sources/kafka/processors/processors.ts'
import type { Resolution } from '../../../src/sources/kafka/return/attempt.ts'
import { ReturnPath } from '../../../src/sources/kafka/return/return-path.ts'
import { KafkaRefused } from '../../../src/sources/kafka/routes/reply.ts'
import {
  discardNamed,
  discardNext,
  type ResolveRequest,
  resolveNext,
} from '../../../src/sources/kafka/routes/resolve.ts'
import type { KafkaSettings } from '../../../src/sources/kafka/settings/settings.ts'
import type { StoredEvent } from '../../../src/sources/kafka/stored-event.ts'
import { shownBytes } from '../../../src/sources/kafka/wire/bytes.ts'
import type { Database } from '../../../src/store/database.ts'
import { migrated } from '../store-world.ts'
import type { FreshStore, StoreKind } from '../stores.ts'
import type { RecordDraft } from './records.ts'
import { kafkaSettingsFor, type SettingsDraft } from './settings.ts'
import { KafkaWorld } from './world.ts'

/** Publishes nothing, remembers everything, and says what it was told to say. */
export class ScriptedPublisher implements Publisher {
  /** Everything that was to be published. */
  readonly sent: OutgoingRecord[] = []
  /** What the broker would have now. */
  readonly published: OutgoingRecord[] = []
  readonly #script: ((record: OutgoingRecord) => Promise<PublishOutcome>)[] = []

  /** What the next publishes give, one after the other; all others succeed. */
  next(...outcomes: readonly PublishOutcome[]): void {
    for (const outcome of outcomes) this.#script.push(async () => outcome)
  }

  /** What is done in the next publish. */
  during(act: (record: OutgoingRecord) => Promise<PublishOutcome>): void {
    this.#script.push(act)
  }

  /** The next publish takes until it is let go. */
  hold(): { readonly begun: Promise<void>; release(outcome?: PublishOutcome): void } {
    const begun = Promise.withResolvers<void>()
    const end = Promise.withResolvers<PublishOutcome>()
    this.during(() => {
      begun.resolve()
      return end.promise
    })
    return { begun: begun.promise, release: (outcome = this.success()) => end.resolve(outcome) }
  }

  /** The next publish never comes back: its server is gone. */
  async die(act: () => Promise<unknown>): Promise<void> {
    const { begun } = this.hold()
    act().catch(() => {})
    await begun
  }

  success(): PublishOutcome {
    return { outcome: 'published', partition: 0, offset: BigInt(this.sent.length) }
  }

  async publish(record: OutgoingRecord): Promise<PublishOutcome> {
    this.sent.push(record)
    const outcome = (await this.#script.shift()?.(record)) ?? this.success()
    if (outcome.outcome === 'published') this.published.push(record)
    return outcome
  }

  /** Nothing was published, and nothing is said of the future. */
  forget(): void {
    for (const list of [this.sent, this.published, this.#script]) list.length = 0
  }

  async close(): Promise<void> {}
}

/** What is decided about an event. */
export type Decide = (event: StoredEvent) => Promise<Decision> | Decision

const PUBLISH: Decision = { action: 'publish', change: {} }

export const TESTER: Caller = { actor: 'nell', requestId: '6f1d2d2e-1e7a-4b43-9a38-3a7f3a0f7f00' }

/** How many tests of one file can have services of their own. */
const SERVICES = 60

export interface PathOptions {
  readonly settings?: SettingsDraft
  readonly instance?: string
  readonly db?: Database
}

/** What an event looks like to an operator. */
export interface Standing {
  readonly state: StateName
  readonly status: string
  readonly eventId: EventId | null
}

export class Desk extends KafkaWorld {
  readonly publisher = new ScriptedPublisher()
  readonly path: ReturnPath
  /** What was counted, each as one text. */
  readonly told: string[] = []
  decide: Decide = () => PUBLISH
  readonly #settings: SettingsDraft
  readonly #paths: ReturnPath[] = []
  readonly #settingsOf = new WeakMap<ReturnPath, KafkaSettings>()
  #services = 0

  constructor(place: FreshStore, settings: SettingsDraft) {
    super(place, { settings, returnWay: () => this })
    this.#settings = settings
    this.path = this.anotherPath()
  }

  static override async open(kind: StoreKind): Promise<Desk> {
    const names = Array.from({ length: SERVICES }, (_, i) => `s${i}`)
    const services = Object.fromEntries(names.map((name) => [name, { dlqTopic: `${name}_dlq` }]))
    const generic = { dlqTopic: 'g_dlq', profile: 'generic', retryTopic: 'g_retry' } as const
    return migrated(new Desk(await kind.fresh(), { services: { ...services, g: generic } }))
  }

  override async close(): Promise<void> {
    for (const path of this.#paths) await path.stop()
    await super.close()
  }

  /** The return path of another server, or of the same after a restart. */
  anotherPath({ settings, instance = randomUUID(), db = this.db }: PathOptions = {}): ReturnPath {
    const given = kafkaSettingsFor({ ...this.#settings, ...settings })
    const path = new ReturnPath({
      db,
      clock: this.clock,
      log: this.log,
      settings: given,
      publisher: this.publisher,
      processors: { decide: async (event) => this.decide(event) },
      listener: this.#listener(),
      instance,
    })
    this.#paths.push(path)
    this.#settingsOf.set(path, given)
    return path
  }

  /** A server that ends without a word: nobody waits for its calls. */
  crashing(options: PathOptions = {}): ReturnPath {
    const path = this.anotherPath(options)
    this.#paths.pop()
    return path
  }

  #listener(): KafkaListener {
    return {
      resolved: (service, topic, what) => this.told.push(`${service} ${topic} ${what}`),
      trouble: (service, what) => this.told.push(`${service} ${what}`),
    }
  }

  /** A service that no other test has. */
  service(): string {
    if (this.#services === SERVICES) throw new Error('there are no more services')
    return `s${this.#services++}`
  }

  /** A dead event of a service. */
  deadOf(service: string, draft: RecordDraft = {}): Promise<StoredEvent> {
    return this.dead({ topic: `${service}_dlq`, service, ...draft })
  }

  /** Several of them, in the order of their queue; each has a key of its own. */
  async deadOnes(service: string, count: number, draft: RecordDraft = {}): Promise<StoredEvent[]> {
    const events: StoredEvent[] = []
    for (let i = 0; i < count; i++) {
      events.push(await this.deadOf(service, { key: `k${i}`, value: { n: i }, ...draft }))
    }
    return events
  }

  process(service: string, request: Partial<ResolveRequest> = {}, path = this.path): Promise<Resolution> {
    return this.#resolve(requestOf(service, request), path, false)
  }

  dryRun(service: string, request: Partial<ResolveRequest> = {}, path = this.path): Promise<Resolution> {
    return this.#resolve(requestOf(service, request), path, true)
  }

  #resolve(request: ResolveRequest, path: ReturnPath, isDryRun: boolean): Promise<Resolution> {
    const settings = this.#settingsOf.get(path) ?? kafkaSettingsFor(this.#settings)
    return resolveNext({ returnPath: path, settings }, request, isDryRun)
  }

  discardNext(service: string, dlqId: string | null = null, path = this.path): Promise<StoredEvent> {
    return discardNext({ returnPath: path }, { service, topic: null, dlqId }, TESTER)
  }

  discard(dlqId: string, path = this.path): Promise<boolean> {
    return discardNamed({ returnPath: path }, dlqId, TESTER)
  }

  /** Keys of what was sent for a service so far. */
  sentKeys(service: string): (string | null)[] {
    return this.#sent(service).map(({ key }) => shownBytes(key))
  }

  /** Values of what was sent for a service so far. */
  sentValues(service: string): (string | null)[] {
    return this.#sent(service).map(({ value }) => shownBytes(value))
  }

  /** The ids of what was sent for a service so far. */
  sentIds(service: string): EventId[] {
    return this.#sent(service).map((record) => eventId(headerIn(record, 'event_id') ?? ''))
  }

  #sent(service: string): OutgoingRecord[] {
    return this.publisher.sent.filter(({ topic }) => topic === `retry-${service}`)
  }

  /** How an event stands; what the office says of its letter fits to it. */
  async standing(event: StoredEvent): Promise<Standing> {
    const now = await this.again(event)
    const letter = await this.letter(event)
    return { state: stateName(now.state), status: letter.status, eventId: now.eventId }
  }

  /** What history has of an event beside its arrival. */
  async historyOf(event: StoredEvent): Promise<string[]> {
    const rows = (await this.history()).filter(({ letterId }) => letterId === event.letterId)
    return rows.map(({ operation, actor }) => `${operation.replace('kafka.', '')} by ${actor}`).slice(1)
  }

  /** Moves the clock past every lease; what is due rings. */
  passLease(): void {
    this.clock.advance(120_000_000n)
  }
}

/** A request for the next event of a service, as API A makes it. */
const requestOf = (service: string, request: Partial<ResolveRequest> = {}): ResolveRequest => ({
  service,
  topic: null,
  dlqId: null,
  caller: TESTER,
  mintCorrelationId: false,
  resend: false,
  override: null,
  ...request,
})

/** A header of a record, as text. */
export const headerIn = (record: OutgoingRecord, name: string): string | null =>
  shownBytes(record.headers.find((header) => shownBytes(header.name) === name)?.value ?? null)

/** What a call is refused with; null when it is not. */
export async function refusal(
  call: Promise<unknown>,
): Promise<Pick<KafkaRefused, 'id' | 'status' | 'data'> | null> {
  try {
    await call
    return null
  } catch (error) {
    if (!(error instanceof KafkaRefused)) throw error
    return { id: error.id, status: error.status, data: error.data }
  }
}

export const refusalId = async (call: Promise<unknown>): Promise<string | null> =>
  (await refusal(call))?.id ?? null

export const AWAY = { outcome: 'failed', why: 'unavailable', message: 'no broker answers' } as const
export const TOO_LARGE = { ...AWAY, why: 'too_large' } as const
export const DOUBT = { outcome: 'uncertain', message: 'no answer in time' } as const
