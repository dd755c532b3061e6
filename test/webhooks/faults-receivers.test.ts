/**
 * Receivers as they are on the internet: silent, broken, elsewhere, or without an end. None of them holds up another, none is
 * believed, and none gets more of the server than one attempt's worth of time and memory.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Lane } from '../conformance/webhooks/lane.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { overlaid } from '../world/server.ts'
import { stores } from '../world/stores.ts'
import { Broker, expectStatus, QUICK } from '../world/webhooks/broker.ts'
import { expectVerified } from './faults-bench.ts'

const MESSAGES = 5
const FILLING = Buffer.alloc(16_384, 'x')
/** What the network itself may take before anybody notices. */
const MOST_BYTES = 8_000_000

type Act = (socket: Socket) => void

/** Writes as fast as it is taken, until nobody does. */
function pour(socket: Socket, text: string): void {
  socket.write(text)
  const more = () => {
    while (!socket.destroyed && socket.write(FILLING));
  }
  socket.on('drain', more)
  more()
}

const head = (status: string, ...headers: string[]) => [`HTTP/1.1 ${status}`, ...headers, '', ''].join('\r\n')

interface Badness {
  /** What it does with a request. */
  readonly act: Act
  /** What is said about the last of its failures; null when it is a success. */
  readonly failure: RegExp | null
  /** Only time ends a call. */
  readonly hangs?: boolean
}

const TIMED_OUT = /got no answer within 0\.5 s/

const RECEIVERS: Readonly<Record<string, Badness>> = {
  silent: { act: () => {}, failure: TIMED_OUT, hangs: true },
  halfway: { act: (socket) => socket.write('HTTP/1.1 200 O'), failure: TIMED_OUT, hangs: true },
  slamming: { act: (socket) => socket.resetAndDestroy(), failure: /ECONNRESET|closed|socket/i },
  closing: { act: (socket) => socket.end(), failure: /closed|ended|socket/i },
  babbling: { act: (socket) => socket.end('I am no web server.\r\n\r\n'), failure: /.+/ },
  elsewhere: {
    act: (socket) => socket.end(head('302 Found', 'Location: /trap', 'Content-Length: 0')),
    failure: /302/,
  },
  endlesslyFailing: { act: (socket) => pour(socket, head('500 Oops', 'Connection: close')), failure: /500/ },
  endlesslyHappy: { act: (socket) => pour(socket, head('200 OK', 'Connection: close')), failure: null },
  endlessHeaders: {
    act: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const timer = setInterval(() => socket.write('X-More: x\r\n'), 5)
      socket.once('close', () => clearInterval(timer))
    },
    failure: TIMED_OUT,
    hangs: true,
  },
}
const NAMES = Object.keys(RECEIVERS)

/** Acts as the path of a request says. */
class BadReceiver {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #hanging = new Set<Socket>()
  /** The paths of all requests, in order. */
  readonly paths: string[] = []
  mostBytes = 0

  constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket)
      // What becomes of connections is what this is about.
      socket.on('error', () => {})
      socket.once('close', () => {
        this.mostBytes = Math.max(this.mostBytes, socket.bytesWritten)
        this.#sockets.delete(socket)
        this.#hanging.delete(socket)
      })
      socket.on('data', (chunk) => {
        const path = /^POST \/(\S*) /.exec(chunk.toString('latin1'))?.[1]
        if (path === undefined) return
        this.paths.push(path)
        if (RECEIVERS[path]?.hangs === true) this.#hanging.add(socket)
        RECEIVERS[path]?.act(socket)
      })
    })
  }

  get open(): number {
    return this.#sockets.size
  }

  /** Calls that nothing but time ends. */
  get hanging(): number {
    return this.#hanging.size
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    // It listens on a port, not on a path.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

describe.each(stores)('on $name, receivers that', (kind) => {
  let broker: Broker
  let bad: BadReceiver
  let good: Lane
  const lanes = new Map<string, Lane>()

  beforeAll(async () => {
    const delivery = { maxRetry: 1, backoffSeconds: [0.2], rationalDelaySeconds: 0.2, timeoutSeconds: 0.5 }
    broker = await Broker.start(kind, { webhooks: overlaid(QUICK, { delivery }) })
    bad = new BadReceiver()
    const url = await bad.listen()
    good = await Lane.open(broker, 'push')
    for (const name of NAMES) {
      const lane = await good.beside('push', name)
      const { headers } = await broker.client.get(lane.path)
      const since = { 'If-Unmodified-Since': headers['last-modified'] ?? '' }
      await expectStatus(200, broker.client.put(lane.path, { callbackUrl: `${url}/${name}` }, since))
      lanes.set(name, lane)
    }
    for (let i = 0; i < MESSAGES; i++) await good.broadcast(`message ${i}`)
    const failing = NAMES.filter((name) => RECEIVERS[name]?.failure !== null)
    const deadCounts = () => Promise.all(failing.map((name) => lanes.get(name)?.deadCount()))
    const { courier } = broker.office.webhooks
    for (let steps = 0; (await deadCounts()).some((count) => count !== MESSAGES); steps++) {
      expect(steps).toBeLessThan(100)
      // Time passes only for those who need it to end.
      await vi.waitFor(() => expect(courier.held).toBe(bad.hanging), {
        timeout: PATIENCE_MS,
        interval: 5,
      })
      await broker.office.advanceClock(260_000n)
    }
  })
  afterAll(async () => {
    await broker?.stop()
    await bad?.close()
  })

  it.each(NAMES)('are %s get each message as often as they should', async (name) => {
    const { failure } = RECEIVERS[name] ?? expect.fail('it is one of them')
    const calls = bad.paths.filter((path) => path === name).length
    const lane = lanes.get(name)
    if (failure === null) {
      expect(calls).toBe(MESSAGES)
      expect((await lane?.dead())?.DeadJobs).toEqual([])
      return
    }
    expect(calls).toBe(2 * MESSAGES)
    const { DeadJobs: dead } = (await lane?.dead()) ?? expect.fail('there is a lane')
    expect(dead).toHaveLength(MESSAGES)
    for (const job of dead) {
      expect(job).toMatchObject({ RetryAttemptCount: 1, Exhausted: true })
      expect(job.LastError).toMatch(failure)
    }
  })

  it('behave badly harm nobody else, lead nowhere, and keep nothing', async () => {
    expect(good.callbacks()).toHaveLength(MESSAGES)
    expect(bad.paths).not.toContain('trap')
    await vi.waitFor(() => expect(bad.open).toBe(0), { timeout: PATIENCE_MS })
    expect(bad.mostBytes).toBeLessThan(MOST_BYTES)
    expect(broker.office.webhooks.courier.held).toBe(0)
    await expectVerified(broker)
  })
})
