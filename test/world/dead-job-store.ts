/**
 * A store with jobs that are taken, delivered and die, and the office that acts on them, without a server and without a courier:
 * tests say what becomes of an attempt. Time stands still.
 */
import { expect } from 'vitest'
import { later } from '../../src/core/clock.ts'
import { silentLog } from '../../src/core/log.ts'
import { type Xid, xid, xidAfter } from '../../src/core/xid.ts'
import { closeCasesOf } from '../../src/letters/confirm.ts'
import { type Letter, letterId } from '../../src/letters/letter.ts'
import { Letters } from '../../src/letters/letters.ts'
import { readLetterById } from '../../src/letters/lists/detail.ts'
import { newRegisters, type Registers } from '../../src/letters/registers.ts'
import { inOffice, type OfficeRuns, officeRuns } from '../../src/letters/work.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import { BulkRuns } from '../../src/sources/webhooks/dead/bulk-runs.ts'
import { Jobs } from '../../src/sources/webhooks/jobs/jobs.ts'
import { buryJobs, type DyingJob } from '../../src/sources/webhooks/letters/bury.ts'
import { webhookLetterSource } from '../../src/sources/webhooks/letters/source.ts'
import { readDeadCounts } from '../../src/sources/webhooks/numbers/dead-counts.ts'
import { Tallies } from '../../src/sources/webhooks/numbers/tallies.ts'
import {
  type WebhookOptions,
  type WebhookSettings,
  webhookSettings,
} from '../../src/sources/webhooks/settings.ts'
import { type Channel, type Consumer, JOB, type JobState } from '../../src/sources/webhooks/webhook.ts'
import { type Database, type Integer, sql, type Transaction } from '../../src/store/database.ts'
import { verifyStore } from '../../src/verify/verify.ts'
import type { StoreKind } from './stores.ts'
import { WebhookStore } from './webhook-store.ts'

const insertMessage = sql(
  'test.insertMessageWithJobs',
  `INSERT INTO bartleby.webhook_messages (id, channel, message_id, producer, created_at, received_at, priority, first_job, jobs,
     content_type, headers, payload)
   VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8, 'application/json', '[["X-Foo","bar"]]', $9)`,
)
const insertJob = sql(
  'test.insertReadyJob',
  `INSERT INTO bartleby.webhook_jobs (created_at, changed_at, priority, consumer, state, id, message)
   VALUES ($1, $1, $2, $3, ${JOB.ready}, $4, $5)`,
)
const takeJob = sql(
  'test.takeJob',
  `UPDATE bartleby.webhook_jobs SET state = ${JOB.inFlight}, claim = $2, attempts = $3 WHERE id = $1
   RETURNING consumer, letter`,
)
const settleJob = sql(
  'test.settleTakenJob',
  'UPDATE bartleby.webhook_jobs SET state = $2, claim = NULL, due_at = $3 WHERE id = $1 RETURNING consumer, letter',
)
const readJob = sql('test.readJob', 'SELECT * FROM bartleby.webhook_jobs WHERE id = $1', { bigints: true })
const countDead = sql(
  'test.countDead',
  `SELECT count(*) AS found FROM bartleby.webhook_jobs WHERE consumer = $1 AND state = ${JOB.dead}`,
)
const removeMessage = sql(
  'test.removeMessage',
  'DELETE FROM bartleby.webhook_messages WHERE channel = $1 AND message_id = $2',
)

const readRemovals = sql(
  'test.removals',
  `SELECT output FROM bartleby.history JOIN bartleby.history_series ON history_series.id = series
   WHERE correlation_id = $1 AND operation = 'remove' AND engine = 'webhooks' ORDER BY created_at, history.id`,
)

type Around = <T>(call: number, go: () => Promise<T>) => Promise<T>

interface JobRow {
  readonly state: Integer
  readonly attempts: Integer
  readonly exhausted: Integer
  readonly extra_seconds: Integer
  readonly due_at: Integer | null
  readonly changed_at: Integer
  readonly claim: string | null
  readonly letter: Integer | null
}

export interface StoredJob {
  readonly state: number
  readonly attempts: number
  readonly exhausted: number
  readonly extraSeconds: number
  readonly dueAt: bigint | null
  readonly changedAt: bigint
  readonly claim: string | null
  readonly letter: bigint | null
}

