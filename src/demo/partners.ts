/** How the invented shop tells its partners what happened: through the outbox, and through webhooks. */

import type { Office } from '../office.ts'
import { shortHash } from '../sources/outbox/table/table-names.ts'
import { createOutbox, type Outbox } from '../sources/outbox/writing/writer.ts'
import type { Transaction, Value } from '../store/database.ts'
import { CHANNEL, OUTBOX, OUTBOX_TABLE, PRODUCER } from './config.ts'
import { CUSTOMERS, type Occasion, shopEvent } from './payloads.ts'

export class Partners {
  readonly #office: Office
  readonly #outbox: Outbox<Transaction>

  constructor(office: Office) {
    this.#office = office
    const { db } = office.outboxes.get(OUTBOX)
    this.#outbox = createOutbox({
      name: OUTBOX,
      table: OUTBOX_TABLE,
      clock: office.clock,
      adapter: {
        dialect: db.dialect,
        run: (tx, text, parameters) =>
          tx.rows<Record<string, unknown>>(
            { name: `demo.outbox.${shortHash(text)}`, postgres: text, sqlite: text, bigints: false },
            // Texts, bytes and null, as adapters are promised.
            ...(parameters as readonly Value[]),
          ),
      },
    })
  }

  /** A message for the ERP, in the outbox. */
  async tellErp(occasion: Occasion, eventType: string): Promise<void> {
    const { db } = this.#office.outboxes.get(OUTBOX)
    const payload = shopEvent(occasion, eventType)
    const { email } = occasion.chance.pick(CUSTOMERS)
    await db.transaction('demo.outbox', (tx) =>
      this.#outbox.add(tx, { tenantId: email, eventType, payload, headers: { 'x-shop': 'example' } }),
    )
  }

  /** A message for everybody on the channel. */
  async tellAll(occasion: Occasion, eventType: string): Promise<void> {
    const { broadcasts, settings } = this.#office.webhooks
    const { channels, producers } = settings.seed
    const sender = await broadcasts.authorise({
      channelId: CHANNEL,
      channelToken: channels.find(({ id }) => id === CHANNEL)?.token ?? '',
      producerId: PRODUCER,
      producerToken: producers.find(({ id }) => id === PRODUCER)?.token ?? '',
    })
    await broadcasts.accept(sender, {
      messageId: null,
      content: {
        payload: shopEvent(occasion, eventType),
        contentType: 'application/json',
        priority: 0,
        headers: [],
      },
      scheduledFor: null,
    })
  }
}
