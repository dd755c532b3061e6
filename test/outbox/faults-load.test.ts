/** Several dispatchers at once on one PostgreSQL, under load: each message once, lines in order, no quarrels over locks. */
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { SystemClock } from '../../src/core/system-clock.ts'
import { seededRandom } from '../world/random.ts'
import { freshPostgres } from '../world/stores.ts'
import { FaultBench } from './faults-bench.ts'

const DISPATCHERS = 4
const MESSAGES = 4_000

it('four dispatchers deliver what keeps coming once each, and wait for no lock in a circle', async () => {
  const bench = await FaultBench.open({ name: 'postgres', fresh: freshPostgres })
  const random = seededRandom()
  const seed = `BARTLEBY_TEST_SEED=${random.seed}`
  const delivered = new Map<string, number>()
  const orders = new Map<string, number[]>()
  try {
    for (let i = 0; i < DISPATCHERS; i++)
      await bench
        .dispatcher(
          async ({ id, retryCount, orderingKey }) => {
            if (random.chance(0.3)) await turn()
            // Every twentieth fails the first time, and holds back its line until it is tried again.
            if (Number(id) % 20 === 0 && retryCount === 0) throw new Error('not now')
            delivered.set(id, (delivered.get(id) ?? 0) + 1)
            if (orderingKey !== null)
              orders.set(orderingKey, [...(orders.get(orderingKey) ?? []), Number(id)])
          },
          {
            clock: new SystemClock(),
            batchSize: random.whole(5, 60),
            concurrency: random.whole(1, 16),
            claimSeconds: 3,
            baseRetryDelaySeconds: 0.2,
            pollIntervalSeconds: 0.1,
          },
        )
        .start()
    for (let written = 0; written < MESSAGES; written += 200) {
      await bench.fill(200, (n) => `CASE WHEN ${n} % 2 = 0 THEN 'line-' || (${n} % 38) END`)
      await pause(random.whole(20, 150))
    }
    await bench.until('processed_at IS NOT NULL AND claimed_by IS NULL', MESSAGES)
    expect(delivered.size).toBe(MESSAGES)
    expect(
      [...delivered.values()].every((times) => times === 1),
      seed,
    ).toBe(true)
    for (const ids of orders.values()) expect(ids, seed).toEqual(ids.toSorted((a, b) => a - b))
    expect(bench.errors, seed).toEqual([])
    expect(await bench.count('retry_count = 1')).toBe(MESSAGES / 20)
    const [{ deadlocks } = {}] = await bench.outbox.query(
      'SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()',
    )
    expect(deadlocks, seed).toBe(0)
  } finally {
    await bench.close()
  }
})
