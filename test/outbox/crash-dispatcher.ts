/**
 * A dispatcher as a process of its own, to be killed. It delivers to the recorder of the test over one connection, and
 * ends when its standard input does.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { createDispatcher } from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import { DEADLY, type DispatcherOrder, type Said } from './crash-recorder.ts'

// The order comes from the test, which wrote it.
const { port, options } = JSON.parse(process.argv[2] ?? '') as DispatcherOrder
const socket = connect(port, '127.0.0.1')
await once(socket, 'connect')
const waiting = new Map<number, () => void>()
const failing = new Map<number, (reason: Error) => void>()
createInterface({ input: socket }).on('line', (number) => waiting.get(Number(number))?.())
socket.once('close', () => {
  for (const fail of failing.values()) fail(new Error('the recorder is gone'))
})
const say = (said: Said) => socket.write(`${JSON.stringify(said)}\n`)

let begun = 0
const dispatcher = createDispatcher({
  ...options,
  async transport({ id, key, orderingKey, payload }, signal) {
    if (Buffer.from(payload).toString() === DEADLY) process.exit(7)
    const number = ++begun
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.set(number, resolve)
    failing.set(number, reject)
    signal.addEventListener('abort', () => {
      say({ end: number })
      reject(signal.reason)
    })
    say({ begin: number, id, key, line: orderingKey, pid: process.pid })
    try {
      await promise
    } finally {
      waiting.delete(number)
      failing.delete(number)
    }
  },
})
await dispatcher.start()
process.stdout.write('ready\n')
process.stdin.resume()
await once(process.stdin, 'end')
await dispatcher.stop()
socket.destroy()
