/** A lease that waits for items: one long poll of one client. */
import { type Alarm, type Clock, type Instant, later } from '../core/clock.ts'
import { usFromNs } from '../core/duration.ts'
import { failure } from '../core/errors.ts'
import type { LeasedBatch } from './queue.ts'

/** Why the wait of a client that closed its connection ended. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}

export interface LeaseAsk {
  readonly clientId: string
  readonly batchSize: number
  readonly timeoutNs: bigint
}

/**
 *   waiting ──► dealing ──► answered
 *      ▲           │
 *      └───────────┘  a cycle had nothing for it
 *
 * While a cycle is dealing, neither the time-out nor a closed connection ends the wait: the items may be leased
 * already. They take effect when the cycle is over.
 */
export class Waiter {
  readonly clientId: string
  readonly batchSize: number
  readonly deadline: Instant
  readonly answer: Promise<LeasedBatch>
  #dealing = false
  #answered = false
  #timedOut = false
  #dropped = false
  #alarm: Alarm | undefined
  readonly #resolve: (batch: LeasedBatch) => void
  readonly #reject: (error: unknown) => void
  readonly #onGone: (waiter: Waiter) => void

  /** `onGone` is called once, as soon as the waiter is answered in whatever way. */
  constructor(ask: LeaseAsk, clock: Clock, onGone: (waiter: Waiter) => void) {
    this.clientId = ask.clientId
    this.batchSize = ask.batchSize
    this.deadline = later(clock.now(), usFromNs(ask.timeoutNs))
    const { promise, resolve, reject } = Promise.withResolvers<LeasedBatch>()
    this.answer = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#onGone = onGone
  }

  get waiting(): boolean {
    return !this.#dealing && !this.#answered
  }

  /** Starts the time-out. `held` asks whether it must wait, because the queue is paused. */
  startTimeout(clock: Clock, held: () => boolean): void {
    this.#alarm = clock.alarm(this.deadline, () => {
      this.#timedOut = true
      if (!held()) this.endIfTimedOut()
    })
  }

  /** Answers with the time-out error when the time is over and no cycle is dealing. */
  endIfTimedOut(): void {
    if (this.#timedOut && !this.#dealing) this.fail(failure('lease_timed_out'))
  }

  /** The client is gone: nobody reads the answer. */
  drop(): void {
    this.#dropped = true
    if (!this.#dealing) this.fail(new ClientGone())
  }

  /** A cycle considers this waiter; `undeal` ends that without items. */
  deal(): void {
    this.#dealing = true
  }

  undeal(held: boolean): void {
    this.#dealing = false
    if (this.#dropped) this.fail(new ClientGone())
    else if (!held) this.endIfTimedOut()
  }

  give(batch: LeasedBatch): void {
    if (this.#finish()) this.#resolve(batch)
  }

  fail(error: unknown): void {
    if (this.#finish()) this.#reject(error)
  }

  #finish(): boolean {
    if (this.#answered) return false
    this.#answered = true
    this.#alarm?.cancel()
    this.#onGone(this)
    return true
  }
}
