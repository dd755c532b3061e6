/** Stopping: what was begun is waited for, what was not is given back, and whoever comes next can have it at once. */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { FaultBench, Gate } from './faults-bench.ts'

/** As if nobody had ever had them. */
const UNTOUCHED = 'processed_at IS NULL AND claimed_by IS NULL AND claimed_until IS NULL AND claim_count = 0'

const kinds = stores.map((kind) => reused(kind))

describe.each(kinds)('a dispatcher on $name that is stopped', (kind) => {
  let bench: FaultBench
  beforeEach(async () => {
    bench = await FaultBench.open(kind)
  })
  afterEach(() => bench.close())

  it('waits for what it has begun and gives back the rest', async () => {
    for (let i = 0; i < 12; i++)
      await bench.outbox.insert({ payload: String(i), ...(i % 2 === 0 ? { line: 'a' } : {}) })
    const gate = new Gate()
    const each = bench.dispatcher(gate.deliver, { concurrency: 3, batchSize: 8 })
    await each.start()
    await gate.untilBegun(3)
    // A batch, and what the next one found besides the line.
    await bench.until('claimed_by IS NOT NULL', 10)
    let stopped = false
    const stop = each.stop().then(() => {
      stopped = true
    })
    await bench.until(UNTOUCHED, 9)
    expect(stopped).toBe(false)
    gate.open()
    await stop
    expect(gate.begun).toHaveLength(3)
    expect(await bench.count('processed_at IS NOT NULL')).toBe(3)
    expect(await bench.count(UNTOUCHED)).toBe(9)
    // Nobody has to wait for a claim to lapse.
    const next = new Gate()
    next.open()
    await bench.dispatcher(next.deliver).drain()
    expect(await bench.count('processed_at IS NOT NULL')).toBe(12)
    expect(new Set([...gate.begun, ...next.begun]).size).toBe(12)
  })

  it('while it starts, leaves nothing behind that holds its process', async () => {
    const begun = vi.spyOn(globalThis, 'setInterval')
    const ended = vi.spyOn(globalThis, 'clearInterval')
    try {
      const each = bench.dispatcher(async () => {})
      const started = each.start().catch(() => {})
      await each.stop()
      await started
      const letGo = new Set(ended.mock.calls.map(([timer]) => timer))
      expect(begun.mock.results.filter(({ value }) => !letGo.has(value))).toHaveLength(0)
    } finally {
      begun.mockRestore()
      ended.mockRestore()
    }
  })

  it('in the middle of draining, ends that as well', async () => {
    for (let i = 0; i < 10; i++) await bench.outbox.insert({ payload: String(i) })
    const gate = new Gate()
    const each = bench.dispatcher(gate.deliver, { concurrency: 2, batchSize: 4 })
    const drained = each.drain()
    await gate.untilBegun(2)
    const stop = each.stop()
    gate.open()
    await Promise.all([stop, drained])
    expect(await bench.count('processed_at IS NOT NULL')).toBe(2)
    expect(await bench.count(UNTOUCHED)).toBe(8)
  })

  it('cuts short what does not end, and gives it back as suspect as it was', async () => {
    await bench.outbox.insert({ payload: 'suspect' })
    await bench.outbox.query(
      `UPDATE outbox_messages SET claim_count = 3, claimed_by = 'gone', claimed_until = ${kind.name === 'postgres' ? `'epoch'` : '1'}`,
    )
    let reason: unknown
    const each = bench.dispatcher(async (_message, signal) => {
      signal.addEventListener('abort', () => {
        reason = signal.reason
      })
      await new Promise(() => {})
    })
    await each.start()
    await bench.until(`claimed_by <> 'gone'`, 1)
    await each.stop()
    expect(reason).toBeInstanceOf(Error)
    expect(await bench.count('claimed_by IS NULL AND claimed_until IS NULL AND claim_count = 3')).toBe(1)
    // Nobody has to wait for it.
    const next = new Gate()
    next.open()
    await bench.dispatcher(next.deliver).drain()
    expect(next.begun).toEqual(['suspect'])
    expect(await bench.count('processed_at IS NOT NULL')).toBe(1)
  })
})

const WAITING_CLAIMS = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%late AS MATERIALIZED%'`

describe('a dispatcher on postgres that is stopped while it claims', () => {
  it('gives back the rest of a line whose first message has just been delivered', async () => {
    const postgres = kinds.find(({ name }) => name === 'postgres')
    if (postgres === undefined) throw new Error('there is no PostgreSQL')
    const bench = await FaultBench.open(postgres)
    const blocker = new pg.Client({ connectionString: bench.outbox.url })
    await blocker.connect()
    try {
      for (const payload of ['1', '2', '3']) await bench.outbox.insert({ payload, line: 'a' })
      const gate = new Gate()
      const each = bench.dispatcher(gate.deliver)
      await each.start()
      await gate.untilBegun(1)
      await blocker.query('BEGIN; LOCK TABLE outbox_messages IN EXCLUSIVE MODE')
      each.wake()
      await expect.poll(async () => (await bench.outbox.query(WAITING_CLAIMS)).length).toBe(1)
      const stop = each.stop()
      gate.letThrough('1')
      await expect.poll(() => gate.begun).toEqual(['1'])
      await blocker.query('COMMIT')
      await stop
      expect(gate.begun).toEqual(['1'])
      expect(await bench.count('processed_at IS NOT NULL')).toBe(1)
      expect(await bench.count(UNTOUCHED)).toBe(2)
    } finally {
      await blocker.end()
      await bench.close()
    }
  })
})
