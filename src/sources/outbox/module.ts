/** Outboxes: messages that an application wrote in its own transaction. */
import type { SourceModule } from '../source-module.ts'
import type { Outboxes, OutboxSettings } from './served/outboxes.ts'
import { OutboxesSchema, problemsOfOutboxes } from './settings.ts'

export interface OutboxFace {
  readonly outboxes: Outboxes
}

export const outboxModule: SourceModule<
  'outbox',
  typeof OutboxesSchema,
  readonly OutboxSettings[],
  OutboxFace
> = {
  name: 'outbox',
  title: 'Outbox',
  settings: { schema: OutboxesSchema, problems: problemsOfOutboxes },
  kind: { ordersByKey: true },
  async open({ store, clock, plainLog: log, registers, queues, offers: { brokers = null } }, options) {
    const { Outboxes } = await import('./served/outboxes.ts')
    const { servedOutboxes } = await import('./served/readings.ts')
    const outboxes = new Outboxes(options ?? [], { store, clock, log, registers, queues, kafka: brokers })
    return {
      letters: outboxes.source,
      services: [outboxes],
      face: { outboxes },
      ...servedOutboxes(() => outboxes.all(), clock),
    }
  },
  demo: async () => (await import('./demo.ts')).outboxDemo,
}
