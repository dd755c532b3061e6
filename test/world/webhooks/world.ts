/**
 * A store with channels, producers and consumers, and their jobs, which are taken, delivered and die as a test says: without a server
 * and without a courier. Whatever the product can do itself is done by the product.
 */
import { expect } from 'vitest'
import { type Instant, later } from '../../../src/core/clock.ts'
import { type Xid, xid, xidsFrom } from '../../../src/core/xid.ts'
import { closeCasesOf } from '../../../src/letters/confirm.ts'
import { type Letter, letterId } from '../../../src/letters/letter.ts'
import { Letters } from '../../../src/letters/letters.ts'
import { readLetterById } from '../../../src/letters/lists/detail.ts'
import { inOffice, type OfficeRuns } from '../../../src/letters/work.ts'
import { EngineDirectory } from '../../../src/queues/engines/engine-directory.ts'
import { BulkRuns } from '../../../src/sources/webhooks/jobs/bulk-runs.ts'
import { Jobs } from '../../../src/sources/webhooks/jobs/jobs.ts'
import { buryJobs, type DyingJob } from '../../../src/sources/webhooks/letters/bury.ts'
import { webhookLetterSource } from '../../../src/sources/webhooks/letters/source.ts'
import type { Sender } from '../../../src/sources/webhooks/messages/broadcasts.ts'
import { Messages } from '../../../src/sources/webhooks/messages/messages.ts'
import { CountChanges, type Counted, readCountsOf } from '../../../src/sources/webhooks/numbers/counts.ts'
import { readDeadCounts } from '../../../src/sources/webhooks/numbers/dead-counts.ts'
import { type RefusalName, Refused } from '../../../src/sources/webhooks/refusal.ts'
import { Consumers } from '../../../src/sources/webhooks/registry/consumers.ts'
import { CHANNELS, Holders, PRODUCERS } from '../../../src/sources/webhooks/registry/holders.ts'
import {
  type WebhookOptions,
  type WebhookSettings,
  webhookSettings,
} from '../../../src/sources/webhooks/settings.ts'
import {
  type Channel,
  type Consumer,
  type ConsumerType,
  type HeaderList,
  JOB,
  type JobState,
  type Producer,
} from '../../../src/sources/webhooks/webhook.ts'
import type { Dialect, Integer } from '../../../src/store/database.ts'
import { migrated, StoreWorld } from '../store-world.ts'
import type { FreshStore, StoreKind } from '../stores.ts'
import {
  ACCEPTANCE,
  consumersOf,
  countDead,
  insertJob,
  insertMessage,
  type JobRow,
  jobRows,
  type MessageRow,
  moveJob,
  readMessages,
  readRemovals,
  refusal,
  removeJob,
  removeMessage,
  setLimits,
  settleJobs,
} from './rows.ts'

export interface ConsumerDraft {
  readonly consumerId?: string
  readonly name?: string
  readonly type?: ConsumerType
  readonly url?: string
  readonly secret?: string
  readonly previousSecret?: string
  readonly mostAtOnce?: number
  readonly mostPerSecond?: number
}

export interface MessageDraft {
  /** Left out: that of the consumers. */
  readonly channel?: Channel
  readonly messageId?: string
  readonly contentType?: string
  readonly headers?: HeaderList
  readonly payload?: string | Uint8Array
  readonly priority?: number
  readonly scheduledFor?: Instant
  /** Its time has not come. */
  readonly isWaiting?: boolean
  /** Of its jobs. */
  readonly state?: JobState
  readonly attempts?: number
  readonly dueAt?: bigint
  readonly claim?: string
}

/** The claim that `take` puts a job under. */
export const claimOf = (id: Xid): string => `claim of ${id}`

export class WebhookWorld extends StoreWorld {
  readonly settings: WebhookSettings
  readonly channels: Holders<Channel>
  readonly producers: Holders<Producer>
  readonly consumers: Consumers
  readonly messages: Messages
  readonly jobs: Jobs
  readonly letters: Letters
  /** The consumers that were said to have jobs, in the order in which it was said. */
  readonly woken: number[] = []
  #names = 0
  #messages = 0

