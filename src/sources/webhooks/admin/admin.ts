/**
 * What operators do with consumers: end a pause, set limits, make and drop signing secrets. It holds on every server from the next attempt
 * on, and leaves `updated_at`, which the webhook API shows, alone.
 */
import { randomBytes } from 'node:crypto'
import { failure } from '../../../core/errors.ts'
import { type Statement, sql, type Value } from '../../../store/database.ts'
import { resumeConsumer } from '../courier/breaker.ts'
import { type ConsumerOverview, type OverviewPlace, readOverview } from '../numbers/consumer-overview.ts'
import type { Consumers } from '../registry/consumers.ts'
import type { Holders } from '../registry/holders.ts'
import type { Parts } from '../settings.ts'
import type { Channel, Consumer } from '../webhook.ts'

interface WebhookAdminParts extends Pick<Parts, 'db' | 'clock'> {
  readonly channels: Holders<Channel>
  readonly consumers: Consumers
  readonly wake: (consumers: Iterable<number>) => void
}

/** Null: the default. */
export type ConsumerLimits = Pick<ConsumerOverview, 'mostAtOnce' | 'mostPerSecond'>

/** By unique number. */
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

  /** Fails for an unknown channel. */
  async consumers(request: {
    readonly channelId: string | null
    readonly after: OverviewPlace | null
    readonly limit: number
  }): Promise<readonly ConsumerOverview[]> {
    const { channelId, after, limit } = request
    const { db, channels } = this.#parts
    const channel = channelId === null ? null : await channels.get(channelId)
    if (channel === null && channelId !== null) throw failure('channel_unknown', { channel: channelId })
    return readOverview(db, { channel: channel?.number ?? null, after, limit })
  }

  /** False when it was not paused. */
  async resume({ number }: Consumer): Promise<boolean> {
    const resumed = await resumeConsumer(this.#parts.db, number)
    if (resumed) this.#parts.wake([number])
    return resumed
  }

  async limit(consumer: Consumer, { mostAtOnce, mostPerSecond }: ConsumerLimits): Promise<void> {
    await this.#change(setLimits, consumer, mostAtOnce, mostPerSecond)
    this.#parts.wake([consumer.number])
  }

  /** Shown this once. The one before it signs too until it is dropped. */
  async newSecret(consumer: Consumer): Promise<string> {
    const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
    await this.#change(rotateSecret, consumer, secret, this.#parts.clock.now())
    return secret
  }

  dropSecrets(consumer: Consumer, which: 'previous' | 'all'): Promise<void> {
    return this.#change(which === 'all' ? dropSecrets : dropPrevious, consumer)
  }

  async consumer(channelId: string, consumerId: string): Promise<Consumer> {
    const channel = await this.#parts.channels.get(channelId)
    const consumer = channel === null ? null : await this.#parts.consumers.get(channel, consumerId)
    if (consumer === null) throw failure('consumer_unknown', { channel: channelId, consumer: consumerId })
    return consumer
  }

  async #change(statement: Statement, { number }: Consumer, ...values: readonly Value[]): Promise<void> {
    await this.#parts.db.statement(statement.name, (tx) => tx.run(statement, number, ...values))
  }
}
