/** For tests only: a store with one channel, its consumers and their jobs, and couriers that deliver from it. Its clock stands still. */
import type { ServerResponse } from 'node:http'
import { expect } from 'vitest'
import { instant, microseconds } from '../../src/core/clock.ts'
import type { Log } from '../../src/core/log.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { type Xid, Xids, xidAfter } from '../../src/core/xid.ts'
import { newRegisters } from '../../src/letters/registers.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { Courier } from '../../src/sources/webhooks/courier/courier.ts'
import { type Counted, readTalliesOf, Tallies } from '../../src/sources/webhooks/numbers/tallies.ts'
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../../src/sources/webhooks/settings.ts'
import { type HeaderList, JOB, type JobState } from '../../src/sources/webhooks/webhook.ts'
import { Announcer } from '../../src/store/announcer.ts'
import type { Database, Integer } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import type { FreshStore, StoreKind } from './stores.ts'
import { httpReceiver, type Received, type Receiver } from './stub-receiver.ts'
import {
  CHANNEL,
  changeConsumer,
  ERASE,
  insertChannel,
  insertConsumer,
  insertJob,
  insertMessage,
  type JobRow,
  jobRows,
  readAttempts,
  readConsumer,
  readJobs,
  readLetters,
} from './webhook-courier-rows.ts'

/** How often a test looks for what happens at once. */
export const SOON = { interval: 5 }

export interface ConsumerDraft {
  readonly url: string
  readonly consumerId?: string
  readonly pulls?: boolean
  readonly secret?: string
  readonly previousSecret?: string
  readonly mostAtOnce?: number
  readonly mostPerSecond?: number
}

export interface MessageDraft {
  readonly consumers: readonly number[]
  readonly messageId?: string
  readonly payload?: string | Uint8Array
  readonly priority?: number
  readonly headers?: HeaderList
  readonly state?: JobState
  readonly attempts?: number
  readonly dueAt?: bigint
  readonly claim?: string
}

export type DeliverySettings = Partial<WebhookSettings['delivery']>

/** What couriers log. */
export class KeptLog implements Log {
  readonly lines: { readonly level: string; readonly details: object; readonly message: string }[] = []
  debug = (): void => {}
  info = (details: object, message: string): void => void this.lines.push({ level: 'info', details, message })
  warn = (details: object, message: string): void => void this.lines.push({ level: 'warn', details, message })
  error = (details: object, message: string): void =>
    void this.lines.push({ level: 'error', details, message })
}

export class Depot {
  readonly db: Database
  readonly clock = new TestClock()
  readonly log = new KeptLog()
  readonly registers = newRegisters()
  readonly xids = new Xids(this.clock)
  readonly place: FreshStore
  readonly #couriers: Courier[] = []
  readonly #announcers: Announcer[] = []
  readonly #receivers: Receiver[] = []
  readonly #others: Database[] = []
  #numbers = CHANNEL
  #messages = 0

  private constructor(db: Database, place: FreshStore) {
    this.db = db
    this.place = place
    this.clock.freeze(instant(1_800_000_000_000_000n))
  }

  static async open(store: StoreKind): Promise<Depot> {
    const place = await store.fresh()
    const db = openDatabase(place.url, { poolSize: 6 })
    await migrate(db, MIGRATIONS)
    const depot = new Depot(db, place)
    await db.session('test', (session) => session.run(insertChannel))
    return depot
  }

  async close(): Promise<void> {
    await this.clear()
    await this.db.close()
    await this.place.dispose()
  }

