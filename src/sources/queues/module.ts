/** Plain queues: dead items become letters in their dead queue. The queues themselves are a layer below. */
import { silentLog } from '../../core/log.ts'
import { type QueueOptions, QueuesSchema, queueLimits } from '../../queues/limits.ts'
import { warnOfOlderQueues } from '../../queues/settings.ts'
import type { SourceModule } from '../source-module.ts'

export const queuesModule: SourceModule<'queues', typeof QueuesSchema, QueueOptions> = {
  name: 'queues',
  title: 'Queues',
  settings: { schema: QueuesSchema },
  kind: { goesToQueues: true, ordersByKey: true, capturesItems: true },
  async open({ queues, letters, store, plainLog }, options) {
    // Logged once, so only where somebody reads it.
    if (plainLog !== silentLog) await warnOfOlderQueues(store.db, plainLog)
    const { maxProduceBytes } = queueLimits(options)
    const served = { queues, numbers: letters.numbers, maxProduceBytes }
    return {
      letters: queues.letterSource(this.name),
      services: [],
      face: {},
      http: { serve: async (server) => (await import('./api.ts')).queueApi(served, server) },
    }
  },
  demo: async () => (await import('./demo.ts')).queuesDemo,
}