export class DeadJobStore {
  readonly store: WebhookStore
  readonly registers: Registers = newRegisters()
  readonly settings: WebhookSettings
  readonly jobs: Jobs
  readonly letters: Letters
  /** The consumers that were said to have jobs, in the order in which it was said. */
  readonly woken: number[] = []
  #messages = 0
  #runs: OfficeRuns[] = []

  private constructor(store: WebhookStore, settings: WebhookSettings) {
    const { db, clock } = store
    this.store = store
    this.settings = settings
    this.jobs = new Jobs({ db, clock, registers: this.registers, settings, onJobs: this.#onJobs })
    const runs = officeRuns(db, clock, silentLog)
    this.#runs.push(runs)
    this.letters = new Letters(db, clock, {
      registers: this.registers,
      runs,
      sources: new Map([['webhooks', webhookLetterSource({ onJobs: this.#onJobs })]]),
      engines: new EngineDirectory({ context: 'publisher' }),
    })
  }

  readonly #onJobs = (consumers: ReadonlySet<number>): void => {
    this.woken.push(...consumers)
  }

  static async open(kind: StoreKind, options: WebhookOptions = {}): Promise<DeadJobStore> {
    return new DeadJobStore(await WebhookStore.open(kind), webhookSettings(options))
  }

  async close(): Promise<void> {
    for (const runs of this.#runs) await runs.stop()
    await this.store.close()
  }

  get db(): Database {
    return this.store.db
  }

  /** Bulk runs as a server of its own does them. */
  bulk(options: WebhookOptions = {}, db = this.db): BulkRuns {
    return this.server(options, db).bulk
  }

  /** A server of its own: all of its runs, and those of dead jobs. */
  server(options: WebhookOptions = {}, db = this.db): { readonly runs: OfficeRuns; readonly bulk: BulkRuns } {
    const settings = { ...this.settings, ...webhookSettings(options) }
    const runs = officeRuns(db, this.store.clock, silentLog)
    this.#runs.push(runs)
    return { runs, bulk: new BulkRuns({ runs, settings, onJobs: this.#onJobs }) }
  }

  /** Resolves when there is nothing left to do on any server before the clock moves. */
  async idle(): Promise<void> {
    for (const runs of this.#runs) await runs.settle()
  }

  /** The same store, but `around` has every transaction of this name in its hands, and its number, counted from 1. */
  intercepted(verb: string, around: Around): Database {
    let calls = 0
    const { db } = this
    return new Proxy(db, {
      get(_, key) {
        if (key === 'transaction') {
          return <T>(name: string, work: (tx: Transaction) => Promise<T>) =>
            name === verb ? around(++calls, () => db.transaction(name, work)) : db.transaction(name, work)
        }
        // Whatever else a database has, of this one.
        const value: unknown = Reflect.get(db, key)
        return typeof value === 'function' ? value.bind(db) : value
      },
    })
  }

  /** Lets time pass. */
  pass(seconds: number): void {
    this.store.clock.advance(BigInt(Math.round(seconds * 1_000_000)))
  }

  /** Messages for consumers of one channel, ready; gives the jobs of each. */
  async send(consumers: readonly Consumer[], messages = 1, priority = 0): Promise<Xid[][]> {
    const { xids, clock } = this.store
    return this.db.transaction('test', async (tx) => {
      const sent: Xid[][] = []
      const tallies = new Tallies()
      for (let i = 0; i < messages; i++) {
        const [id, first] = [xids.next(), xids.block(consumers.length)]
        const number = ++this.#messages
        const channel = consumers[0]?.channel ?? 0
        const payload = Buffer.from(`{"number":${number}}`)
        const message = [
          id,
          channel,
          `m${number}`,
          id,
          clock.now(),
          priority,
          first,
          consumers.length,
          payload,
        ]
        await tx.run(insertMessage, ...message)
        const jobs = consumers.map((_, place) => xidAfter(first, place))
        for (const [place, consumer] of consumers.entries()) {
          await tx.run(insertJob, clock.now(), priority, consumer.number, jobs[place] ?? '', id)
          tallies.moved(consumer.number, null, JOB.ready)
        }
        tallies.add(channel, 'dispatched', 1)
        sent.push(jobs)
      }
      tallies.write(tx)
      return sent
    })
  }

  /** One job of a message of its own. */
  async one(consumer: Consumer): Promise<Xid> {
    const [jobs = []] = await this.send([consumer])
    return jobs[0] ?? xid('')
  }

  /** Puts waiting jobs in flight, on their attempt `attempts + 1`. */
  async take(jobs: readonly Xid[], attempts = this.settings.delivery.maxRetry): Promise<void> {
    await this.db.transaction('test', async (tx) => {
      const tallies = new Tallies()
      for (const id of jobs) {
        const [row] = await tx.rows<{ consumer: Integer }>(takeJob, id, claimOf(id), attempts)
        tallies.moved(Number(row?.consumer), JOB.ready, JOB.inFlight)
      }
      tallies.write(tx)
    })
  }

  /** The last attempt of jobs in flight fails; gives those that died of it. */
  bury(jobs: readonly Xid[], how: Partial<DyingJob> = {}): Promise<ReadonlySet<Xid>> {
    return inOffice(this.db, this.store.clock, 'test.bury', async (work) => {
      const tallies = new Tallies()
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
      const buried = await buryJobs(work, this.registers, tallies, dying)
      tallies.write(work.tx)
      return buried
    })
  }

  /** Waiting jobs are attempted for the last time, and die. */
  async die(jobs: readonly Xid[], attempts = this.settings.delivery.maxRetry): Promise<void> {
    await this.take(jobs, attempts)
    const buried = await this.bury(jobs)
    if (buried.size !== jobs.length) throw new Error(`${buried.size} of ${jobs.length} jobs died`)
  }

  /** Dead jobs, in the order of their age. */
  async deadJobs(consumer: Consumer, count: number): Promise<Xid[]> {
    const jobs = (await this.send([consumer], count)).flat()
    await this.die(jobs)
    return jobs
  }

  /** A job in flight is delivered, or waits for its next attempt. */
  async settle(job: Xid, state: JobState): Promise<void> {
    await inOffice(this.db, this.store.clock, 'test.settle', async (work) => {
      const dueAt = state === JOB.later ? later(work.now, 5_000_000n) : null
      const [row] = await work.tx.rows<{ consumer: Integer; letter: Integer | null }>(
        settleJob,
        job,
        state,
        dueAt,
      )
      if (state === JOB.delivered && row?.letter != null) {
        await closeCasesOf(work, [letterId(row.letter)], new Map())
      }
      const tallies = new Tallies()
      tallies.moved(Number(row?.consumer), JOB.inFlight, state)
      tallies.write(work.tx)
    })
  }

  /** The message is gone, as pruning would do it. */
  async forgetMessage(messageId: string, channel: number): Promise<void> {
    await this.db.transaction('test', async (tx) => {
      const tallies = new Tallies()
      tallies.add(channel, 'dispatched', -(await tx.run(removeMessage, channel, messageId)))
      tallies.write(tx)
    })
  }

  /** The row of a job; null when there is none. */
  async job(id: Xid): Promise<StoredJob | null> {
    const [row] = await this.db.session('test', (session) => session.rows<JobRow>(readJob, id))
    if (row === undefined) return null
    const maybe = (value: Integer | null) => (value === null ? null : BigInt(value))
    return {
      state: Number(row.state),
      attempts: Number(row.attempts),
      exhausted: Number(row.exhausted),
      extraSeconds: Number(row.extra_seconds),
      dueAt: maybe(row.due_at),
      changedAt: BigInt(row.changed_at),
      claim: row.claim,
      letter: maybe(row.letter),
    }
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
    const rows = await this.db.session('test', (session) =>
      session.rows<{ output: Uint8Array }>(readRemovals, correlationId),
    )
    return rows.map(({ output }) => JSON.parse(Buffer.from(output).toString()))
  }

  /** The store keeps all promises. */
  async expectClean(): Promise<void> {
    const { invariants } = await verifyStore(this.db, { clock: this.store.clock })
    expect(invariants.flatMap(({ violations }) => violations)).toEqual([])
  }

  channel(channelId?: string): Promise<Channel> {
    return this.store.channel(channelId)
  }

  consumer(channel: Channel, type: 'push' | 'pull' = 'push'): Promise<Consumer> {
    return this.store.consumer(channel, type)
  }
}

/** The claim that `take` puts a job under. */
export const claimOf = (id: Xid): string => `claim of ${id}`
