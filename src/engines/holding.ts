/** A message that an engine holds: leased, being handled, not settled yet; and what can end its run beside the handler. */
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

/** A handler did not return in time. It is left to itself, and what it still returns is ignored. */
export class HandlerTimedOut extends Error {
  override readonly name = 'HandlerTimedOut'
}

/** The message is no longer this worker's: its lease ended and somebody else may have it. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** The engine was stopped while the handler ran. */
export class EngineStopped extends Error {
  override readonly name = 'EngineStopped'
}
