import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SERVER_EPOCH_MS, StubServer } from '../../test/world/stub-server.ts'
import { QueueClient } from './client.ts'
import type { ConsumerOptions, ConsumerProblem, ItemContext, ItemHandler } from './consume.ts'
import { DeadLetterError } from './errors.ts'
import type { LeasedItem } from './types.ts'

let server: StubServer
let problems: ConsumerProblem[]

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  server = new StubServer()
  problems = []
})

afterEach(() => vi.useRealTimers())

function consume(handler: ItemHandler, options: ConsumerOptions = {}) {
  const client = new QueueClient({ url: 'http://stub', fetch: server.fetch })
  return client.consume('q', handler, { onError: (problem) => problems.push(problem), ...options })
}

const nameOf = (item: LeasedItem) => new TextDecoder().decode(item.payload)
/** Lets everything happen that needs no time: results are written at the end of a turn. */
async function settle() {
  for (let turn = 0; turn < 5; turn++) {
    await vi.advanceTimersByTimeAsync(0)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a consumer', () => {
  it('completes what its handler returns from, in batches', async () => {
    server.add(...'abcdefgh')
    const seen: string[] = []
    const consumer = consume((item) => void seen.push(nameOf(item)), { concurrency: 8 })
    await settle()
    await consumer.stop()

    expect(seen).toEqual([...'abcdefgh'])
    expect(server.completed.toSorted()).toEqual([...'abcdefgh'])
    expect(server.callsTo('/v1/queue.complete').length).toBeLessThanOrEqual(2)
    expect(problems).toEqual([])
  })

  it('never runs more handlers than asked for, and leases no more than it can run', async () => {
    server.add(...'abcdefg')
    const gates: (() => void)[] = []
    let running = 0
    let most = 0
    const consumer = consume(
      async () => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => gates.push(resolve))
        running--
      },
      { concurrency: 3 },
    )
    while (server.completed.length < 7) {
      await settle()
      gates.shift()?.()
    }
    await consumer.stop()
    expect(most).toBe(3)
    expect(server.callsTo('/v1/queue.lease').every(({ batch_size }) => (batch_size ?? 0) <= 3)).toBe(true)
  })

  it("retries what its handler throws on, later and by the server's clock", async () => {
    server.add('a')
    const failing = () => Promise.reject(new Error('no'))
    const consumer = consume(failing, { retryDelayMs: () => 5_000 })
    await settle()
    await consumer.stop()

    const [retried] = server.retried
    const delayMs = Date.parse(retried?.retry_at ?? '') - SERVER_EPOCH_MS
    expect(Math.round(delayMs / 1000)).toBe(5 + Math.round(performance.now() / 1000))
    expect(problems).toMatchObject([{ during: 'handler', error: { message: 'no' } }])
  })

  it('sends an item to the dead queue when its handler throws DeadLetterError', async () => {
    server.add('a')
    const consumer = consume(() => {
      throw new DeadLetterError('not an order')
    })
    await settle()
    await consumer.stop()
    expect(server.retried).toEqual([
      {
        id: 'a'.repeat(27),
        dead: true,
        error_class: 'DeadLetterError',
        error_message: 'not an order',
        error_stack: expect.stringContaining('not an order'),
      },
    ])
  })

  it('keeps the lease of a slow handler alive', async () => {
    server.add('a')
    const gate = Promise.withResolvers<void>()
    const consumer = consume(() => gate.promise)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(server.callsTo('/v1/queue.extend').length).toBeGreaterThanOrEqual(10)
    gate.resolve()
    await consumer.stop()
    expect(server.completed).toEqual(['a'])
  })

  it('tells a handler that its lease is lost, and settles the item no more', async () => {
    server.add('a')
    let context: ItemContext | undefined
    server.interfere = ({ path, body }) =>
      path === '/v1/queue.extend'
        ? { status: 400, body: { message: `invalid storage id; '${body.ids?.[0]}' does not exist` } }
        : undefined
    const consumer = consume(async (_item, given) => {
      context = given
      await new Promise<void>((resolve) => given.signal.addEventListener('abort', () => resolve()))
    })
    await vi.advanceTimersByTimeAsync(6_000)
    await consumer.stop()
    expect(context?.signal.aborted).toBe(true)
    expect(server.completed).toEqual([])
    expect(problems).toMatchObject([{ during: 'extend' }])
  })

  it('lets a handler go on whose lease cannot be renewed for a moment for another reason', async () => {
    server.add('a')
    let isRotating = true
    server.interfere = ({ path }) =>
      path === '/v1/queue.extend' && isRotating
        ? { status: 401, body: { message: 'unknown token; it is not known here' } }
        : undefined
    const gate = Promise.withResolvers<void>()
    let context: ItemContext | undefined
    const consumer = consume((_item, given) => {
      context = given
      return gate.promise
    })
    await vi.advanceTimersByTimeAsync(4_000)
    expect(problems.length).toBeGreaterThan(0)
    isRotating = false
    await vi.advanceTimersByTimeAsync(30_000)
    expect(context?.signal.aborted).toBe(false)
    gate.resolve()
    await consumer.stop()
    expect(server.completed).toEqual(['a'])
  })

  it('completes the others of a batch when the server refuses one', async () => {
    server.add('a', 'b', 'c')
    let refuse = true
    server.interfere = ({ path, body }) =>
      path === '/v1/queue.complete' && body.ids?.includes('b'.repeat(27)) && refuse
        ? {
            status: 400,
            body: { message: `item(s) cannot be completed; '${'b'.repeat(27)}' is not marked as leased` },
          }
        : undefined
    const consumer = consume(() => {})
    await settle()
    refuse = false
    await consumer.stop()
    expect(server.completed).toEqual(['a', 'c'])
    expect(problems).toMatchObject([{ during: 'complete', error: { code: 'not_leased' } }])
  })
})

