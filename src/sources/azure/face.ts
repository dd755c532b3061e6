/** What an office shows of its account. Apart from all that knows the client libraries: whoever uses the office need not have them. */
import type { Instant } from '../../core/clock.ts'
import type { LetterId } from '../../letters/letter.ts'

/** How the reading of a table or queue stands. */
export interface Reading {
  readonly name: string
  readonly readTo: Instant | null
  /** When it was last read to its end. */
  readonly readAt: Instant | null
  readonly isMissing: boolean
}

export interface AzureState {
  /** Acts that are not yet written to their entities, counted to MOST_COUNTED, and when the oldest was done. */
  readonly unwritten: number
  readonly oldest: Instant | null
  /** Letters of which nobody knows whether their message left; counted as far. */
  readonly uncertain: number
  readonly readings: readonly Reading[]
  /** What does not work now, in words; empty while all is well. */
  readonly troubles: readonly string[]
}

export interface AzureAccount {
  state(): Promise<AzureState>
  /** Somebody has looked into the queue: the message of an uncertain letter arrived, or it did not. */
  settleUncertain(id: LetterId, hasArrived: boolean, actor: string): Promise<void>
}

export interface AzureFace {
  /** The storage account with the unified tables; null unless one is configured. */
  readonly azure: AzureAccount | null
}
