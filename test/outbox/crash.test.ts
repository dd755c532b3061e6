/**
 * Dispatchers that are killed at work, at random, and replaced: every message arrives, with one key, never twice at once,
 * in the order of its line, and nothing is left behind. 10,000 messages in `npm run prove`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { sizeOf } from '../world/limits.ts'
import { OutboxStore } from '../world/outbox.ts'
import { seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'
import { Fleet } from './crash-fleet.ts'
import { Recorder } from './crash-recorder.ts'

const SIZES = {
  postgres: { processes: 4, messages: sizeOf(1_500, 10_000) },
  sqlite: { processes: 2, messages: sizeOf(800, 5_000) },
}
const KILLS = sizeOf(4, 60)
/** Every third message stands in one of these lines. */
const LINES = 40

/** As many rows as a producer would write in a busy minute. */
async function fill(outbox: OutboxStore, messages: number): Promise<void> {
  const columns = 'tenant_id, event_type, payload, ordering_key'
  const line = (n: string) => `CASE WHEN ${n} % 3 = 0 THEN 'line-' || (${n} % ${LINES}) END`
  if (outbox.dialect === 'postgres')
    await outbox.query(
      `INSERT INTO outbox_messages (${columns}) SELECT 't', 'created', '{}', ${line('n')} FROM generate_series(1, $1::int) AS n`,
      messages,
    )
  else
    await outbox.query(
      `WITH RECURSIVE each (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < $1)
       INSERT INTO outbox_messages (${columns}) SELECT 't', 'created', CAST('{}' AS BLOB), ${line('n')} FROM each`,
      messages,
    )
}

describe.each(stores)('dispatchers on $name that are killed at work', ({ name, ...kind }) => {
  const { processes, messages } = SIZES[name]

  it(`deliver ${messages} messages at least once each, and never one of them twice at a time`, async () => {
    const random = seededRandom()
    const outbox = await OutboxStore.open({ name, ...kind })
    const recorder = await Recorder.open(random)
    const fleet = new Fleet({
      port: recorder.port,
      options: {
        url: outbox.url,
        claimSeconds: 2,
        pollIntervalSeconds: 0.2,
        batchSize: 50,
        concurrency: 8,
      },
    })
    const starting: Promise<void>[] = []
    try {
      await fill(outbox, messages)
      for (let i = 0; i < processes; i++) starting.push(fleet.add())
      await Promise.race(starting)
      // Spread over the work: after so many messages, the next one dies.
      for (let kills = 0; kills < KILLS; ) {
        const enough = (messages * (kills + 1)) / (KILLS + 2)
        await pause(random.whole(5, 50))
        if (recorder.received >= enough && fleet.kill(random)) kills += 1
        while (fleet.size < processes) starting.push(fleet.add())
        expect(fleet.deaths, 'processes that nobody had killed').toEqual([])
      }
      await expect
        .poll(
          async () =>
            (await outbox.query('SELECT count(*) AS n FROM outbox_messages WHERE processed_at IS NULL'))[0]
              ?.n,
          { interval: 200 },
        )
        .toSatisfy((left) => Number(left) === 0)
      await Promise.all(starting)
      await fleet.stop()
      const seed = `BARTLEBY_TEST_SEED=${random.seed}`
      expect(fleet.deaths, seed).toEqual([])
      expect(recorder.violations, seed).toEqual([])
      const rows = await outbox.rows()
      expect(rows).toHaveLength(messages)
      for (const row of rows) {
        expect(row).toMatchObject({ claimed_by: null, claimed_until: null, dead_at: null, claim_count: 0 })
        const receipt = recorder.receipts.get(String(row.id))
        expect(receipt?.received, `${seed}: message ${row.id}`).toBeGreaterThan(0)
        expect([...(receipt?.keys ?? [])]).toEqual([row.idempotency_key])
      }
      expect(recorder.orders.size).toBe(LINES)
      for (const ids of recorder.orders.values())
        expect(ids, seed).toEqual(ids.toSorted((a, b) => Number(a) - Number(b)))
    } finally {
      await Promise.all(starting)
      await fleet.discard()
      await recorder.close()
      await outbox.close()
    }
  })
})
