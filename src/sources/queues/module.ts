/** Plain queues: items that die become letters in their dead queue. The queues themselves are a layer below. */
import Type from 'typebox'
import { parseGoDuration } from '../../core/duration.ts'
import { silentLog } from '../../core/log.ts'
import { section, wholeNumber } from '../../core/settings/kinds.ts'
import { warnOfOlderQueues } from '../../queues/settings.ts'
import type { QueueOptions } from '../../queues/validate.ts'
import type { SourceModule } from '../source-module.ts'

const QueuesSchema = section({
  maxProduceBytes: wholeNumber(1, 64_000_000, 5_000_000),
  maxPendingRequests: wholeNumber(1, 100_000, 100),
  dedupeWindow: Type.Refine(
    Type.String({ default: '5m', description: "a duration above zero such as '30s', '5m' or '24h'" }),
    (text) => {
      const parsed = parseGoDuration(text)
      return parsed.ok && parsed.ns > 0n
    },
  ),
})

export const queuesModule: SourceModule<'queues', typeof QueuesSchema, QueueOptions> = {
  name: 'queues',
  title: 'Queues',
  settings: { schema: QueuesSchema },
  kind: { goesToQueues: true, ordersByKey: true, capturesItems: true },
  async open({ queues, letters, store, plainLog }, { maxProduceBytes = 5_000_000 } = {}) {
    // Only where somebody reads it: it is told once.
    if (plainLog !== silentLog) await warnOfOlderQueues(store.db, plainLog)
    const served = { queues, ledger: letters.ledger, maxProduceBytes }
    return {
      letters: queues.letterSource(this.name),
      services: [],
      face: {},
      http: { serve: async (server) => (await import('./api.ts')).queueApi(served, server) },
    }
  },
  demo: async () => (await import('./demo.ts')).queuesDemo,
}