describe('a consumer whose server goes away', () => {
  it('goes on when it is back, and completes what it had in hand', async () => {
    server.add('a')
    let down = false
    server.interfere = () => {
      if (down) throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })
      return undefined
    }
    const gate = Promise.withResolvers<void>()
    const consumer = consume(() => gate.promise, {
      concurrency: 2,
    })
    await settle()
    down = true
    gate.resolve()
    await settle()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(server.completed).toEqual([])
    down = false
    await vi.advanceTimersByTimeAsync(6_000)
    expect(server.completed).toEqual(['a'])
    await consumer.stop()
    expect(problems.length).toBeGreaterThan(1)
    expect(problems.every(({ error }) => String(error).includes('http://stub/v1/'))).toBe(true)
  })

  it('waits longer after each refusal to lease, while the server stops or is overloaded', async () => {
    server.interfere = ({ path }) =>
      path === '/v1/queue.lease' ? { status: 453, body: { message: 'service is shutting down' } } : undefined
    const consumer = consume(() => {})
    await vi.advanceTimersByTimeAsync(20_000)
    const polls = server.callsTo('/v1/queue.lease').length
    expect(polls).toBeGreaterThan(3)
    expect(polls).toBeLessThan(25)
    await consumer.stop()
  })

  it('ends with the error when waiting cannot cure it', async () => {
    server.interfere = () => ({
      status: 400,
      body: { message: "queue does not exist; no such queue named 'q'" },
    })
    await expect(consume(() => {}).done).rejects.toMatchObject({ code: 'queue_unknown', status: 400 })
  })
})

describe('a consumer that is stopped', () => {
  it('ends its poll at once when nothing runs', async () => {
    const consumer = consume(() => {})
    await settle()
    await consumer.stop()
    expect(problems).toEqual([])
  })

  it('waits for running handlers and gives back what it had not begun', async () => {
    server.add('a', 'b', 'c')
    const gate = Promise.withResolvers<void>()
    const handler = () => gate.promise
    const consumer = consume(handler, { concurrency: 1, prefetch: 2 })
    await settle()
    const stopped = consumer.stop()
    await settle()
    expect(server.retried.map(({ id }) => id[0])).toEqual(['b', 'c'])
    expect(server.completed).toEqual([])
    gate.resolve()
    await stopped
    expect(server.completed).toEqual(['a'])
  })

  it('runs, rather than gives back, an item on its last attempt: returning it would kill it', async () => {
    server.maxAttempts = 1
    server.add('a', 'b')
    const consumer = consume(() => {}, { concurrency: 1, prefetch: 1 })
    await settle()
    await consumer.stop()
    expect(server.completed).toEqual(['a', 'b'])
    expect(server.retried).toEqual([])
  })

  it('waits no longer than it was told to, and then aborts the handlers that still run', async () => {
    server.add('a')
    let signal: AbortSignal | undefined
    const consumer = consume(
      (_item, context) => {
        signal = context.signal
        return new Promise(() => {})
      },
      { stopTimeoutMs: 2_000 },
    )
    await settle()
    const stopped = consumer.stop()
    await vi.advanceTimersByTimeAsync(2_000)
    await stopped
    expect(signal?.aborted).toBe(true)
    expect(server.completed).toEqual([])
  })

  it('reports an error handler that throws itself', async () => {
    server.add('a')
    const consumer = consume(() => Promise.reject(new Error('no')), {
      onError: () => {
        throw new Error('broken reporter')
      },
    })
    await expect(consumer.done).rejects.toThrow('broken reporter')
  })
})
