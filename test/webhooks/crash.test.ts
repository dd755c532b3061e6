/**
 * Servers that are killed while they accept and deliver, at random, and replaced: what was accepted is there, every job is delivered
 * or dead in the end, none was under way twice at a time, no delay was cut short, and all counts are exact. In full size (20,000 messages,
 * 25 kills) in `npm run prove`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { openDatabase } from '../../src/store/open.ts'
import { isProof, PATIENCE_MS, sizeOf } from '../world/limits.ts'
import { seededRandom } from '../world/random.ts'
import { stores } from '../world/stores.ts'
import { bartleby } from '../world/terminal-double.ts'
import { auditJobs, jobStates } from './crash-audit.ts'
import { Fleet } from './crash-fleet.ts'
import { Producer } from './crash-producer.ts'
import { CONSUMERS, Recorder, SHAKY } from './crash-recorder.ts'

const SIZES = {
  postgres: { size: 3, messages: sizeOf(200, 20_000), kills: sizeOf(2, 25) },
  sqlite: { size: 2, messages: sizeOf(100, 3_000), kills: sizeOf(1, 8) },
}
const DELIVERY = {
  maxRetry: sizeOf(2, 5),
  backoffSeconds: [1],
  rationalDelaySeconds: 1,
  timeoutSeconds: 2,
  breaker: { failures: 0 },
}
const WEBHOOKS = { delivery: DELIVERY, scheduler: { intervalMs: 500, minDelayMinutes: 0 } }
/** On a busy machine everything takes many times as long as alone. */

// Side by side: most of the time everybody waits for what is to be tried again.
describe.concurrent.each(stores)('servers on one $name store that are killed while they deliver', (kind) => {
  const { size, messages, kills } = SIZES[kind.name]

  it(`bring ${messages} messages to ${CONSUMERS.length} consumers over ${kills} crashes`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const place = await kind.fresh()
    const recorder = await Recorder.start(random.seed)
    const fleet = await Fleet.start({ store: place.url, size, kills, webhooks: WEBHOOKS })
    const producer = new Producer(() => fleet.urls, random)
    const db = openDatabase(place.url, { poolSize: 2 })
    const startedMs = performance.now()
    const verified = () => bartleby(['verify', '--store', place.url])
    try {
      await producer.register(recorder.url)
      const ids = Array.from({ length: messages }, (_, i) => `m-${i}`)
      const rounds = kills + 1
      for (let round = 1; round <= rounds; round++) {
        const part = ids.filter((_, i) => i % rounds === round - 1)
        const enough = producer.accepted.length + random.whole(1, part.length - 1)
        const sent = producer.broadcast(part)
        if (round <= kills) {
          while (producer.accepted.length < enough && producer.violations.length === 0) await pause(1)
          await pause(random.whole(0, 30))
          await fleet.kill(random)
        }
        await sent
        await fleet.replaced()
      }
      const sentMs = performance.now()
      expect(producer.violations, seed).toEqual([])
      expect(producer.accepted.toSorted(), seed).toEqual(ids.toSorted())
      // No false alarm while everybody works.
      expect(await verified(), seed).toMatchObject({ code: 0 })
      const allSettled = async () => {
        const { delivered, dead, ...others } = await jobStates(db)
        expect(others).toEqual({ later: 0, ready: 0, inFlight: 0 })
        expect(delivered + dead).toBe(messages * CONSUMERS.length)
      }
      await vi.waitFor(allSettled, { timeout: PATIENCE_MS, interval: 200 })
      const quietMs = performance.now()

      const { maxRetry } = DELIVERY
      const { killedMs } = fleet
      const record = await recorder.record()
      const { problems, dead, lostCalls, lateCalls } = await auditJobs(db, {
        record,
        messages: ids,
        maxRetry,
        killedMs,
      })
      expect(problems, seed).toEqual([])
      expect(dead, seed).toBeGreaterThan(0)
      // None on a machine that keeps up.
      expect(lateCalls, seed).toBeLessThan(record.answered / 50)
      for (const answer of await producer.get('/dlq-status')) {
        const counted = { channelId: 'orders', consumerId: SHAKY, deadCount: dead }
        expect(answer.json(), seed).toEqual({ consumers: [expect.objectContaining(counted)] })
      }
      expect(await verified(), seed).toMatchObject({ code: 0 })
      expect(await fleet.stop(), seed).toEqual(Array(size).fill(0))
      expect(fleet.deaths, seed).toEqual([])
      if (isProof) {
        console.info({
          store: kind.name,
          messages,
          kills: killedMs.size,
          sentSeconds: (sentMs - startedMs) / 1_000,
          quietSeconds: (quietMs - startedMs) / 1_000,
          calls: record.answered,
          dead,
          receivedAgain: record.received - (messages * CONSUMERS.length - dead),
          lostCalls,
          lateCalls,
          lostAnswers: producer.lost,
          longestLagMs: record.longestLagMs,
        })
      }
    } finally {
      producer.close()
      await fleet.discard()
      await recorder.stop()
      await db.close()
      await place.dispose()
    }
  })
})
