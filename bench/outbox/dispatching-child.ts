/** The process of the dispatcher that works while something else is measured. */
import { createDispatcher } from '../../src/sources/outbox/index.ts'

const dispatcher = createDispatcher({
  url: process.argv[2] ?? '',
  transport: async () => {},
  // Plain inserts wake nobody: so it has as much to do beside them as beside the writer.
  pollIntervalSeconds: 0.02,
})
await dispatcher.start()
process.once('disconnect', () => void dispatcher.stop().then(() => process.exit(0)))
process.send?.('ready')
