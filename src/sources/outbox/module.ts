/** Outboxes: messages that an application wrote in its own transaction, and nobody took. */
import type { SourceModule } from '../source-module.ts'
import { OutboxesSchema, outboxesInFolder, problemsOfOutboxes } from './settings-schema.ts'

export const outboxModule: SourceModule<'outbox', typeof OutboxesSchema> = {
  name: 'outbox',
  title: 'Outbox',
  settings: { schema: OutboxesSchema, problems: problemsOfOutboxes, inFolder: outboxesInFolder },
}
