/** extend: leases that are held get a later deadline. */
import { type Instant, later } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { instantSum, negated, sumOfInstants } from './counts.ts'
import type { Cycle, ExtendAsk, Job } from './cycle.ts'
import { problemWithSerials } from './diagnose.ts'
import { lockItems } from './sql/inspect.ts'
import { extendLeases, LEASE_GRACE_US } from './sql/lease.ts'

/** Applies one request, all of it or nothing, and answers it with the new deadline. */
export async function extend(cycle: Cycle, { ask, resolve, reject }: Job<ExtendAsk, Instant>): Promise<void> {
  const partition = cycle.partition(ask.partition)
  const { part } = partition
  const ascending = [...ask.serials].sort((a, b) => a - b)
  // Locked: two extensions at once would both take the same old deadline off the sum of deadlines.
  const found = new Map((await lockItems(cycle.tx, partition, ascending)).map((item) => [item.serial, item]))
  if (!ask.serials.every((serial) => found.get(serial)?.leased)) {
    const problem = await problemWithSerials(cycle.tx, partition, ask.serials, 'extend_not_leased')
    cycle.afterCommit(() => reject(problem ?? failure('store_write_failed')))
    return
  }
  const deadline = later(cycle.now, ask.leaseUs)
  await extendLeases(cycle.tx, partition, ascending, deadline)
  const before = sumOfInstants([...found.values()].flatMap(({ leaseDeadline }) => leaseDeadline ?? []))
  cycle.changes.add(part, { deadline: negated(before) })
  cycle.changes.add(part, { deadline: instantSum(deadline, ascending.length) })
  cycle.expectAt(later(deadline, LEASE_GRACE_US))
  cycle.afterCommit(() => resolve(deadline))
}
