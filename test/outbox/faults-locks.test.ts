/** Rows that somebody else holds locked: what need not be written now waits for nobody, so that nobody waits in a circle. */
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { freshPostgres } from '../world/stores.ts'
import { FaultBench, Gate, SECOND, textOf } from './faults-bench.ts'

let bench: FaultBench
let holder: pg.Client
beforeEach(async () => {
  bench = await FaultBench.open({ name: 'postgres', fresh: freshPostgres })
  holder = new pg.Client({ connectionString: bench.outbox.url })
  await holder.connect()
})
afterEach(async () => {
  await holder.end()
  await bench.close()
})

/** A transaction of the application has this row, until it is rolled back. */
async function hold(id: string): Promise<void> {
  await holder.query('BEGIN')
  await holder.query('SELECT 1 FROM outbox_messages WHERE id = $1 FOR UPDATE', [id])
}

it('a message that waits in its line and is held by another transaction keeps no other line waiting', async () => {
  await bench.outbox.insert({ payload: 'a1', line: 'a' })
  const held = await bench.outbox.insert({ payload: 'a2', line: 'a' })
  // Freed without the one before it, it would be claimed and parked again without end, and `drain` never over.
  await bench.outbox.insert({ payload: 'a3', line: 'a' })
  await bench.outbox.insert({ payload: 'b1', line: 'b' })
  await bench.outbox.insert({ payload: 'b2', line: 'b' })
  const delivered: string[] = []
  const each = bench.dispatcher(
    async (message) => {
      const text = textOf(message)
      if (text.endsWith('1') && message.retryCount === 0) throw new Error('not now')
      delivered.push(text)
    },
    { baseRetryDelaySeconds: 10 },
  )
  await each.drain()
  // Both second messages wait for the first ones.
  expect(delivered).toEqual([])
  await hold(held)
  bench.clock.advance(10n * SECOND)
  await each.drain()
  expect(delivered.toSorted()).toEqual(['a1', 'b1', 'b2'])
  await holder.query('ROLLBACK')
  await each.start()
  await expect
    .poll(() => {
      // The lines are looked at now and then for what was left behind.
      bench.clock.advance(60n * SECOND)
      // On a busy machine the clock outruns a claim that is being settled, and its message is delivered again.
      return [...new Set(delivered)].toSorted()
    })
    .toEqual(['a1', 'a2', 'a3', 'b1', 'b2'])
})

it('a claim on a message that another transaction holds is renewed later, those on others at once', async () => {
  const held = await bench.outbox.insert({ payload: 'held' })
  const free = await bench.outbox.insert({ payload: 'free' })
  const gate = new Gate()
  await bench.dispatcher(gate.deliver, { claimSeconds: 30 }).start()
  await gate.untilBegun(2)
  const until = async (id: string) => (await bench.outbox.row(id)).claimed_until
  const [before, beforeFree] = [await until(held), await until(free)]
  await hold(held)
  bench.clock.advance(15n * SECOND)
  await expect.poll(() => until(free)).not.toEqual(beforeFree)
  await holder.query('ROLLBACK')
  await expect
    .poll(() => {
      bench.clock.advance(SECOND / 2n)
      return until(held)
    })
    .not.toEqual(before)
  gate.open()
  await bench.until('processed_at IS NOT NULL AND claimed_by IS NULL', 2)
  expect(gate.begun.toSorted()).toEqual(['free', 'held'])
})

it('a delivery ends before the claim on its message does, when another transaction keeps that from being renewed', async () => {
  const id = await bench.outbox.insert()
  const ends: string[] = []
  const hangs = (_message: unknown, signal: AbortSignal) =>
    new Promise<void>(() => signal.addEventListener('abort', () => ends.push(String(signal.reason))))
  const each = bench.dispatcher(hangs, { claimSeconds: 30, deliveryTimeoutSeconds: 600 })
  await each.start()
  await bench.until('claimed_by IS NOT NULL', 1)
  await hold(id)
  bench.clock.advance(29n * SECOND)
  await expect
    .poll(() => {
      bench.clock.advance(SECOND / 20n)
      return ends
    })
    .toEqual([expect.stringMatching('the claim could not be renewed')])
  await holder.query('ROLLBACK')
})
