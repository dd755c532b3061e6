/**
 * The order of letters: within a partition by offset, across partitions by time. The order time of a record is its own, but never
 * before that of the record before it in its partition, so that a clock that goes backwards changes nothing.
 */

/** Before every record there is. */
export const BEFORE_ALL = -(2n ** 63n)
const LAST = 2n ** 63n - 1n

/** How far a partition was read. */
export interface Progress {
  orderTs: bigint
  nextOffset: bigint
}

/** The order time of the next record of a partition, which is noted as its last one. */
export function advance(
  progress: Progress,
  record: { readonly timestampMs: bigint; readonly offset: bigint },
): bigint {
  if (record.timestampMs > progress.orderTs) progress.orderTs = record.timestampMs
  progress.nextOffset = record.offset < LAST ? record.offset + 1n : LAST
  return progress.orderTs
}
