/** A store at work: verify looks at one moment of it, so it finds nothing wrong while writers run, nor afterwards. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { instant } from '../../src/core/clock.ts'
import { TestClock } from '../../src/core/test-clock.ts'
import { Office } from '../../src/office.ts'
import type { Database } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import { type VerifyProgress, verifyStore } from '../../src/verify/verify.ts'
import { turns, write } from '../model/traffic.ts'
import { unlessRefused } from '../world/model.ts'
import { type FreshStore, stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

const WRITERS = 3

describe.each(stores)('a store at work on $name', (store) => {
  let place: FreshStore
  let office: Office
  let db: Database

  beforeAll(async () => {
    place = await store.fresh()
    const clock = new TestClock()
    clock.freeze(instant(1_800_000_000_000_000n))
    office = await Office.open({ store: place.url, clock })
    db = openDatabase(place.url, { poolSize: 2 })
    const settings = { leaseTimeout: '1s', expireTimeout: '3s', maxAttempts: 2 }
    await office.queues.create({ ...settings, queueName: 'dead', requestedPartitions: 2 })
    await office.queues.create({
      ...settings,
      queueName: 'orders',
      requestedPartitions: 2,
      deadQueue: 'dead',
    })
  })

  afterAll(async () => {
    await office?.close()
    await db?.close()
    await place?.dispose()
  })

  const faults = () => violationsIn(db)

  it('keeps its promises at every moment', async () => {
    const held = new Map()
    const [traffic = []] = fc.sample(fc.array(turns, { minLength: 24, maxLength: 24 }), 1)
    let writing = true
    const writers = Array.from({ length: WRITERS }, async (_, i) => {
      for (const all of traffic.filter((_, n) => n % WRITERS === i)) {
        await write(office, office, ['orders', 'orders', 'dead'], `writer-${i}`, all, held)
        await actOnLetters(office, i)
        await redriveSome(office, i)
      }
    })
    const written = Promise.all(writers).finally(() => {
      writing = false
    })
    written.catch(() => {})
    let looks = 0
    while (writing) {
      expect(await faults()).toEqual([])
      looks++
      await new Promise((resolve) => setImmediate(resolve))
    }
    await written
    expect(looks).toBeGreaterThan(3)
    await office.queues.settle()
    await office.redrives.settle()
    expect(await faults()).toEqual([])
    const { items } = await office.letters.list({}, { limit: 1 })
    expect(items).toHaveLength(1)
  })

  it('tells how far it has come, and comes to the end', async () => {
    const seen: VerifyProgress[] = []
    await verifyStore(db, { onProgress: (progress) => seen.push(progress) })
    const last = seen.at(-1)
    expect(last?.done).toBe(last?.expected)
    expect(last?.expected).toBeGreaterThan(0)
    for (const { done, expected } of seen) expect(done).toBeLessThanOrEqual(expected)
    const steps = seen.map(({ done }) => done)
    expect(steps).toEqual([...steps].sort((a, b) => a - b))
  })
})

/** Sends some letters back, discards and restores others. Refusals are part of it: writers meet each other. */
async function actOnLetters({ letters }: Office, writer: number): Promise<void> {
  const actor = `writer-${writer}`
  const pending = await letters.list({ status: 'Pending' }, { limit: 6 })
  for (const [i, key] of pending.items.entries()) {
    const act =
      (i + writer) % 3 === 0
        ? letters.change(key, { status: 'Resolved', notes: 'not needed', actor })
        : letters.retry(key, { edit: null, notes: null, actor })
    await unlessRefused(act)
  }
  const resolved = await letters.list({ status: 'Resolved' }, { limit: 3 })
  for (const key of resolved.items) {
    await unlessRefused(letters.change(key, { status: 'Pending', notes: null, actor }))
  }
}

/** Sends all that are pending back, and goes on with other things meanwhile. */
async function redriveSome({ redrives }: Office, writer: number): Promise<void> {
  const { id } = await redrives.plan({
    selection: { by: 'filter', filter: {} },
    ...{ action: 'retry', queue: null, recipe: null, reason: null, actor: `writer-${writer}` },
    terms: { rate: null, canary: null, stopRule: null, order: 'key' },
  })
  await unlessRefused(redrives.start(id, `writer-${writer}`))
}
