/**
 * The callbacks, in a process of its own. `/well/<consumer>` answers at once, `/slow/<consumer>` after some seconds,
 * `/hang/<consumer>` never. Message ids tell when the message was sent, on the clock that all processes share, so that ways are timed here.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { timesOf } from '../figures.ts'
import { monotonicMs, readMessageId } from './message-id.ts'
import type { Arrived, Question, Received } from './receive.ts'

/** Long enough for attempts to pile up, short enough for a server to stop soon. */
const SLOW_MS = 3_000

/** What came to healthy consumers, one entry for each arrival. */
const atMs: number[] = []
const tookMs: number[] = []
const numbers: number[] = []
const seen = new Set<string>()
let twice = 0
let slow = 0
let hung = 0

const server = createServer({ keepAliveTimeout: 240_000 }, (request, response) => {
  request.resume()
  request.once('end', () => {
    const now = monotonicMs()
    const [, manner, consumer] = (request.url ?? '').split('/')
    if (manner === 'hang') {
      hung += 1
      return
    }
    const answer = () => response.writeHead(200, { 'content-length': 0 }).end()
    if (manner === 'slow') {
      slow += 1
      setTimeout(answer, SLOW_MS)
      return
    }
    const { n, sentAtMs } = readMessageId(String(request.headers['x-broker-message-id']))
    const key = `${consumer} ${n}`
    if (seen.has(key)) twice += 1
    else {
      seen.add(key)
      atMs.push(now)
      tookMs.push(now - sentAtMs)
      numbers.push(n)
    }
    answer()
  })
})

const received = (): Received => ({
  well: atMs.length,
  twice,
  slow,
  hung,
  lastAtMs: atMs.at(-1) ?? Number.NaN,
})

/** Arrivals of messages with these numbers, at these times. */
function arrived({ numbers: [first, last], times: [from, to] }: Question['arrived']): Arrived {
  const ways: number[] = []
  for (const [index, n] of numbers.entries()) {
    const at = atMs[index] ?? Number.NaN
    if (n >= first && n < last && at >= from && at < to) ways.push(tookMs[index] ?? Number.NaN)
  }
  return timesOf(ways)
}

server.listen(0, '127.0.0.1', () => {
  // It listens on a port, not on a path.
  const { port } = server.address() as AddressInfo
  process.send?.({ port })
})
// It is asked nothing else.
process.on('message', (message) => {
  const { id, ask } = message as { id: number; ask: Question['arrived'] | null }
  process.send?.({ id, answer: ask === null ? received() : arrived(ask) })
})
process.once('disconnect', () => process.exit(0))
