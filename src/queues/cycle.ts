/**
 * One cycle of one queue: a transaction in which everything that has gathered is applied. The verbs write
 * through it, and leave for later what may only happen once the transaction is durable.
 */
import type { Instant } from '../core/clock.ts'
import type { Transaction } from '../db/database.ts'
import { CountChanges } from './counts.ts'
import type { QueueRecord } from './records.ts'

/** Items became leasable: in this part, from this serial on. */
export interface Arrival {
  readonly queueName: string
  readonly part: number
  readonly firstSerial: number
}

/** The settings that a cycle worked with are older than the stored ones; nothing may be committed. */
export class StaleQueue extends Error {
  override readonly name = 'StaleQueue'
}

export class Cycle {
  readonly tx: Transaction
  readonly queue: QueueRecord
  readonly now: Instant
  readonly changes = new CountChanges()
  readonly arrivals: Arrival[] = []
  readonly #effects: (() => void)[] = []
  #nextDeadline: Instant | null = null

  constructor(tx: Transaction, queue: QueueRecord, now: Instant) {
    this.tx = tx
    this.queue = queue
    this.now = now
  }

  /** Runs `effect` once the transaction is durable: replies, log lines, wake-ups. */
  afterCommit(effect: () => void): void {
    this.#effects.push(effect)
  }

  arrived(queueName: string, part: number, firstSerial: number): void {
    this.arrivals.push({ queueName, part, firstSerial })
  }

  /** Something of this cycle comes due at `deadline`. */
  expectAt(deadline: Instant): void {
    if (this.#nextDeadline === null || deadline < this.#nextDeadline) this.#nextDeadline = deadline
  }

  get nextDeadline(): Instant | null {
    return this.#nextDeadline
  }

  runEffects(): void {
    for (const effect of this.#effects) effect()
  }
}
