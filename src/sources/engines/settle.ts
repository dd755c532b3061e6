/**
 * Writes verdicts: what becomes of a message and its history row, in one transaction of the queue. While the store is
 * away it is tried again as long as the lease lasts; after that the message is delivered anew, and the run counts as
 * one that never ended.
 */
import { backoffDelayMs, SETBACK } from '../../core/backoff.ts'
import { type Clock, later } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { Semaphore } from '../../core/semaphore.ts'
import { pause } from '../../core/waiting.ts'
import type { Queues, RetryItem } from '../../queues/queue.ts'
import { StoreUnavailable } from '../../store/database.ts'
import type { Holding } from './lease-keeper.ts'
import type { EngineTerms } from './options.ts'
import type { Verdict } from './run.ts'

/** Calls at a time: half of what a queue lets wait, so that producers still get through. */
const MOST_CALLS = 50

/** Worth trying again: nothing was decided. */
export const isSetback = (error: unknown): boolean =>
  error instanceof StoreUnavailable || (error instanceof BartlebyError && error.retryable)

export class Settler {
  readonly #queues: Queues
  readonly #clock: Clock
  readonly #log: Log
  readonly #terms: EngineTerms
  readonly #calls = new Semaphore(MOST_CALLS)

  constructor(queues: Queues, clock: Clock, log: Log, terms: EngineTerms) {
    this.#queues = queues
    this.#clock = clock
    this.#log = log
    this.#terms = terms
  }

  /** Writes the verdict on a message. Never rejects: what cannot be written is logged. */
  async settle(
    holding: Holding,
    verdict: Exclude<Verdict, { verdict: 'none' }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { id, attempts } = holding.item
    holding.settling = true
    if (verdict.verdict === 'succeeded') {
      const runs = new Map([[id, verdict.run]])
      return this.#write(holding, signal, () =>
        this.#queues.complete({ ...this.#place(holding), ids: [id], runs }),
      )
    }
    const { run } = verdict
    const dead = verdict.permanent || attempts >= this.#terms.maxAttempts
    const delayUs = BigInt(Math.round(backoffDelayMs(attempts, this.#terms.backoff) * 1_000))
    const item: RetryItem = dead ? { id, dead, run } : { id, retryAt: later(this.#clock.now(), delayUs), run }
    return this.#write(holding, signal, () => this.#queues.retry({ ...this.#place(holding), items: [item] }))
  }

  /** Gives leases back, so that other workers get the messages at once. Leases it cannot give back end by themselves. */
  async giveBack(holdings: readonly Holding[]): Promise<void> {
    for (const group of Map.groupBy(holdings, ({ partition }) => partition).values()) {
      const ids = group.map(({ item }) => item.id)
      try {
        await this.#return(group, ids)
      } catch {
        // One that is gone refuses all of them.
        for (const id of ids) {
          await this.#return(group, [id]).catch((error: unknown) =>
            this.#log.warn({ err: error, itemId: id }, 'a lease could not be given back; it ends by itself'),
          )
        }
      }
    }
  }

  async #return(group: readonly Holding[], ids: readonly string[]): Promise<void> {
    const [first] = group
    if (first === undefined) return
    await this.#queues.retry({ ...this.#place(first), items: ids.map((id) => ({ id, unspent: true })) })
  }

  async #write(holding: Holding, signal: AbortSignal, send: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#calls.pass(send)
      } catch (error) {
        const about = { err: error, itemId: holding.item.id }
        if (!isSetback(error)) {
          return this.#log.warn(
            about,
            'the result of a run was not written; its message is gone or another worker has it',
          )
        }
        if (signal.aborted || this.#clock.now() >= holding.leaseDeadline) {
          return this.#log.error(
            about,
            'the result of a run was not written in time; the message is delivered again',
          )
        }
        this.#log.warn(about, 'the result of a run could not be written, trying again')
        await pause(this.#clock, BigInt(Math.round(backoffDelayMs(tries, SETBACK) * 1_000)), signal)
      }
    }
  }

  #place({ partition }: Holding) {
    return { queueName: this.#terms.queueName, partition }
  }
}
