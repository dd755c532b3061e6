/**
 * The consumers of a channel; the same id on two channels is two consumers. One with jobs, whatever their state, cannot be deleted; a
 * deleted one keeps nothing but its letters.
 */
import { type Database, sql, type Value } from '../../../store/database.ts'
import { holdChannel } from '../messages/dispatch.ts'
import { webhookCounter } from '../numbers/counts.ts'
import { Refused } from '../refusal.ts'
import type { Parts } from '../settings.ts'
import { type Channel, CONSUMER, CONSUMER_TYPES, type Consumer } from '../webhook.ts'
import { checkCondition, Holders, holderKind } from './holders.ts'
import type { Page, PageRequest } from './pages.ts'
import { given, parseCallbackUrl } from './texts.ts'

export const ownOfConsumer = ({ callbackUrl, type }: Pick<Consumer, 'callbackUrl' | 'type'>): Value[] => [
  callbackUrl,
  type === 'pull' ? 1 : 0,
]

export const CONSUMERS = holderKind<Consumer>({
  name: 'Consumer',
  table: 'webhook_consumers',
  unique: ['channel', 'consumer_id'],
  key: ['number', ({ number }) => number],
  own: ['callback_url', 'pulls'],
  ownOf: ownOfConsumer,
  row: CONSUMER,
})

/** The first entry of its range of the index, whatever the state. No locks. */
const findJob = sql(
  'webhooks.findJobOf',
  `SELECT 1 AS found FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_by_state
   WHERE (consumer, state) >= ($1, 0) AND consumer <= $1 ORDER BY consumer, state, changed_at LIMIT 1`,
)

/** By number, if it is still the one that was read. */
const remove = sql(
  'webhooks.deleteConsumer',
  'DELETE FROM bartleby.webhook_consumers WHERE number = $1 AND updated_at = $2',
)

/** Null and the empty text are nothing. */
interface ConsumerRequest {
  readonly name: string | null
  readonly token: string | null
  readonly callbackUrl: string | null
  readonly type: string | null
}

export class Consumers {
  readonly #db: Database
  readonly #all: Holders<Consumer>
  readonly #checkAddress: (url: URL) => boolean

  /** `checkAddress` decides by the URL alone. */
  constructor(parts: Pick<Parts, 'db' | 'clock' | 'xids'>, checkAddress: (url: URL) => boolean = () => true) {
    this.#db = parts.db
    this.#all = new Holders(CONSUMERS, parts)
    this.#checkAddress = checkAddress
  }

  get(channel: Channel, consumerId: string): Promise<Consumer | null> {
    return this.#all.get(consumerId, channel.number)
  }

  /** Refuses to replace what the caller does not know, and addresses that cannot be called. */
  put(
    channel: Channel,
    consumerId: string,
    request: ConsumerRequest,
    ifUnmodifiedSince: string | null,
  ): Promise<Consumer> {
    const own = () => ownOfConsumer(this.#checked(request))
    return this.#all.put(consumerId, request, ifUnmodifiedSince, { scope: [channel.number], own })
  }

  /** With its counts. Refuses while it has jobs. */
  delete(channel: Channel, consumerId: string, ifUnmodifiedSince: string | null): Promise<void> {
    return this.#db.transaction('webhooks.deleteConsumer', async (tx) => {
      // From here on nobody makes jobs of this channel.
      await holdChannel(tx, channel.number)
      const consumer = await CONSUMERS.read(tx, [channel.number, consumerId])
      if (consumer === null) throw new Refused('resource_unknown')
      checkCondition(consumer, ifUnmodifiedSince)
      const { number, updatedAt } = consumer
      const [jobs, removed] = await Promise.all([tx.rows(findJob, number), tx.run(remove, number, updatedAt)])
      if (jobs.length > 0) throw new Refused('consumer_has_jobs')
      if (removed === 0) throw new Refused('condition_failed')
      await webhookCounter.forget(tx, [number])
    })
  }

  list(channel: Channel, page: PageRequest): Promise<Page<Consumer>> {
    return this.#all.list(page, channel.number)
  }

  #checked({ callbackUrl, type }: ConsumerRequest): Pick<Consumer, 'callbackUrl' | 'type'> {
    const address = given(callbackUrl) ?? ''
    const url = parseCallbackUrl(address)
    if (url === null) throw new Refused('callback_invalid')
    if (!this.#checkAddress(url)) throw new Refused('callback_refused')
    const wanted = given(type) ?? 'push'
    const known = CONSUMER_TYPES.find((each) => each === wanted)
    if (known === undefined) throw new Refused('type_invalid')
    return { callbackUrl: address, type: known }
  }
}
