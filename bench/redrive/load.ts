/** Letters that all wait to be sent back to one queue. */
import { Office } from '../../src/index.ts'
import { loadLetters } from '../letters/load.ts'
import { pendingMix } from '../letters/shape.ts'
import type { LoadFigure, TaskOf } from './task.ts'

/** Where the letters came from, and go back to. */
export const QUEUE = 'orders'

const DAY_MS = 86_400_000

/** Without keys they lie in the dead queue of their queue; with keys a service has reported them. */
export async function load({ store, letters, keys }: TaskOf<'load'>): Promise<LoadFigure> {
  const startMs = performance.now()
  const isKeyed = keys !== null
  const source = isKeyed ? 'http' : 'queues'
  await loadLetters(
    store,
    letters,
    BigInt(Date.now() - DAY_MS) * 1000n,
    pendingMix({ source, engine: source, queue: QUEUE }, keys ?? 1),
  )
  if (isKeyed) await createQueue(store)
  return { seconds: (performance.now() - startMs) / 1000 }
}

/** For letters of plain queues the load has made it. */
async function createQueue(store: string): Promise<void> {
  const office = await Office.open({ store })
  try {
    await office.queues.create({
      queueName: QUEUE,
      leaseTimeout: '5m',
      expireTimeout: '24h',
      requestedPartitions: 1,
    })
  } finally {
    await office.close()
  }
}
