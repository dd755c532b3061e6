/**
 * One cycle of one queue: a transaction in which everything that has gathered is applied. The verbs write
 * through it, and leave for later what may only happen once the transaction is durable.
 */
import type { Instant } from '../core/clock.ts'
import type { Transaction } from '../db/database.ts'
import { LetterChanges } from '../letters/counts.ts'
import type { OfficeWork } from '../letters/work.ts'
import { CountChanges } from './counts.ts'
import type { Partition, QueueRecord } from './records.ts'

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

export class Cycle implements OfficeWork {
  readonly tx: Transaction
  readonly queue: QueueRecord
  readonly now: Instant
  readonly changes = new CountChanges()
  readonly letters = new LetterChanges()
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

  /** The partition as the settings of this cycle have it; a request may have been made under older ones. */
  partition(asked: Partition): Partition {
    return this.queue.partitions[asked.number] ?? asked
  }

  arrived(queueName: string, part: number, firstSerial: number): void {
    this.arrivals.push({ queueName, part, firstSerial })
  }

  /** Something of this cycle comes due at `deadline`. */
  expectAt(deadline: Instant): void {
    if (this.#nextDeadline === null || deadline < this.#nextDeadline) this.#nextDeadline = deadline
  }

  /** Makes the changes of all counts part of the transaction. Call it last. */
  writeCounts(): void {
    this.changes.write(this.tx)
    this.letters.write(this.tx, this.now)
  }

  get nextDeadline(): Instant | null {
    return this.#nextDeadline
  }

  runEffects(): void {
    for (const effect of this.#effects) effect()
  }
}
