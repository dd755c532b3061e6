/** Sources of letters as the office API shows them: the names of the wire, as for letters. */

/** A queue as `GET /api/queues` shows it. */
export interface QueueOverview {
  readonly name: string
  readonly deadQueue: string | null
  /** What becomes of an item that dies here while there is no dead queue. */
  readonly onDeath: 'letter' | 'delete'
  readonly partitions: number
  readonly ready: number
  readonly leased: number
  readonly scheduled: number
  /** Items that wait for a dead queue that does not exist. */
  readonly held: number
  /** Letters that lie in it. */
  readonly dead: number
  readonly oldestAtUtc: string | null
  /** Pending letters that came from it. */
  readonly letters: number
  readonly maxAttempts: number
  readonly leaseTimeout: string
  readonly deadTimeout: string | null
}

/** What runs of one operation came to, of the newest ones. */
export interface EngineOperation {
  readonly operation: string
  readonly runs: number
  readonly succeeded: number
  readonly failed: number
  /** From 0 to 1; null without runs. */
  readonly successRate: number | null
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
  readonly lastAtUtc: string | null
}

/** An engine as `GET /api/engines` shows it. */
export interface EngineOverview {
  readonly name: string
  readonly queue: string | null
  /** Pending letters. */
  readonly pending: number
  readonly operations: readonly EngineOperation[]
}

export interface EngineOverviews {
  readonly items: readonly EngineOverview[]
  /** What the numbers are taken from. */
  readonly basis: string
}
