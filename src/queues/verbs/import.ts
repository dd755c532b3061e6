/** items.import: items with a past go into one partition, all or none, except known source ids. */
import { type Instant, instant, later } from '../../core/clock.ts'
import { usFromNs } from '../../core/duration.ts'
import { checkKsuid } from '../../core/ksuid.ts'
import { heldItemIds } from '../../letters/in-dead-queue/read.ts'
import { instantSum, sumOfInstants } from '../counts.ts'
import type { Cycle } from '../cycles/cycle.ts'
import type { ImportItem, ImportOutcome } from '../queue.ts'
import { itemIdIn, type Partition } from '../records.ts'
import { type ItemToImport, importItems, sentItemIds } from '../sql/import.ts'
import { LEASE_GRACE_US, noteLease } from '../sql/lease.ts'

const ZERO = instant(0n)

/** Outcomes in the order of the items. */
export async function importInto(
  cycle: Cycle,
  partition: Partition,
  items: readonly ImportItem[],
): Promise<ImportOutcome[]> {
  const { tx, now, queue } = cycle
  const { part } = partition
  const defaultExpireAt = later(now, usFromNs(queue.expireTimeoutNs))
  const rows = items.map((item) => toRow(item, defaultExpireAt))
  // A letter of a dead queue holds the ids of its item until it is resolved, as an item would.
  const ksuids = rows.map(({ sourceId }) => sourceId).filter((id) => checkKsuid(id) === null)
  const held = new Set(
    partition.holdsLetters ? [...(await heldItemIds(tx, ksuids)), ...(await sentItemIds(tx, ksuids))] : [],
  )
  const wanted = rows.filter(({ sourceId }) => !held.has(sourceId))
  const made = await importItems(tx, part, now, wanted)
  const serialOf = new Map(wanted.map((row, i) => [row, made[i] ?? null]))
  const serials = rows.map((row) => serialOf.get(row) ?? null)

  const imported = rows.flatMap((row, i) => {
    const serial = serials[i]
    return serial == null ? [] : [{ row, serial }]
  })
  const leased = imported.filter(({ row }) => row.isLeased)
  for (const [deadline, mine] of Map.groupBy(leased, ({ row }) => row.leaseDeadline ?? ZERO)) {
    noteLease(
      tx,
      part,
      mine.map(({ serial }) => serial),
      deadline,
    )
    cycle.expectAt(later(deadline, LEASE_GRACE_US))
  }
  cycle.changes.add(part, {
    ready: imported.length - leased.length,
    leased: leased.length,
    created: instantSum(now, imported.length),
    deadline: sumOfInstants(leased.flatMap(({ row }) => row.leaseDeadline ?? [])),
  })
  for (const { row } of imported) cycle.expectAt(row.expireDeadline)
  const first = imported[0]
  if (first !== undefined) cycle.arrived(queue.queueName, part, first.serial)

  return rows.map((row, i) => {
    const serial = serials[i]
    if (serial == null) return { outcome: 'existed' }
    const item = { ...row, id: itemIdIn(partition, serial), createdAt: now, enqueueAt: null, death: null }
    return { outcome: 'imported', item }
  })
}

function toRow(item: ImportItem, defaultExpireAt: Instant): ItemToImport {
  const expireAt = item.expireDeadline ?? null
  return {
    encoding: item.encoding ?? '',
    kind: item.kind ?? '',
    reference: item.reference ?? '',
    payload: item.payload ?? new Uint8Array(0),
    sourceId: item.sourceId ?? '',
    isLeased: item.isLeased ?? false,
    leaseDeadline: item.leaseDeadline ?? null,
    expireDeadline: expireAt === null || expireAt <= ZERO ? defaultExpireAt : expireAt,
    attempts: item.attempts ?? 0,
    maxAttempts: item.maxAttempts ?? 0,
  }
}
