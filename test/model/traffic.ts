/** Random traffic of one writer on some queues: every transition that changes a count, in no particular order. */
import fc from 'fast-check'
import { type Instant, later } from '../../src/core/clock.ts'
import type { Office } from '../../src/office.ts'
import { atMost, kindOf, type Step, stepsOf, unlessRefused } from '../world/model.ts'

/** Leases that are known to the writers, by queue: any of them may act on any. */
export type Held = Map<string, { readonly partition: number; readonly id: string }[]>

/** Leases of one partition. */
interface Leases {
  readonly queueName: string
  readonly partition: number
  readonly ids: readonly string[]
}

/** One writer at one queue. Whenever it settles leases, the `rival` extends them at the same moment. */
class Writer {
  readonly office: Office
  readonly queueName: string
  readonly #rival: Office
  readonly #clientId: string
  readonly #held: Held

  constructor(office: Office, rival: Office, queueName: string, clientId: string, held: Held) {
    this.office = office
    this.queueName = queueName
    this.#rival = rival
    this.#clientId = clientId
    this.#held = held
  }

  inMs(ms: number): Instant {
    return later(this.office.clock.now(), BigInt(ms) * 1_000n)
  }

  async lease(batchSize: number): Promise<void> {
    const { queueName, office } = this
    const { partitions } = await office.queues.stats(queueName)
    if (partitions.every(({ total, totalLeased }) => total === totalLeased)) return
    // Another writer may be quicker: then this one gives up instead of waiting.
    const batch = await office.queues
      .lease({ queueName, clientId: this.#clientId, batchSize }, AbortSignal.timeout(20))
      .catch(() => null)
    const known = this.#held.get(queueName) ?? []
    this.#held.set(queueName, known)
    for (const { id } of batch?.items ?? []) known.push({ partition: batch?.partition ?? 0, id })
  }

  /** Acts on the latest leases; what is not only extended is forgotten. */
  async settle(count: number, act: (leases: Leases) => Promise<unknown>, forgets = true): Promise<void> {
    const { queueName } = this
    const known = this.#held.get(queueName) ?? []
    const latest = known.slice(-count)
    const partition = latest[0]?.partition
    if (partition === undefined) return
    const ids = latest.filter((lease) => lease.partition === partition).map(({ id }) => id)
    if (forgets)
      this.#held.set(
        queueName,
        known.filter((lease) => !latest.includes(lease)),
      )
    const leases = { queueName, partition, ids }
    const rivalry = this.#rival.queues.extend({ ...leases, leaseTimeout: '700ms' })
    await Promise.all([unlessRefused(rivalry), unlessRefused(act(leases))])
  }
}

const count = fc.integer({ min: 1, max: 4 })
const kind = kindOf<Writer>()

const move = stepsOf<Writer>({
  produce: kind(6, { delaysMs: atMost(8, fc.constantFrom(0, 0, 0, 300, 2_000)) }, (writer, { delaysMs }) =>
    writer.office.queues.produce({
      queueName: writer.queueName,
      items: delaysMs.map((ms) => ({ payload: 'x', ...(ms === 0 ? {} : { enqueueAt: writer.inMs(ms) }) })),
    }),
  ),
  lease: kind(6, { batchSize: fc.integer({ min: 1, max: 8 }) }, (writer, { batchSize }) =>
    writer.lease(batchSize),
  ),
  complete: kind(2, { count }, (writer, { count }) =>
    writer.settle(count, (leases) => writer.office.queues.complete(leases)),
  ),
  delete: kind(1, { count }, (writer, { count }) =>
    writer.settle(count, (leases) => writer.office.queues.deleteItems(leases)),
  ),
  retry: kind(
    4,
    { count, inMs: fc.constantFrom(null, null, 500), dead: fc.boolean() },
    (writer, { count, inMs, dead }) =>
      writer.settle(count, ({ ids, ...leases }) => {
        const item = inMs === null ? { dead } : { dead, retryAt: writer.inMs(inMs) }
        return writer.office.queues.retry({ ...leases, items: ids.map((id) => ({ id, ...item })) })
      }),
  ),
  extend: kind(3, { count, byMs: fc.constantFrom(100, 900) }, (writer, { count, byMs }) =>
    writer.settle(
      count,
      (leases) => writer.office.queues.extend({ ...leases, leaseTimeout: `${byMs}ms` }),
      false,
    ),
  ),
  import: kind(2, { count, leasedForMs: fc.constantFrom(null, 200) }, (writer, { count, leasedForMs }) => {
    const leaseDeadline = leasedForMs === null ? null : writer.inMs(leasedForMs)
    const item = { isLeased: leaseDeadline !== null, leaseDeadline, payload: Buffer.from('y') }
    const items = Array.from({ length: count }, () => item)
    return writer.office.queues.importItems({ queueName: writer.queueName, items })
  }),
  clear: kind(
    1,
    { scheduled: fc.boolean(), destructive: fc.boolean() },
    ({ office, queueName }, { scheduled, destructive }) =>
      office.queues.clear({ queueName, queue: !scheduled, scheduled, destructive }),
  ),
  advance: kind(2, { ms: fc.constantFrom(10, 400, 1_100) }, ({ office }, { ms }) =>
    office.advanceClock(BigInt(ms) * 1_000n),
  ),
})

export interface Turn {
  readonly queue: number
  readonly move: Step<Writer>
}

export const turns = fc.array(fc.record({ queue: fc.nat(), move }), {
  minLength: 10,
  maxLength: 40,
  size: 'max',
})

/** Makes all turns of a writer, one after the other. */
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
    await unlessRefused(move.perform(new Writer(office, rival, queueName, writer, held)))
  }
}
