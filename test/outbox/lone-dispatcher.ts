/**
 * A dispatcher in a process that has nothing else: no server, no standard input, no timer of its own. It tells on standard output what it
 * begins to deliver; a delivery takes half a second, so that a test can shut the store meanwhile.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { createDispatcher } from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'

const [, , url = '', verb] = process.argv
const dispatcher = createDispatcher({
  url,
  pollIntervalSeconds: 0.2,
  async transport({ payload }) {
    process.stdout.write(`${Buffer.from(payload).toString()}\n`)
    await pause(500)
  },
})
if (verb === 'drain') {
  await dispatcher.drain()
  process.stdout.write('drained\n')
  await dispatcher.stop()
} else await dispatcher.start()
