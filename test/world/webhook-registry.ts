/** Producers, channels and consumers on a store of their own, without a server around. Time stands still. */
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Xids } from '../../src/core/xid.ts'
import { MIGRATIONS } from '../../src/migrations.ts'
import { Messages } from '../../src/sources/webhooks/messages/messages.ts'
import { REFUSALS, type RefusalName, Refused } from '../../src/sources/webhooks/refusal.ts'
import { Consumers } from '../../src/sources/webhooks/registry/consumers.ts'
import { CHANNELS, Holders, PRODUCERS } from '../../src/sources/webhooks/registry/holders.ts'
import type { Channel, Consumer, Producer } from '../../src/sources/webhooks/webhook.ts'
import { type Database, type Statement, sql, type Value } from '../../src/store/database.ts'
import { migrate } from '../../src/store/migrations.ts'
import { openDatabase } from '../../src/store/open.ts'
import type { FreshStore, StoreKind } from './stores.ts'

const insertJob = sql(
  'test.insertJob',
  `INSERT INTO bartleby.webhook_jobs (id, message, consumer, state, created_at, changed_at, priority)
   VALUES ($1, $1, $2, $3, $4, $4, 0)`,
)

export class WebhookRegistry {
  readonly db: Database
  readonly clock = new TestClock()
  readonly xids = new Xids(this.clock)
  readonly producers: Holders<Producer>
  readonly channels: Holders<Channel>
  readonly consumers: Consumers
  readonly messages: Messages
  readonly #place: FreshStore

  private constructor(db: Database, place: FreshStore) {
    this.db = db
    this.#place = place
    this.clock.freeze(instant(1_800_000_000_900_000n))
    this.producers = new Holders(PRODUCERS, this)
    this.channels = new Holders(CHANNELS, this)
    // One address is refused, whatever the others are.
    this.consumers = new Consumers(this, ({ hostname }) => hostname !== '10.0.0.1')
    this.messages = new Messages(db)
  }

  static async open(store: StoreKind): Promise<WebhookRegistry> {
    const place = await store.fresh()
    const db = openDatabase(place.url, { poolSize: 8 })
    await migrate(db, MIGRATIONS)
    return new WebhookRegistry(db, place)
  }

  async close(): Promise<void> {
    await this.db.close()
    await this.#place.dispose()
  }

  /** A channel that did not exist. */
  channel(channelId: string): Promise<Channel> {
    return this.channels.put(channelId, { name: null, token: null }, null)
  }

  /** A push consumer that did not exist. */
  consumer(channel: Channel, consumerId: string): Promise<Consumer> {
    const request = { name: null, token: null, callbackUrl: 'http://host/hook', type: null }
    return this.consumers.put(channel, consumerId, request, null)
  }

  async job(consumer: Consumer, state: number): Promise<void> {
    await this.write(insertJob, this.xids.next(), consumer.number, state, this.clock.now())
  }

  async write(statement: Statement, ...values: readonly Value[]): Promise<void> {
    await this.db.session('test', (session) => session.run(statement, ...values))
  }

  read<Row>(statement: Statement, ...values: readonly Value[]): Promise<Row[]> {
    return this.db.session('test', (session) => session.rows<Row>(statement, ...values))
  }
}

/** The name of what a call is refused for; `done` when it is not. */
export async function refusalOf(call: Promise<unknown>): Promise<RefusalName | 'done'> {
  try {
    await call
    return 'done'
  } catch (error) {
    if (error instanceof Refused && error.refusal in REFUSALS) return error.refusal
    throw error
  }
}
