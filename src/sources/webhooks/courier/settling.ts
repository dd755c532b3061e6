/**
 * Settling: what came of attempts is written down at once, together with whatever else has ended meanwhile. What cannot be written
 * because the store is away is written when it is back; a claim that is over makes a result void.
 */
import { backoffDelayMs } from '../../../core/backoff.ts'
import { Batcher } from '../../../core/batcher.ts'
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import { Signal } from '../../../core/signal.ts'
import { inOffice, type OfficeWork } from '../../../letters/work.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { type Settlement, settleAlone } from '../jobs/settle-jobs.ts'
import type { CourierParts, WebhookSettings } from '../settings.ts'
import { JOB, WEBHOOKS } from '../webhook.ts'
import type { ClaimedJob } from './claim.ts'

/** What came of a claim. `handedBack`: no attempt was made, or it was cut short. */
export type Outcome =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'handedBack' }
  | {
      readonly kind: 'failed'
      readonly errorClass: string
      readonly errorMessage: string
      readonly correlationId: string
    }

interface Result {
  readonly job: ClaimedJob
  readonly outcome: Outcome
}

/** What was written: `void`, nothing, because the claim was over; otherwise when the job is tried again, if it is. */
type Written = 'void' | { readonly dueAt: Instant | null }

interface SettlingParts extends CourierParts {
  /** A job is tried again then. */
  onLater(dueAt: Instant): void
}

/** Settled in one transaction at most. */
const MOST_SETTLED = 500
const OUTAGE = { baseMs: 50, factor: 2, maxMs: 1_000, jitter: 0.3 }

export class Settling {
  readonly #parts: SettlingParts
  readonly #gather: Batcher<Result, Written>
  readonly #changes = new Signal()
  #stopping = false

  constructor(parts: SettlingParts) {
    this.#parts = parts
    this.#gather = new Batcher((batch) => this.#writeOrLeave(batch), { most: MOST_SETTLED })
  }

  /** Writes down what came of a job. Resolves when that is done, or of no use any more. Never rejects. */
  async settle(result: Result): Promise<void> {
    const { clock, log, onLater } = this.#parts
    const { job } = result
    for (let failures = 1; ; failures++) {
      try {
        const written = await this.#gather.do(result)
        if (written === 'void') log.debug({ jobId: job.id }, 'a late result of a delivery was ignored')
        else if (written.dueAt !== null) onLater(written.dueAt)
        return
      } catch (error) {
        // Once for each job: it is tried again several times in a second.
        if (failures === 1)
          log.error({ err: error, jobId: job.id }, 'the result of a delivery could not be written')
        if (clock.now() >= job.claimedUntil) return
      }
      if (this.#stopping) return
      await this.#changes.within(backoffDelayMs(failures, OUTAGE), () => this.#stopping)
    }
  }

  /** From now on what cannot be written at once is left to its claim, which lapses. */
  stop(): void {
    this.#stopping = true
    this.#changes.notify()
  }

  /** Tries until the store is there, for all that have gathered: if each did so for itself, each would tell of it. */
  async #writeOrLeave(batch: readonly Result[]): Promise<readonly Written[]> {
    const { db, clock, log } = this.#parts
    for (let failures = 1; ; failures++) {
      try {
        return await inOffice(db, clock, 'webhooks.settle', (work) => this.#write(work, batch))
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        log.warn({ err: error, jobs: batch.length }, 'results of deliveries wait for the store')
      }
      if (this.#stopping) return batch.map(() => ({ dueAt: null }))
      await this.#changes.within(backoffDelayMs(failures, OUTAGE), () => this.#stopping)
    }
  }

  async #write(work: OfficeWork, batch: readonly Result[]): Promise<readonly Written[]> {
    const { registers, settings } = this.#parts
    const settlements = batch.map((result) => settlementOf(result, settings.delivery, work.now))
    const settled = await settleAlone(work, registers, settlements)
    return settlements.map((job) =>
      settled.has(job.id) ? { dueAt: job.to === JOB.dead ? null : job.dueAt } : 'void',
    )
  }
}

function settlementOf(
  { job, outcome }: Result,
  delivery: WebhookSettings['delivery'],
  now: Instant,
): Settlement {
  const { id, claim, letter, attempts } = job
  const held = { id, claim, letter }
  if (outcome.kind !== 'failed') {
    const to = outcome.kind === 'delivered' ? JOB.delivered : JOB.ready
    return { ...held, to, dueAt: null, failure: null }
  }
  const { errorClass, errorMessage, correlationId } = outcome
  const failure = { errorClass, errorMessage, correlationId, failedBy: WEBHOOKS }
  if (attempts >= delivery.maxRetry)
    return { ...held, to: JOB.dead, exhausted: true, reason: 'attempts', ...failure }
  return { ...held, to: JOB.later, dueAt: retryAt(delivery, attempts, now), failure }
}

/** When a job is tried again that failed now, and so often before. */
export const retryAt = (
  { backoffSeconds }: Pick<WebhookSettings['delivery'], 'backoffSeconds'>,
  attempts: number,
  now: Instant,
): Instant => later(now, microseconds(retryDelaySeconds(backoffSeconds, attempts + 1)))

/**
 * The delay before attempt `attempt + 1`, after `attempt` failures: the values of the list in turn; from the last one on,
 * that value times one, two, three and so on.
 */
export function retryDelaySeconds(list: readonly number[], attempt: number): number {
  const steps = attempt - list.length + 1
  return steps < 1 ? (list[attempt - 1] ?? 0) : (list.at(-1) ?? 0) * steps
}
