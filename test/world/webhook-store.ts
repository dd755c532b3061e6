/** A store with channels, producers and consumers in it, without an office around: for tests of single acts. Time stands still. */
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Xids } from '../../src/core/xid.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import type { Sender } from '../../src/sources/webhooks/messages/broadcasts.ts'
import { type Counted, readTalliesOf, Tallies } from '../../src/sources/webhooks/numbers/tallies.ts'
import { type RefusalName, Refused } from '../../src/sources/webhooks/refusal.ts'
import { Consumers } from '../../src/sources/webhooks/registry/consumers.ts'
import { CHANNELS, Holders, PRODUCERS } from '../../src/sources/webhooks/registry/holders.ts'
import {
  type Channel,
  type Consumer,
  type ConsumerType,
  JOB,
  type JobState,
  type Producer,
} from '../../src/sources/webhooks/webhook.ts'
import { type Database, type Dialect, type Integer, sql } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import type { FreshStore, StoreKind } from './stores.ts'

const MESSAGES = sql(
  'test.webhookMessages',
  'SELECT * FROM bartleby.webhook_messages WHERE channel = $1 ORDER BY id',
  {
    bigints: true,
  },
)
const JOBS = sql('test.webhookJobs', 'SELECT * FROM bartleby.webhook_jobs WHERE consumer = $1 ORDER BY id', {
  bigints: true,
})

const SETTLE = sql(
  'test.settleWebhookJobs',
  'UPDATE bartleby.webhook_jobs SET state = $2 WHERE consumer = $1 AND state <> $2',
)
const SETTLE_ONE = sql('test.settleWebhookJob', 'UPDATE bartleby.webhook_jobs SET state = $2 WHERE id = $1')
const ERASE_ONE = sql('test.eraseWebhookJob', 'DELETE FROM bartleby.webhook_jobs WHERE id = $1')
const READ_ONE = sql('test.webhookJob', 'SELECT consumer, state FROM bartleby.webhook_jobs WHERE id = $1')
const CONSUMERS = sql('test.consumersOf', 'SELECT number FROM bartleby.webhook_consumers WHERE channel = $1')

/** Inserting a job of this message fails from then on, and of no other. */
const refusal = (message: string) => ({
  postgres: `
    CREATE FUNCTION refuse_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'poison'; END $$;
    CREATE TRIGGER refuse_job BEFORE INSERT ON bartleby.webhook_jobs FOR EACH ROW WHEN (NEW.message = '${message}')
      EXECUTE FUNCTION refuse_job()`,
  sqlite: `CREATE TRIGGER refuse_job BEFORE INSERT ON webhook_jobs WHEN NEW.message = '${message}'
           BEGIN SELECT RAISE(ABORT, 'poison'); END`,
})
const ACCEPTANCE = {
  postgres: 'DROP FUNCTION refuse_job() CASCADE',
  sqlite: 'DROP TRIGGER refuse_job',
}

export interface MessageRow {
  readonly id: string
  readonly message_id: string
  readonly producer: string
  readonly created_at: Integer
  readonly received_at: Integer | null
  readonly scheduled_for: Integer | null
  readonly next_try_at: Integer | null
  readonly priority: Integer
  readonly first_job: string | null
  readonly jobs: Integer
  readonly tries: Integer
  readonly content_type: string
  readonly headers: string
  readonly payload: Uint8Array
}

export interface JobRow {
  readonly id: string
  readonly message: string
  readonly state: Integer
  readonly attempts: Integer
  readonly priority: Integer
  readonly created_at: Integer
  readonly changed_at: Integer
  readonly due_at: Integer | null
}

export class WebhookStore {
  readonly db: Database
  readonly clock: TestClock
  readonly xids: Xids
  readonly channels: Holders<Channel>
  readonly producers: Holders<Producer>
  readonly consumers: Consumers
  readonly #place: FreshStore
  readonly #databases: Database[]
  #names = 0

