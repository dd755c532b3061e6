/** An outbox in the demo: the shop reports payments to its ERP, which is down now and then and refuses some for good. */

import { CUSTOMERS, shopEvent } from '../../demo/story/shop.ts'
import { dieAtPartner, type SourceDemo } from '../../demo/story/story.ts'
import type { Transaction, Value } from '../../store/database.ts'
import type { SectionOf } from '../source-module.ts'
import type { OutboxFace } from './module.ts'
import type { OutboxesSchema } from './settings.ts'
import { shortHash } from './table/table-names.ts'
import { createOutbox } from './writing/writer.ts'

const OUTBOX = 'shop-events'
/** Rows of an application in the same database stay untouched. */
const TABLE = 'demo_outbox_messages'
const ERP = 'erp'
const REFUSED = 'article.discontinued'

export const outboxDemo: SourceDemo<SectionOf<typeof OutboxesSchema>, OutboxFace> = {
  section: (_given, story) => [
    {
      name: OUTBOX,
      table: TABLE,
      transport: story.partner('/erp/events', (body) => {
        if (body.includes(REFUSED))
          return { status: 422, text: 'article is discontinued and cannot be booked' }
        return story.isOut(ERP) ? { status: 503, text: 'ERP is down for maintenance, try again later' } : null
      }),
      pollIntervalSeconds: 2,
      maxRetries: 2,
      baseRetryDelaySeconds: 4,
      // While the past is filed, minutes pass in a moment.
      deliveryTimeoutSeconds: 300,
      claimSeconds: 600,
      onDead: 'skip',
      retention: { processed: 1, keys: 1 },
    },
  ],
  open(office, story) {
    const { db } = office.outboxes.get(OUTBOX)
    const outbox = createOutbox({
      name: OUTBOX,
      table: TABLE,
      clock: office.clock,
      adapter: {
        dialect: db.dialect,
        run: (tx: Transaction, text, parameters) =>
          tx.rows<Record<string, unknown>>(
            { name: `demo.outbox.${shortHash(text)}`, postgres: text, sqlite: text, bigints: false },
            // Texts, bytes and null.
            ...(parameters as readonly Value[]),
          ),
      },
    })
    const send = async (eventType: string): Promise<void> => {
      const payload = shopEvent(story, eventType)
      const { email } = story.chance.pick(CUSTOMERS)
      await db.transaction('demo.outbox', (tx) =>
        outbox.add(tx, { tenantId: email, eventType, payload, headers: { 'x-shop': 'example' } }),
      )
    }
    const sendPaid = () => send('order.paid')
    const died = (count: number) => dieAtPartner(office, story, { source: 'outbox', count, send: sendPaid })
    return {
      happens: [{ weight: 12, act: () => (story.chance.isOne(0.12) ? send(REFUSED) : sendPaid()) }],
      outages: [{ who: ERP, fromSecond: 70, toSecond: 160, past: { hour: 4, died } }],
    }
  },
}
