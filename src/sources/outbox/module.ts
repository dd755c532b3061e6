/** Outboxes: messages that an application wrote in its own transaction, and nobody took. */
import type { SourceModule } from '../source-module.ts'

export const outboxModule: SourceModule = {
  name: 'outbox',
  title: 'Outbox',
}
