/**
 * Messages that end the process that delivers them, and those that were in its hands with them: the first are given up,
 * the others are all delivered, however often that takes.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../world/limits.ts'
import { OutboxStore } from '../world/outbox.ts'
import { seededRandom } from '../world/random.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { Fleet } from './crash-fleet.ts'
import { DEADLY, Recorder } from './crash-recorder.ts'
import { FaultBench, Gate, SECOND } from './faults-bench.ts'

const kinds = stores.map((kind) => reused(kind))

describe.each(kinds)('messages on $name that were claimed in vain', (kind) => {
  let bench: FaultBench
  beforeEach(async () => {
    bench = await FaultBench.open(kind)
  })
  afterEach(() => bench.close())

  /** As two dispatchers left it that have ended. */
  const leave = (ids: readonly string[]) =>
    bench.outbox.query(
      `UPDATE outbox_messages SET claim_count = 2, claimed_by = 'gone', claimed_until = ${kind.name === 'postgres' ? `'epoch'` : '1'}
       WHERE id IN (${ids.join(', ')})`,
    )

  it('are delivered alone', async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push(await bench.outbox.insert({ payload: String(i) }))
    await leave(ids)
    let at = 0
    let most = 0
    await bench
      .dispatcher(async () => {
        most = Math.max(most, ++at)
        expect(await bench.count(`claimed_by <> 'gone'`)).toBe(1)
        at -= 1
      })
      .drain()
    expect(most).toBe(1)
    expect(await bench.count('processed_at IS NOT NULL AND claim_count = 0')).toBe(5)
  })

  it('are delivered one after the other, and none waits for a poll', async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i++) ids.push(await bench.outbox.insert({ payload: String(i) }))
    await leave(ids)
    const gate = new Gate()
    gate.open()
    // Its clock stands still: no poll comes.
    await bench.dispatcher(gate.deliver).start()
    await bench.until('processed_at IS NOT NULL', 5)
    expect(gate.begun).toHaveLength(5)
  })

  it('are delivered behind a message of their line that was not', async () => {
    await bench.outbox.insert({ payload: '1', line: 'a' })
    await leave([await bench.outbox.insert({ payload: '2', line: 'a' })])
    await bench.outbox.insert({ payload: '3', line: 'a' })
    const gate = new Gate()
    gate.open()
    await bench.dispatcher(gate.deliver).drain()
    expect(gate.begun).toEqual(['1', '2', '3'])
    expect(await bench.count('processed_at IS NOT NULL')).toBe(3)
  })

  it('are delivered by a dispatcher that is never idle', async () => {
    const gate = new Gate()
    gate.open()
    let flows = true
    let written = 0
    const each = bench.dispatcher(
      async (message) => {
        await gate.deliver(message)
        // Each message brings the next one: there is always something fresh.
        if (!flows || message.eventType !== 'flow') return
        await bench.outbox.insert({ payload: `flow ${++written}`, type: 'flow' })
        each.wake()
      },
      { batchSize: 1 },
    )
    await bench.outbox.insert({ payload: 'flow 0', type: 'flow' })
    await each.start()
    await expect.poll(() => written).toBeGreaterThan(3)
    await leave([await bench.outbox.insert({ payload: 'suspect' })])
    bench.clock.advance(3n * SECOND)
    await expect.poll(() => gate.begun).toContain('suspect')
    flows = false
    await bench.until('processed_at IS NULL', 0)
  })
})

// Side by side: most of the time somebody waits for a claim to lapse, or for a process to start.
describe.concurrent.each(stores)('a message on $name that ends its process', (kind) => {
  it('is given up as poison, and the others of its batches are delivered', async ({ expect }) => {
    const outbox = await OutboxStore.open(kind)
    const recorder = await Recorder.open(seededRandom())
    const fleet = new Fleet({
      port: recorder.port,
      options: { url: outbox.url, claimSeconds: 1, pollIntervalSeconds: 0.1, batchSize: 10, maxRetries: 1 },
    })
    try {
      for (let i = 0; i < 8; i++)
        await outbox.insert({ payload: `before ${i}`, ...(i < 4 ? { line: 'a' } : {}) })
      const deadly = await outbox.insert({ payload: DEADLY })
      for (let i = 0; i < 8; i++)
        await outbox.insert({ payload: `behind ${i}`, ...(i < 4 ? { line: 'b' } : {}) })
      const left = async () =>
        Number(
          (
            await outbox.query(
              'SELECT count(*) AS n FROM outbox_messages WHERE processed_at IS NULL AND dead_at IS NULL',
            )
          )[0]?.n,
        )
      // As a supervisor would: whenever it has ended, it is started again.
      const endsAt = performance.now() + PATIENCE_MS
      while ((await left()) > 0 && performance.now() < endsAt) {
        if (fleet.size === 0) await fleet.add()
        await expect.poll(async () => fleet.size === 0 || (await left()) === 0).toBe(true)
      }
      await fleet.stop()
      expect(await outbox.row(deadly)).toMatchObject({
        processed_at: null,
        claimed_by: null,
        error: expect.stringMatching(/^PoisonMessage: it was claimed 3 times/),
      })
      expect(fleet.deaths).toHaveLength(3)
      const dead = await outbox.query('SELECT id FROM outbox_messages WHERE dead_at IS NOT NULL')
      expect(dead.map(({ id }) => String(id))).toEqual([deadly])
      expect(recorder.received).toBe(16)
      expect(recorder.violations).toEqual([])
    } finally {
      await fleet.discard()
      await recorder.close()
      await outbox.close()
    }
  })
})
