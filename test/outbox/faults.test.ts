/** Receivers that misbehave: a clear error or a retry; never a crash, a lost message or a stuck slot. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TestClock } from '../../src/core/test-clock.ts'
import type { OutboxMessage } from '../../src/sources/outbox/table/message.ts'
import { type LocalTransport, RetryLater } from '../../src/sources/outbox/transports/transport.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { FaultBench, Gate, SECOND, textOf } from './faults-bench.ts'

const kinds = stores.map((kind) => reused(kind))

describe.each(kinds)('a receiver on $name', (kind) => {
  let bench: FaultBench
  beforeEach(async () => {
    bench = await FaultBench.open(kind)
  })
  afterEach(() => bench.close())

  it('that never answers is given up after the time-out, tried again later, and keeps no slot', async () => {
    const hangs = await bench.outbox.insert({ payload: 'hangs' })
    const next = await bench.outbox.insert({ payload: 'next' })
    let attempts = 0
    const each = bench.dispatcher(
      async (message) => {
        if (textOf(message) !== 'hangs') return
        attempts += 1
        // Deaf to the signal as well.
        if (attempts === 1) await new Promise(() => {})
      },
      { concurrency: 1, deliveryTimeoutSeconds: 5, baseRetryDelaySeconds: 10 },
    )
    await each.start()
    await expect.poll(() => attempts).toBe(1)
    bench.clock.advance(6n * SECOND)
    await bench.until('processed_at IS NOT NULL', 1)
    expect((await bench.outbox.row(next)).processed_at).not.toBeNull()
    expect(await bench.outbox.row(hangs)).toMatchObject({
      retry_count: 1,
      claimed_by: null,
      error: expect.stringMatching(/^DeliveryTimedOut: /),
    })
    bench.clock.advance(10n * SECOND)
    // Time goes on: the dispatcher may have been looking just before, and rests until its next look.
    const isProcessed = () => {
      bench.clock.advance(SECOND)
      return bench.count('processed_at IS NOT NULL')
    }
    await expect.poll(isProcessed, { interval: 200 }).toBe(2)
    expect(attempts).toBe(2)
  })

  it('may throw whatever it likes', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const treacherous = new Error('x')
    Object.defineProperty(treacherous, 'message', {
      get() {
        throw new Error('do not look at me')
      },
    })
    const thrown: unknown[] = [
      undefined,
      null,
      0,
      '',
      'words',
      Symbol('s'),
      { code: 7 },
      Object.create(null),
      () => {},
      proxy,
      treacherous,
      new Error(''),
      `${'\ud800'.repeat(10)}\0`,
    ]
    for (const index of thrown.keys()) await bench.outbox.insert({ payload: String(index) })
    await bench
      .dispatcher(async (message) => {
        throw thrown[Number(textOf(message))]
      })
      .drain()
    const rows = await bench.outbox.query('SELECT retry_count, error, claimed_by FROM outbox_messages')
    expect(rows).toHaveLength(thrown.length)
    for (const row of rows)
      expect(row).toMatchObject({ retry_count: 1, claimed_by: null, error: expect.stringMatching(/\S: \S/) })
  })

  it('may throw before it has begun, and long after it was told to end', async () => {
    await bench.outbox.insert({ payload: 'at once' })
    await bench.outbox.insert({ payload: 'late' })
    const late = Promise.withResolvers<never>()
    const each = bench.dispatcher(
      (message) => {
        if (textOf(message) === 'at once') throw new Error('not even a promise')
        return late.promise
      },
      { deliveryTimeoutSeconds: 5 },
    )
    await each.start()
    await bench.until('retry_count = 1', 1)
    bench.clock.advance(6n * SECOND)
    await bench.until('retry_count = 1', 2)
    late.reject(new Error('much too late'))
    // An unhandled rejection would fail the run.
    await pause(20)
    expect(bench.errors).toEqual([])
  })

  it.each([Number.NaN, -5, 0.5, 90_000.5, Number.POSITIVE_INFINITY])(
    'that asks to be left alone for %d ms is tried again in good time',
    async (retryAfterMs) => {
      const id = await bench.outbox.insert()
      let attempts = 0
      const each = bench.dispatcher(async () => {
        attempts += 1
        if (attempts === 1) throw new RetryLater('busy', retryAfterMs)
      })
      await each.drain()
      expect(await bench.outbox.row(id)).toMatchObject({ retry_count: 1, claimed_by: null })
      bench.clock.advance(86_400n * SECOND)
      await each.drain()
      expect(attempts).toBe(2)
    },
  )

  it('whose answer comes after the claim has lapsed and another has the message changes nothing', async () => {
    const id = await bench.outbox.insert({ payload: 'slow' })
    const paused = new Gate()
    const sleeper = bench.dispatcher(paused.deliver, { claimSeconds: 30, name: 'paused' })
    await sleeper.start()
    await paused.untilBegun(1)
    const later = new TestClock()
    later.freeze(bench.clock.now())
    later.advance(31n * SECOND)
    const gate = new Gate()
    const other = bench.dispatcher(gate.deliver, { clock: later, name: 'other' })
    await other.start()
    await gate.untilBegun(1)
    // The first one goes on, and its receiver has the message: that is no longer its to say.
    paused.open()
    await expect.poll(() => bench.said).toContain(`OUTBOX_WORKER_SKIP_PROCESSED id=${id}`)
    expect(await bench.outbox.row(id)).toMatchObject({ claimed_by: expect.stringMatching(/^other-/) })
    expect((await bench.outbox.row(id)).processed_at).toBeNull()
    gate.open()
    await bench.until('processed_at IS NOT NULL AND claimed_by IS NULL', 1)
  })

  it('that takes longer than a claim lasts keeps its message: the claim is renewed', async () => {
    const id = await bench.outbox.insert({ payload: 'long' })
    const gate = new Gate()
    await bench.dispatcher(gate.deliver, { claimSeconds: 30, deliveryTimeoutSeconds: 3_600 }).start()
    await gate.untilBegun(1)
    const got: OutboxMessage[] = []
    const other = bench.dispatcher(async (message) => void got.push(message))
    const until = async () => String((await bench.outbox.row(id)).claimed_until)
    for (let tens = 0; tens < 12; tens++) {
      const before = await until()
      bench.clock.advance(11n * SECOND)
      await expect.poll(until).not.toBe(before)
      await other.drain()
    }
    expect(got).toEqual([])
    gate.open()
    await bench.until('processed_at IS NOT NULL', 1)
    expect(gate.begun).toEqual(['long'])
  })
})

describe.each(kinds)('a transfer within $name', (kind) => {
  it('that fails because the store is away is no failure of the message', async () => {
    const bench = await FaultBench.open(kind)
    const db = openDatabase(bench.outbox.url, { poolSize: 1 })
    let transfers = 0
    const transport: LocalTransport = {
      name: 'local',
      async transfer(_messages, settle) {
        transfers += 1
        if (transfers <= 2) throw new StoreUnavailable('away')
        return db.transaction('test.transfer', settle)
      },
    }
    try {
      const id = await bench.outbox.insert({ line: 'a' })
      await bench.dispatcher(transport, { maxRetries: 0 }).start()
      await bench.until('processed_at IS NOT NULL', 1)
      expect(await bench.outbox.row(id)).toMatchObject({ retry_count: 0, dead_at: null, claimed_by: null })
    } finally {
      await bench.close()
      await db.close()
    }
  })
})
