/** A message that an engine holds: leased, being handled, not settled yet. */
import type { Instant } from '../core/clock.ts'
import type { LeasedItem } from '../queues/queue.ts'

export class Holding {
  readonly item: LeasedItem
  readonly partition: number
  /** Ends the run; the reason says why (`HandlerTimedOut`, `LeaseLost`, `EngineStopped`). */
  readonly abort = new AbortController()
  leaseDeadline: Instant
  /** The result is being written: whoever now finds the lease gone finds what was written. */
  settling = false

  constructor(item: LeasedItem, partition: number) {
    this.item = item
    this.partition = partition
    this.leaseDeadline = item.leaseDeadline
  }
}
