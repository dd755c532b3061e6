/**
 * The queues of the invented shop that plain consumers work on: orders that a warehouse rejects or fails at, labels that nobody prints
 * in time, sign-ups. Their letters say how they died, not why: a plain consumer gives no error.
 */
import { later } from '../core/clock.ts'
import { BartlebyError } from '../core/errors.ts'
import { pause } from '../core/waiting.ts'
import type { Office } from '../office.ts'
import type { LeasedItem, QueueSettings } from '../queues/queue.ts'
import { ENGINE_ROLES } from './engine-roles.ts'
import { MARK } from './store.ts'
import type { World } from './world.ts'

/** Orders for this one fail until somebody sends them back; those for the other are rejected at once. */
export const SLOW_WAREHOUSE = 'HAM-2'
export const CLOSED_WAREHOUSE = 'LEJ-1'
export const WAREHOUSES = ['BER-1', 'BER-1', 'CGN-4'] as const

export const QUEUES: readonly QueueSettings[] = [
  { queueName: 'orders-dead', leaseTimeout: '1m', expireTimeout: '8760h' },
  { queueName: 'orders', deadQueue: 'orders-dead', leaseTimeout: '1m', expireTimeout: '24h', maxAttempts: 3 },
  { queueName: 'labels-dead', leaseTimeout: '1m', expireTimeout: '8760h' },
  { queueName: 'labels', deadQueue: 'labels-dead', leaseTimeout: '30s', expireTimeout: '1m', maxAttempts: 5 },
  { queueName: 'sign-ups', leaseTimeout: '1m', expireTimeout: '24h', maxAttempts: 5 },
  // Engines make their queues themselves, but not before they work, and the past comes first.
  ...ENGINE_ROLES.map(({ queue }) => ({ queueName: queue, leaseTimeout: '1m', expireTimeout: '8760h' })),
].map((queue) => ({ requestedPartitions: 1, reference: MARK, ...queue }))

/** Makes the queues that are missing. */
export async function makeQueues({ queues }: Office): Promise<void> {
  const known = new Set((await queues.list()).map(({ queueName }) => queueName))
  for (const queue of QUEUES) if (!known.has(queue.queueName)) await queues.create(queue)
}

export type Fate = 'complete' | 'retry' | 'reject'

/** What a consumer makes of an order. One that was sent back is packed by hand. */
export function fateOfOrder({ payload, caseId }: Pick<LeasedItem, 'payload' | 'caseId'>): Fate {
  const text = Buffer.from(payload).toString()
  if (text.includes(CLOSED_WAREHOUSE)) return 'reject'
  return text.includes(SLOW_WAREHOUSE) && caseId === undefined ? 'retry' : 'complete'
}

const AGAIN_US = 4_000_000n
const SETBACK_US = 1_000_000n

/** Works on a queue until `signal` aborts. Never rejects. */
async function consume(
  { queues, clock }: Office,
  queueName: string,
  fateOf: (item: LeasedItem) => Fate,
  { isAway, signal }: { readonly isAway: () => boolean; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    try {
      if (isAway()) {
        await pause(clock, SETBACK_US, signal)
        continue
      }
      const request = { queueName, clientId: `demo-${queueName}`, batchSize: 10, requestTimeout: '1m' }
      const { items, partition } = await queues.lease(request, signal)
      const fates = Map.groupBy(items, fateOf)
      const place = { queueName, partition }
      const done = (fates.get('complete') ?? []).map(({ id }) => id)
      if (done.length > 0) await queues.complete({ ...place, ids: done })
      const back = [
        ...(fates.get('reject') ?? []).map(({ id }) => ({ id, dead: true })),
        ...(fates.get('retry') ?? []).map(({ id }) => ({ id, retryAt: later(clock.now(), AGAIN_US) })),
      ]
      if (back.length > 0) await queues.retry({ ...place, items: back })
    } catch (error) {
      const isQuiet = error instanceof BartlebyError && error.code === 'lease_timed_out'
      // Items that were not settled come back when their lease ends.
      if (!isQuiet) await pause(clock, SETBACK_US, signal)
    }
  }
}

/** All plain consumers at work; resolves when `signal` has ended them. */
export async function consumePlainQueues(office: Office, world: World, signal: AbortSignal): Promise<void> {
  const always = { isAway: () => false, signal }
  await Promise.all([
    consume(office, 'orders', fateOfOrder, always),
    consume(office, 'sign-ups', () => 'complete', always),
    consume(office, 'labels', () => 'complete', { isAway: () => world.printerIsOut, signal }),
  ])
}
