/** For tests only. */
import { instant } from '../../src/core/clock.ts'
import type { OutboxMessage } from '../../src/sources/outbox/table/message.ts'

/** A message; a test gives what matters to it. */
export const message = (given: Partial<OutboxMessage> = {}): OutboxMessage => ({
  id: '7',
  tenantId: 'acme',
  eventType: 'order.created',
  payload: Buffer.from('{"order":42}'),
  key: 'ba73d97a-5b6f-e712-ae41-f39ca66495e4',
  createdAt: instant(1_800_000_000_000_000n),
  retryCount: 0,
  orderingKey: null,
  headers: {},
  correlationId: null,
  ...given,
})
