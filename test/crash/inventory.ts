/** What a server says it holds: counts, lists and, at the very end, everything leased and completed. */
import { expect } from 'vitest'
import { leasedIn, ok, storedIn } from '../world/clerk.ts'
import { jsonCodec, type Wire } from '../world/wire.ts'
import type { Books, Found } from './books.ts'
import { DEAD_QUEUE, PARTITIONS, QUEUE } from './load.ts'

interface Counts {
  readonly total: number
  readonly leased: number
  readonly scheduled: number
}

const PLACES = [
  { queue: QUEUE, partitions: PARTITIONS },
  { queue: DEAD_QUEUE, partitions: 1 },
]

/** What `stats` says, per partition of both queues. */
async function counted(wire: Wire): Promise<Counts[]> {
  const all: Counts[] = []
  for (const { queue } of PLACES) {
    const stats = await ok(wire, '/v1/queue.stats', { queue_name: queue })
    // The reply of stats, as the contract has it; zeros are left out.
    const [logical] = stats.logicalQueues as { partitions: Record<string, number>[] }[]
    for (const { total = 0, total_leased = 0, scheduled = 0 } of logical?.partitions ?? []) {
      all.push({ total, leased: total_leased, scheduled })
    }
  }
  return all
}

/** What the lists show, counted as `stats` counts it. */
async function listed(wire: Wire): Promise<Counts[]> {
  const all: Counts[] = []
  for (const { queue, partitions } of PLACES) {
    for (let partition = 0; partition < partitions; partition++) {
      const place = { queue_name: queue, partition }
      const items = await storedIn(wire, '/v1/storage/items.list', place)
      const scheduled = await storedIn(wire, '/v1/storage/scheduled.list', place)
      const leased = items.filter((item) => item.isLeased).length
      all.push({ total: items.length, leased, scheduled: scheduled.length })
    }
  }
  return all
}

/** Waits for a moment between two sweeps and holds the counts against the lists. */
export async function expectExactCounts(wire: Wire, withinMs = 5_000): Promise<void> {
  for (const startedMs = performance.now(); ; ) {
    const before = await counted(wire)
    const shown = await listed(wire)
    const after = await counted(wire)
    const same = JSON.stringify(before) === JSON.stringify(shown)
    if (same && JSON.stringify(before) === JSON.stringify(after)) return
    if (performance.now() - startedMs > withinMs) expect(before).toEqual(shown)
  }
}

/** Waits until no lease runs and nothing is scheduled. */
export async function untilQuiet(wire: Wire): Promise<void> {
  await expect
    .poll(async () => (await counted(wire)).reduce((sum, each) => sum + each.leased + each.scheduled, 0), {
      interval: 50,
    })
    .toBe(0)
}

/** Everything that both queues hold, once nothing moves any more. */
export async function contents(wire: Wire): Promise<Found[]> {
  const found: Found[] = []
  for (const { queue, partitions } of PLACES) {
    for (let partition = 0; partition < partitions; partition++) {
      const stored = await storedIn(wire, '/v1/storage/items.list', { queue_name: queue, partition })
      const place = queue === QUEUE ? 'queue' : 'dead queue'
      found.push(...stored.map((item) => ({ place, ...item }) as const))
    }
  }
  return found
}

/** Leases and completes until the queue is empty: everything that is there can also be had. */
export async function drain(wire: Wire, books: Books): Promise<void> {
  for (;;) {
    const request = { queue_name: QUEUE, client_id: 'drain', batch_size: 1000, request_timeout: '50ms' }
    const answer = await wire.call(jsonCodec, '/v1/queue.lease', request)
    if (answer.status === 454) return
    expect(answer.status).toBe(200)
    const { partition, items } = leasedIn(answer.body)
    await ok(wire, '/v1/queue.complete', {
      queue_name: QUEUE,
      partition,
      request_timeout: '1m',
      ids: items.map(({ id }) => id),
    })
    for (const item of items) {
      books.delivered(item.payload, item)
      books.completed(item.payload, item, 'applied')
    }
  }
}