  constructor(place: FreshStore, options: WebhookOptions = {}) {
    super(place)
    const { db, clock, registers } = this
    this.settings = webhookSettings(options)
    this.channels = new Holders(CHANNELS, this)
    this.producers = new Holders(PRODUCERS, this)
    // One address is refused, whatever the others are.
    this.consumers = new Consumers(this, ({ hostname }) => hostname !== '10.0.0.1')
    this.messages = new Messages(db)
    this.jobs = new Jobs({ db, clock, registers, settings: this.settings, onJobs: this.#onJobs })
    this.letters = new Letters(db, clock, {
      registers,
      runs: this.runs(),
      sources: new Map([['webhooks', webhookLetterSource({ onJobs: this.#onJobs })]]),
      engines: new EngineDirectory({ context: 'publisher' }),
    })
  }

  readonly #onJobs = (consumers: ReadonlySet<number>): void => {
    this.woken.push(...consumers)
  }

  static async open(kind: StoreKind, options: WebhookOptions = {}): Promise<WebhookWorld> {
    return migrated(new WebhookWorld(await kind.fresh(), options))
  }

  /** Bulk runs as a server of its own does them. */
  bulk(options: WebhookOptions = {}, db = this.db): BulkRuns {
    return this.server(options, db).bulk
  }

  /** A server of its own: all of its runs, and those of dead jobs. */
  server(options: WebhookOptions = {}, db = this.db): { readonly runs: OfficeRuns; readonly bulk: BulkRuns } {
    const settings = { ...this.settings, ...webhookSettings(options) }
    const runs = this.runs(db)
    return { runs, bulk: new BulkRuns({ runs, settings, onJobs: this.#onJobs }) }
  }

  refuseJobsOf(message: string): Promise<void> {
    return this.#script(refusal(message))
  }

  acceptJobs(): Promise<void> {
    return this.#script(ACCEPTANCE)
  }

  #script(text: Readonly<Record<Dialect, string>>): Promise<void> {
    return this.db.transaction('test', (tx) => this.db.script(tx, text[tx.dialect]))
  }

  /** A new channel, with the token `ctok`. */
  channel(channelId = `channel-${this.#names++}`, name: string | null = null): Promise<Channel> {
    return this.channels.put(channelId, { name, token: 'ctok' }, null)
  }

  /** A new consumer of a channel, with the token `ktok`. */
  async consumer(channel: Channel, draft: ConsumerDraft = {}): Promise<Consumer> {
    const { consumerId = `consumer-${this.#names++}`, name = null, type = 'push' } = draft
    const request = { name, token: 'ktok', callbackUrl: draft.url ?? 'http://127.0.0.1:9/hook', type }
    const consumer = await this.consumers.put(channel, consumerId, request, null)
    const { secret, previousSecret, mostAtOnce, mostPerSecond } = draft
    const limits = [secret, previousSecret, mostAtOnce, mostPerSecond]
    if (limits.some((limit) => limit !== undefined))
      await this.write(setLimits, consumer.number, ...limits.map((limit) => limit ?? null))
    return consumer
  }

  /** A new producer, with the token `ptok`, as the sender of a channel. */
  async sender(channel: Channel): Promise<Sender> {
    const holder = { name: null, token: 'ptok' }
    const producer = await this.producers.put(`producer-${this.#names++}`, holder, null)
    return { channel: channel.number, channelId: channel.channelId, producer: producer.id }
  }

  /** Messages for consumers of one channel, all in one transaction; gives the jobs of each. */
  async send(consumers: readonly Consumer[], messages = 1, draft: MessageDraft = {}): Promise<Xid[][]> {
    const { contentType = 'application/json', headers = [['X-Foo', 'bar']], state = JOB.ready } = draft
    const { priority = 0, scheduledFor = null, isWaiting = false } = draft
    const { attempts = 0, dueAt = null, claim = null } = draft
    const channel = draft.channel?.number ?? consumers[0]?.channel ?? 0
    const now = this.clock.now()
    return this.db.transaction('test', async (tx) => {
      const sent: Xid[][] = []
      const counts = new CountChanges()
      for (let i = 0; i < messages; i++) {
        const number = ++this.#messages
        const id = this.xids.next()
        const first = consumers.length === 0 ? null : this.xids.block(consumers.length)
        const jobs = first === null ? [] : xidsFrom(first, consumers.length)
        const times = [isWaiting ? null : now, scheduledFor, isWaiting ? scheduledFor : null]
        await tx.run(
          insertMessage,
          ...[id, channel, draft.messageId ?? `m${number}`, now, ...times, priority, first, jobs.length],
          ...[contentType, JSON.stringify(headers), Buffer.from(draft.payload ?? `{"number":${number}}`)],
        )
        for (const [place, consumer] of consumers.entries()) {
          const job = jobs[place] ?? ''
          await tx.run(insertJob, now, priority, consumer.number, state, job, id, attempts, dueAt, claim)
          counts.moved(consumer.number, null, state)
        }
        if (scheduledFor !== null) counts.add(channel, isWaiting ? 'scheduled' : 'scheduledDispatched', 1)
        if (!isWaiting) counts.add(channel, 'dispatched', 1)
        sent.push(jobs)
      }
      counts.write(tx)
      return sent
    })
  }

  /** One message; gives its jobs. */
  async message(consumers: readonly Consumer[], draft: MessageDraft = {}): Promise<readonly Xid[]> {
    return (await this.send(consumers, 1, draft)).flat()
  }

  /** One job of a message of its own. */
  async one(consumer: Consumer, draft: MessageDraft = {}): Promise<Xid> {
    return (await this.message([consumer], draft))[0] ?? xid('')
  }

  /** The message is gone, as pruning would do it. */
  async forgetMessage(messageId: string, channel: number): Promise<void> {
    await this.db.transaction('test', async (tx) => {
      const counts = new CountChanges()
      counts.add(channel, 'dispatched', -(await tx.run(removeMessage, channel, messageId)))
      counts.write(tx)
    })
  }

  /** Puts jobs into a state, or erases them (null), with their counts; their cases close when they are delivered. */
  async move(
    jobs: readonly string[],
    state: JobState | null,
    how: { readonly attempts?: number; readonly claim?: (id: Xid) => string } = {},
  ): Promise<void> {
    await inOffice(this.db, this.clock, 'test.move', async (work) => {
      const { tx, now } = work
      const counts = new CountChanges()
      for (const id of jobs) {
        const [job] = await jobRows(tx, { id })
        if (job === undefined) throw new Error(`there is no job ${id}`)
        counts.moved(job.consumer, job.state, state)
        if (state === null) {
          await tx.run(removeJob, id)
          continue
        }
        const dueAt = state === JOB.later ? later(now, 5_000_000n) : null
        await tx.run(
          moveJob,
          id,
          state,
          now,
          how.claim?.(job.id) ?? null,
          dueAt,
          how.attempts ?? job.attempts,
        )
        if (state === JOB.delivered && job.letter !== null)
          await closeCasesOf(work, [letterId(job.letter)], new Map())
      }
      counts.write(tx)
    })
  }

  /** Puts all ready jobs of a channel into another state, with their counts. */
  async settleJobs(channel: Channel, state: JobState): Promise<void> {
    await this.db.transaction('test', async (tx) => {
      const counts = new CountChanges()
      for (const { number } of await tx.rows<{ number: Integer }>(consumersOf, channel.number)) {
        counts.moved(Number(number), JOB.ready, state, await tx.run(settleJobs, number, state))
      }
      counts.write(tx)
    })
  }

  /** Puts jobs in flight, on their attempt `attempts + 1`. */
  take(jobs: readonly Xid[], attempts = this.settings.delivery.maxRetry): Promise<void> {
    return this.move(jobs, JOB.inFlight, { attempts, claim: claimOf })
  }

  /** The last attempt of jobs in flight fails; gives those that died of it. */
  bury(jobs: readonly Xid[], how: Partial<DyingJob> = {}): Promise<ReadonlySet<Xid>> {
    return inOffice(this.db, this.clock, 'test.bury', async (work) => {
      const counts = new CountChanges()
      const dying = jobs.map(
        (id): DyingJob => ({
          id,
          claim: claimOf(id),
          exhausted: true,
          reason: 'attempts',
          errorClass: 'HttpError',
          errorMessage: 'its consumer answered 500',
          failedBy: 'courier',
          ...how,
        }),
      )
      const buried = await buryJobs(work, this.registers, counts, dying)
      counts.write(work.tx)
      return buried
    })
  }

  /** Jobs are attempted for the last time, and die. */
  async die(
    jobs: readonly Xid[],
    how: Partial<DyingJob> & { readonly attempts?: number } = {},
  ): Promise<void> {
    const { attempts, ...dying } = how
    await this.take(jobs, attempts)
    const buried = await this.bury(jobs, dying)
    if (buried.size !== jobs.length) throw new Error(`${buried.size} of ${jobs.length} jobs died`)
  }

  /** Dead jobs, in the order of their age. */
  async deadJobs(consumer: Consumer, count: number): Promise<Xid[]> {
    const jobs = (await this.send([consumer], count)).flat()
    await this.die(jobs)
    return jobs
  }

  messageRows(channel: Channel): Promise<MessageRow[]> {
    return this.read<MessageRow>(readMessages, channel.number)
  }

  /** All jobs, or those of a consumer. */
  jobRows(consumer?: Consumer): Promise<readonly JobRow[]> {
    const of = consumer === undefined ? {} : { consumer: consumer.number }
    return this.db.session('test', (session) => jobRows(session, of))
  }

  /** The row of a job; null when there is none. */
  async job(id: Xid): Promise<JobRow | null> {
    const [row] = await this.db.session('test', (session) => jobRows(session, { id }))
    return row ?? null
  }

  /** The letter of a job. */
  async letter(id: Xid): Promise<Letter> {
    const job = await this.job(id)
    const letter = await this.db.session('test', (session) =>
      readLetterById(session, letterId(job?.letter ?? 0n)),
    )
    if (letter === null) throw new Error(`job ${id} has no letter`)
    return letter
  }

  /** Counts of a channel or a consumer, without those that are 0. */
  async counted(subject: { readonly number: number }): Promise<Counted> {
    const counted = await this.db.session('test', (session) => readCountsOf(session, subject.number))
    return Object.fromEntries(Object.entries(counted).filter(([, amount]) => amount !== 0))
  }

  /** How many dead jobs a consumer has: as they are counted, which must be as many as there are. */
  async deadCount(consumer: Consumer, db = this.db): Promise<number> {
    return db.snapshot('test', async (session) => {
      const counts = await readDeadCounts(session)
      const counted = counts.find((count) => count.consumer === consumer.number)?.deadCount ?? 0
      const [row] = await session.rows<{ found: Integer }>(countDead, consumer.number)
      expect(counted).toBe(Number(row?.found))
      return counted
    })
  }

  /** What history says was erased under a correlation id, the oldest row first. */
  async removals(correlationId: string): Promise<unknown[]> {
    const rows = await this.read<{ output: Uint8Array }>(readRemovals, correlationId)
    return rows.map(({ output }) => JSON.parse(Buffer.from(output).toString()))
  }
}

/** The name of what a call is refused for; `done` when it is not. */
export const refusalOf = (call: Promise<unknown>): Promise<RefusalName | 'done'> =>
  call.then(
    () => 'done',
    (error: unknown) => {
      if (error instanceof Refused) return error.refusal
      throw error
    },
  )
