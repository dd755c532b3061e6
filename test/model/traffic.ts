/** Random traffic of one writer on some queues: every transition that changes a count, in no particular order. */
import fc from 'fast-check'
import { later } from '../../src/core/clock.ts'
import { BartlebyError } from '../../src/core/errors.ts'
import type { Office } from '../../src/office.ts'

export type Move =
  | { readonly move: 'produce'; readonly delaysMs: readonly number[] }
  | { readonly move: 'lease'; readonly batchSize: number }
  | { readonly move: 'complete'; readonly count: number }
  | { readonly move: 'delete'; readonly count: number }
  | { readonly move: 'retry'; readonly count: number; readonly inMs: number | null; readonly dead: boolean }
  | { readonly move: 'extend'; readonly count: number; readonly byMs: number }
  | { readonly move: 'import'; readonly count: number; readonly leasedForMs: number | null }
  | { readonly move: 'clear'; readonly scheduled: boolean; readonly destructive: boolean }
  | { readonly move: 'advance'; readonly ms: number }

type Settlement = Extract<Move, { readonly move: 'complete' | 'delete' | 'retry' | 'extend' }>

export interface Turn {
  readonly queue: number
  readonly move: Move
}

const count = fc.integer({ min: 1, max: 4 })

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      move: fc.constant('produce' as const),
      delaysMs: fc.array(fc.constantFrom(0, 0, 0, 300, 2_000), { minLength: 1, maxLength: 8 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ move: fc.constant('lease' as const), batchSize: fc.integer({ min: 1, max: 8 }) }),
  },
  { weight: 2, arbitrary: fc.record({ move: fc.constant('complete' as const), count }) },
  { weight: 1, arbitrary: fc.record({ move: fc.constant('delete' as const), count }) },
  {
    weight: 4,
    arbitrary: fc.record({
      move: fc.constant('retry' as const),
      count,
      inMs: fc.constantFrom(null, null, 500),
      dead: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ move: fc.constant('extend' as const), count, byMs: fc.constantFrom(100, 900) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      move: fc.constant('import' as const),
      count,
      leasedForMs: fc.constantFrom(null, 200),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      move: fc.constant('clear' as const),
      scheduled: fc.boolean(),
      destructive: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ move: fc.constant('advance' as const), ms: fc.constantFrom(10, 400, 1_100) }),
  },
)

export const turns = fc.array(fc.record({ queue: fc.nat(), move }), {
  minLength: 10,
  maxLength: 40,
  size: 'max',
})

/** Leases that are known to the writers, by queue: any of them may act on any. */
export type Held = Map<string, { readonly partition: number; readonly id: string }[]>

/**
 * Makes all turns, one after the other. Refusals are part of the traffic: leases end and others settle them. Whenever
 * this writer settles leases, the `rival` extends them at the same moment.
 */
export async function write(
  office: Office,
  rival: Office,
  queueNames: readonly string[],
  writer: string,
  all: readonly Turn[],
  held: Held,
): Promise<void> {
  for (const { queue, move } of all) {
    const queueName = queueNames[queue % queueNames.length] ?? ''
    await unlessRefused(make(office, rival, queueName, writer, move, held))
  }
}

async function unlessRefused(call: Promise<unknown>): Promise<void> {
  try {
    await call
  } catch (error) {
    // A refusal has no cause; a failure that wears an error code does.
    if (!(error instanceof BartlebyError) || error.cause !== undefined) throw error
  }
}

async function make(
  office: Office,
  rival: Office,
  queueName: string,
  clientId: string,
  move: Move,
  held: Held,
): Promise<void> {
  const { queues, clock } = office
  const inMs = (ms: number) => later(clock.now(), BigInt(ms) * 1_000n)
  switch (move.move) {
    case 'advance':
      return office.advanceClock(BigInt(move.ms) * 1_000n)
    case 'produce':
      await queues.produce({
        queueName,
        items: move.delaysMs.map((ms) => ({ payload: 'x', ...(ms === 0 ? {} : { enqueueAt: inMs(ms) }) })),
      })
      return
    case 'lease': {
      const { partitions } = await queues.stats(queueName)
      if (partitions.every(({ total, totalLeased }) => total === totalLeased)) return
      // Another writer may be quicker: then this one gives up instead of waiting.
      const batch = await queues
        .lease({ queueName, clientId, batchSize: move.batchSize }, AbortSignal.timeout(20))
        .catch(() => null)
      const known = held.get(queueName) ?? []
      held.set(queueName, known)
      for (const { id } of batch?.items ?? []) known.push({ partition: batch?.partition ?? 0, id })
      return
    }
    case 'import': {
      const leaseDeadline = move.leasedForMs === null ? null : inMs(move.leasedForMs)
      const item = { isLeased: leaseDeadline !== null, leaseDeadline, payload: Buffer.from('y') }
      await queues.importItems({ queueName, items: Array.from({ length: move.count }, () => item) })
      return
    }
    case 'clear':
      return queues.clear({
        queueName,
        queue: !move.scheduled,
        scheduled: move.scheduled,
        destructive: move.destructive,
      })
    default:
      return settle(office, rival, queueName, move, held)
  }
}

async function settle(
  office: Office,
  rival: Office,
  queueName: string,
  move: Settlement,
  held: Held,
): Promise<void> {
  const latest = (held.get(queueName) ?? []).slice(-move.count)
  const partition = latest[0]?.partition
  if (partition === undefined) return
  const ids = latest.filter((lease) => lease.partition === partition).map(({ id }) => id)
  if (move.move !== 'extend') {
    held.set(
      queueName,
      (held.get(queueName) ?? []).filter((lease) => !latest.includes(lease)),
    )
  }
  const rivalry = rival.queues.extend({ queueName, partition, ids, leaseTimeout: '700ms' })
  await Promise.all([
    unlessRefused(rivalry),
    unlessRefused(settled(office, { queueName, partition, ids }, move)),
  ])
}

async function settled(
  { queues, clock }: Office,
  request: { readonly queueName: string; readonly partition: number; readonly ids: readonly string[] },
  move: Settlement,
): Promise<void> {
  if (move.move === 'extend') await queues.extend({ ...request, leaseTimeout: `${move.byMs}ms` })
  else if (move.move === 'complete') await queues.complete(request)
  else if (move.move === 'delete') await queues.deleteItems(request)
  else {
    const { queueName, partition, ids } = request
    const retryAt = move.inMs === null ? {} : { retryAt: later(clock.now(), BigInt(move.inMs) * 1_000n) }
    await queues.retry({
      queueName,
      partition,
      items: ids.map((id) => ({ id, dead: move.dead, ...retryAt })),
    })
  }
}