  private constructor(place: FreshStore) {
    this.#place = place
    this.db = openDatabase(place.url, { poolSize: 8 })
    this.#databases = [this.db]
    this.clock = new TestClock()
    this.clock.freeze(instant(1_800_000_000_000_000n))
    this.xids = new Xids(this.clock)
    this.channels = new Holders(CHANNELS, this)
    this.producers = new Holders(PRODUCERS, this)
    this.consumers = new Consumers(this)
  }

  static async open(kind: StoreKind): Promise<WebhookStore> {
    const store = new WebhookStore(await kind.fresh())
    await migrate(store.db, MIGRATIONS)
    return store
  }

  async close(): Promise<void> {
    for (const db of this.#databases) await db.close()
    await this.#place.dispose()
  }

  /** The same store as another server opens it. */
  another(): Database {
    const db = openDatabase(this.#place.url, { poolSize: 8 })
    this.#databases.push(db)
    return db
  }

  refuseWrites(): Promise<void> {
    return this.#place.refuseWrites()
  }

  acceptWrites(): Promise<void> {
    return this.#place.acceptWrites()
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
  channel(channelId = `channel-${this.#names++}`): Promise<Channel> {
    return this.channels.put(channelId, { name: null, token: 'ctok' }, null)
  }

  /** A new consumer of a channel. */
  consumer(channel: Channel, type: ConsumerType = 'push'): Promise<Consumer> {
    const request = { name: null, token: 'ktok', callbackUrl: 'http://127.0.0.1:9/hook', type }
    return this.consumers.put(channel, `consumer-${this.#names++}`, request, null)
  }

  /** A new producer, with the token `ptok`, as the sender of a channel. */
  async sender(channel: Channel): Promise<Sender> {
    const producer = await this.producers.put(
      `producer-${this.#names++}`,
      { name: null, token: 'ptok' },
      null,
    )
    return { channel: channel.number, channelId: channel.channelId, producer: producer.id }
  }

  messages(channel: Channel): Promise<MessageRow[]> {
    return this.db.session('test', (session) => session.rows<MessageRow>(MESSAGES, channel.number))
  }

  jobs(consumer: Consumer): Promise<JobRow[]> {
    return this.db.session('test', (session) => session.rows<JobRow>(JOBS, consumer.number))
  }

  /** Puts all ready jobs of a channel into another state, with their counts. */
  async settleJobs(channel: Channel, state: JobState): Promise<void> {
    await this.db.transaction('test', async (tx) => {
      const tallies = new Tallies()
      for (const { number } of await tx.rows<{ number: Integer }>(CONSUMERS, channel.number)) {
        tallies.moved(Number(number), JOB.ready, state, await tx.run(SETTLE, number, state))
      }
      tallies.write(tx)
    })
  }

  /** Puts one job into another state, or erases it, with its counts. */
  async settleJob(id: string, state: JobState | null): Promise<void> {
    await this.db.transaction('test', async (tx) => {
      const [job] = await tx.rows<{ consumer: Integer; state: Integer }>(READ_ONE, id)
      if (job === undefined) throw new Error(`there is no job ${id}`)
      const tallies = new Tallies()
      // The states in the store are those of the type.
      tallies.moved(Number(job.consumer), Number(job.state) as JobState, state)
      await (state === null ? tx.run(ERASE_ONE, id) : tx.run(SETTLE_ONE, id, state))
      tallies.write(tx)
    })
  }

  /** What is counted of a channel or a consumer; what is 0 is left out. */
  async counted(subject: { readonly number: number }): Promise<Counted> {
    const counted = await this.db.session('test', (session) => readTalliesOf(session, subject.number))
    return Object.fromEntries(Object.entries(counted).filter(([, amount]) => amount !== 0))
  }
}

/** The name of what a call is refused for; null when it is not. */
export const refusalOf = (call: Promise<unknown>): Promise<RefusalName | null> =>
  call.then(
    () => null,
    (error: unknown) => {
      if (error instanceof Refused) return error.refusal
      throw error
    },
  )
