/**
 * Fair sharing, as pure arithmetic: which waiting lease is served from which partition, and who gets how much.
 */

/** The index of the partition with the most items; the lowest number wins a tie. -1 when none has any. */
function fullest(counts: readonly number[]): number {
  let best = -1
  for (let i = 0; i < counts.length; i++) {
    const count = counts[i] ?? 0
    if (count > 0 && (best < 0 || count > (counts[best] ?? 0))) best = i
  }
  return best
}

/** The index of the partition with the fewest items; the lowest number wins a tie. */
export function emptiest(counts: readonly number[]): number {
  let best = 0
  for (let i = 1; i < counts.length; i++) if ((counts[i] ?? 0) < (counts[best] ?? 0)) best = i
  return best
}

/**
 * For each waiting lease, in order of arrival, the partition that shall serve it: the one with the most items
 * not promised to earlier leases; once everything is promised, the one with the most items. -1 keeps it waiting.
 */
export function assignPartitions(batchSizes: readonly number[], ready: readonly number[]): number[] {
  const unpromised = [...ready]
  const shared = fullest(ready)
  return batchSizes.map((batchSize) => {
    const partition = fullest(unpromised)
    if (partition < 0) return shared
    unpromised[partition] = Math.max(0, (unpromised[partition] ?? 0) - batchSize)
    return partition
  })
}

/** Deals items one at a time, in order, round robin over the leases, until they are full or nothing is left. */
export function dealRoundRobin<T>(batchSizes: readonly number[], items: readonly T[]): T[][] {
  const hands: T[][] = batchSizes.map(() => [])
  let open = batchSizes.map((_, i) => i)
  let next = 0
  while (open.length > 0 && next < items.length) {
    const stillOpen: number[] = []
    for (const i of open) {
      const hand = hands[i]
      const item = items[next]
      if (hand === undefined || item === undefined) break
      hand.push(item)
      next++
      if (hand.length < (batchSizes[i] ?? 0)) stillOpen.push(i)
    }
    open = stillOpen
  }
  return hands
}
