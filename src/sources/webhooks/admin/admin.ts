/**
 * What operators do with consumers beside the webhook API: end a pause, set limits, make and drop signing secrets. It holds
 * on every server from the next attempt on. When a consumer was changed, which its own API speaks of, stays as it is.
 */
import { randomBytes } from 'node:crypto'
import { failure } from '../../../core/errors.ts'
import { type Statement, sql, type Value } from '../../../store/database.ts'
import { resumeConsumer } from '../courier/pauses.ts'
import type { BulkRun, BulkRuns } from '../dead/bulk-runs.ts'
import { type ConsumerOverview, type OverviewPlace, readOverview } from '../numbers/consumer-overview.ts'
import type { Consumers } from '../registry/consumers.ts'
import type { Holders } from '../registry/holders.ts'
import type { Parts } from '../settings.ts'
import type { Channel, Consumer } from '../webhook.ts'

interface WebhookAdminParts extends Pick<Parts, 'db' | 'clock'> {
  readonly channels: Holders<Channel>
  readonly consumers: Consumers
  readonly bulk: BulkRuns
  /** Jobs of these push consumers may be ready. */
  readonly wake: (consumers: Iterable<number>) => void
}

/** Attempts at a consumer at the same time and per second; null: the default. */
export interface ConsumerLimits {
  readonly mostAtOnce: number | null
  readonly mostPerSecond: number | null
}

/** Each one row by its unique number, whatever else changes it at the same time. */
const setLimits = sql(
  'webhooks.setLimits',
  'UPDATE bartleby.webhook_consumers SET most_at_once = $2, most_per_second = $3 WHERE number = $1',
)
/** The present secret becomes the previous one. */
const rotateSecret = sql(
  'webhooks.rotateSecret',
  `UPDATE bartleby.webhook_consumers SET previous_secret = secret, secret = $2, secret_changed_at = $3
   WHERE number = $1`,
)
const dropPrevious = sql(
  'webhooks.dropPreviousSecret',
  'UPDATE bartleby.webhook_consumers SET previous_secret = NULL WHERE number = $1',
)
const dropSecrets = sql(
  'webhooks.dropSecrets',
  `UPDATE bartleby.webhook_consumers SET secret = NULL, previous_secret = NULL, secret_changed_at = NULL
   WHERE number = $1`,
)

const SECRET_BYTES = 32

export class WebhookAdmin {
  readonly #parts: WebhookAdminParts

  constructor(parts: WebhookAdminParts) {
    this.#parts = parts
  }

  /** A page of consumers, of one channel or of all; fails when there is no such channel. */
  async consumers(request: {
    readonly channelId: string | null
    readonly after: OverviewPlace | null
    readonly limit: number
  }): Promise<readonly ConsumerOverview[]> {
    const { channelId, after, limit } = request
    const channel = channelId === null ? null : (await this.#channel(channelId)).number
    return readOverview(this.#parts.db, { channel, after, limit })
  }

  /** Ends the pause of a consumer; false when it was not paused. */
  async resume(channelId: string, consumerId: string): Promise<boolean> {
    const { number } = await this.#consumer(channelId, consumerId)
    const resumed = await resumeConsumer(this.#parts.db, number)
    if (resumed) this.#parts.wake([number])
    return resumed
  }

  async limit(channelId: string, consumerId: string, limits: ConsumerLimits): Promise<void> {
    const { mostAtOnce, mostPerSecond } = limits
    this.#parts.wake([await this.#change(setLimits, channelId, consumerId, mostAtOnce, mostPerSecond)])
  }

  /** Makes a new secret and gives it, this once. The one before it, if any, signs too until it is dropped. */
  async newSecret(channelId: string, consumerId: string): Promise<string> {
    const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
    await this.#change(rotateSecret, channelId, consumerId, secret, this.#parts.clock.now())
    return secret
  }

  /** From now on only the newest secret signs. */
  async dropPreviousSecret(channelId: string, consumerId: string): Promise<void> {
    await this.#change(dropPrevious, channelId, consumerId)
  }

  /** From now on deliveries are not signed. */
  async dropSecrets(channelId: string, consumerId: string): Promise<void> {
    await this.#change(dropSecrets, channelId, consumerId)
  }

  /** Begins to requeue all dead jobs; it goes on in the background when they are many. */
  async requeueAll(channelId: string, consumerId: string, actor: string): Promise<void> {
    await this.#parts.bulk.requeueAll(await this.#consumer(channelId, consumerId), actor)
  }

  /** Erases all dead jobs whose attempts are used up; gives how many. */
  async purge(channelId: string, consumerId: string, actor: string): Promise<number> {
    return this.#parts.bulk.purge(await this.#consumer(channelId, consumerId), actor)
  }

  /** The newest requeues and purges of all dead jobs. */
  runs(limit: number): Promise<readonly BulkRun[]> {
    return this.#parts.bulk.list(limit)
  }

  /** Changes a consumer; gives its number. */
  async #change(statement: Statement, channelId: string, consumerId: string, ...values: readonly Value[]) {
    const { number } = await this.#consumer(channelId, consumerId)
    await this.#parts.db.statement(statement.name, (tx) => tx.run(statement, number, ...values))
    return number
  }

  async #channel(channelId: string): Promise<Channel> {
    const channel = await this.#parts.channels.get(channelId)
    if (channel === null) throw failure('channel_unknown', { channel: channelId })
    return channel
  }

  async #consumer(channelId: string, consumerId: string): Promise<Consumer> {
    const channel = await this.#parts.channels.get(channelId)
    const consumer = channel === null ? null : await this.#parts.consumers.get(channel, consumerId)
    if (consumer === null) throw failure('consumer_unknown', { channel: channelId, consumer: consumerId })
    return consumer
  }
}
