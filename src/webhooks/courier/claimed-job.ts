/** What the courier knows about a job that it has claimed, and about the consumer that gets it. */
import type { Instant } from '../../core/clock.ts'
import type { Xid } from '../../core/xid.ts'
import type { LetterId } from '../../letters/letter.ts'

/** A push consumer as it was when its jobs were claimed. */
export interface Receiver {
  readonly number: number
  readonly channelId: string
  readonly consumerId: string
  readonly token: string
  readonly callbackUrl: string
  /** Deliveries are signed with these; the second one while the first replaces it. */
  readonly secrets: readonly string[]
  readonly mostAtOnce: number | null
  readonly mostPerSecond: number | null
  /** Nothing is claimed for it before; null: it is not paused. */
  readonly pausedUntil: Instant | null
}

export interface ClaimedJob {
  readonly id: Xid
  /** The internal id of its message. */
  readonly message: Xid
  readonly claim: string
  /** Then anybody may take it for lost. */
  readonly claimedUntil: Instant
  readonly createdAt: Instant
  readonly priority: number
  /** Attempts before this one. */
  readonly attempts: number
  /** The case of its failures; null when there were none. */
  readonly letter: LetterId | null
  readonly receiver: Receiver
  /** Its consumer was paused, and this job shows whether it works again. */
  readonly isProbe: boolean
}