  /** Ends what a test has begun, and leaves nothing of it. */
  async clear(): Promise<void> {
    await Promise.all(this.#couriers.splice(0).map((courier) => courier.stop(0)))
    for (const announcer of this.#announcers.splice(0)) announcer.stop()
    await Promise.all(this.#receivers.splice(0).map((receiver) => receiver.close()))
    await Promise.all(this.#others.splice(0).map((db) => db.close()))
    this.log.lines.length = 0
    await this.db.transaction('test', async (tx) => {
      for (const statement of ERASE) await tx.run(statement)
    })
  }

  /** A receiver of callbacks. */
  async receiver(answer: (response: ServerResponse, request: Received) => void = ok): Promise<Receiver> {
    const receiver = await httpReceiver(answer)
    this.#receivers.push(receiver)
    return receiver
  }

  async consumer(draft: ConsumerDraft): Promise<number> {
    this.#numbers += 1
    const number = this.#numbers
    const { url, consumerId = `k${number}`, pulls = false } = draft
    await this.db.session('test', (session) =>
      session.run(
        insertConsumer,
        `consumer${number}`,
        number,
        consumerId,
        `token-of-${consumerId}`,
        url,
        pulls ? 1 : 0,
        draft.secret ?? null,
        draft.previousSecret ?? null,
        draft.mostAtOnce ?? null,
        draft.mostPerSecond ?? null,
      ),
    )
    return number
  }

  async change(consumer: number, pulls: boolean, url: string): Promise<void> {
    await this.db.session('test', (session) => session.run(changeConsumer, consumer, pulls ? 1 : 0, url))
  }

  /** Stores a message with a job for each of the consumers; gives the ids of the jobs. */
  async message(draft: MessageDraft): Promise<readonly Xid[]> {
    const { consumers, priority = 0, headers = [], state = JOB.ready } = draft
    this.#messages += 1
    const id = this.xids.next()
    const messageId = draft.messageId ?? `m${this.#messages}`
    const first = this.xids.block(Math.max(1, consumers.length))
    const now = this.clock.now()
    const payload = Buffer.from(draft.payload ?? messageId)
    const jobs = consumers.map((consumer, i) => ({ consumer, id: xidAfter(first, i) }))
    await this.db.transaction('test', async (tx) => {
      const tallies = new Tallies()
      const json = JSON.stringify(headers)
      await tx.run(
        insertMessage,
        id,
        messageId,
        now,
        priority,
        first,
        jobs.length,
        'text/plain',
        json,
        payload,
      )
      for (const job of jobs) {
        const { attempts = 0, dueAt = null, claim = null } = draft
        await tx.run(insertJob, now, priority, job.consumer, state, job.id, id, attempts, dueAt, claim)
        tallies.moved(job.consumer, null, state)
      }
      tallies.write(tx)
    })
    return jobs.map((job) => job.id)
  }

  /** A courier that has begun to deliver; `another`: as another server has it; `db`: what it has instead of the store. */
  courier(
    delivery: DeliverySettings = {},
    options: { another?: boolean; recovery?: boolean; db?: Database } = {},
  ): Courier {
    const { another = false, recovery = true } = options
    let db = options.db ?? this.db
    if (another) {
      db = openDatabase(this.place.url, { poolSize: 6 })
      this.#others.push(db)
    }
    const defaults = DEFAULT_WEBHOOK_SETTINGS
    const settings: WebhookSettings = {
      ...defaults,
      delivery: { ...defaults.delivery, breaker: { ...defaults.delivery.breaker, failures: 0 }, ...delivery },
      recovery: { enabled: recovery },
    }
    const registers = another ? newRegisters() : this.registers
    const announcer = new Announcer(db, this.log)
    void announcer.start()
    this.#announcers.push(announcer)
    const courier = new Courier({ db, clock: this.clock, log: this.log, registers, settings, announcer })
    this.#couriers.push(courier)
    courier.start()
    return courier
  }

  /** Lets time pass in steps of a second; what an hour does is done between them. */
  async pass(seconds: number, step = 1): Promise<void> {
    for (let left = seconds; left > 0; left -= step) {
      this.clock.advance(microseconds(Math.min(step, left)))
      await this.rest()
    }
  }

  /** Lets time pass until it is so. */
  async passUntil(isSo: () => boolean | Promise<boolean>, step = 0.5): Promise<void> {
    for (let steps = 0; !(await isSo()); steps++) {
      if (steps === 500) expect.fail('it is not so, however much time passes')
      await this.pass(step, step)
    }
  }

  /** A moment in which what is due can be done. */
  async rest(): Promise<void> {
    for (let i = 0; i < 4; i++) await this.db.session('test', (session) => session.rows(readJobs))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }

  jobs(): Promise<readonly JobRow[]> {
    return this.db.session('test', jobRows)
  }

  /** Waits until all jobs are in these states, in the order of their ids. */
  async until(...states: readonly JobState[]): Promise<readonly JobRow[]> {
    const read = async () => (await this.jobs()).map(({ state }) => state)
    await expect.poll(read, SOON).toEqual(states)
    return this.jobs()
  }

  tallies(consumer: number): Promise<Counted> {
    return this.db.session('test', (session) => readTalliesOf(session, consumer))
  }

  async failures(): Promise<readonly string[]> {
    const rows = await this.db.session('test', (session) =>
      session.rows<{ error_class: string; error_message: string }>(readAttempts),
    )
    return rows.map(({ error_class, error_message }) => `${error_class}: ${error_message}`)
  }

  letters(): Promise<readonly Record<string, unknown>[]> {
    return this.db.session('test', (session) => session.rows<Record<string, unknown>>(readLetters))
  }

  async pauseOf(
    consumer: number,
  ): Promise<{ since: bigint; until: bigint; seconds: number; reason: string } | null> {
    const [row] = await this.db.session('test', (session) =>
      session.rows<Record<string, Integer | string | null>>(readConsumer, consumer),
    )
    if (row === undefined) throw new Error('there is no such consumer')
    expect(Number(row.updated_at)).toBe(7)
    const { paused_since, paused_until, pause_seconds, pause_reason } = row
    const fields = [paused_since, paused_until, pause_seconds, pause_reason]
    if (fields.every((field) => field == null)) return null
    return {
      since: BigInt(paused_since ?? 0),
      until: BigInt(paused_until ?? 0),
      seconds: Number(pause_seconds),
      reason: String(pause_reason),
    }
  }
}

const ok = (response: ServerResponse): void => void response.writeHead(200).end()
