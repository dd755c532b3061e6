/**
 * The attempts of a courier: jobs that were claimed are delivered side by side, and what comes of each is told and settled. A worker
 * is free as soon as its attempt is over; what is being written down holds up nobody.
 */
import { later, microseconds } from '../../../core/clock.ts'
import type { Origins } from '../../../outgoing/connections.ts'
import type { Parts, WebhookSettings } from '../settings.ts'
import type { Allowances } from './allowances.ts'
import { type AttemptResult, attempt } from './attempt.ts'
import type { Breaker } from './breaker.ts'
import type { ClaimedJob } from './claim.ts'
import type { Content, Contents } from './contents.ts'
import type { Outcome, Settling } from './settling.ts'

interface AttemptsParts extends Pick<Parts, 'clock' | 'log' | 'xids'> {
  readonly delivery: WebhookSettings['delivery']
  readonly origins: Origins
  readonly contents: Contents
  readonly allowances: Allowances
  readonly breaker: Breaker
  readonly settling: Settling
  /** A worker is free, or a job was settled. `mayHaveMore`: a job of the consumer was handed back. */
  onFreed(consumer: number, mayHaveMore: boolean): void
}

/** An attempt that ended. */
export interface Attempted {
  readonly channelId: string
  readonly consumerId: string
  readonly outcome: 'success' | 'http_error' | 'network' | 'timeout'
  readonly seconds: number
}

const HANDED_BACK = { kind: 'handedBack' } as const satisfies Outcome

export class Attempts {
  readonly #parts: AttemptsParts
  readonly #listeners: ((attempt: Attempted) => void)[] = []
  readonly #running = new Set<AbortController>()
  #held = 0

  constructor(parts: AttemptsParts) {
    this.#parts = parts
  }

  /** Jobs that were claimed and are not settled. */
  get held(): number {
    return this.#held
  }

  /** Calls `listener` after every attempt. */
  onAttempt(listener: (attempt: Attempted) => void): void {
    this.#listeners.push(listener)
  }

  /** Begins with all of them, unless it `isOver` or too late when their messages are there. Rejects when these cannot be read. */
  async begin(jobs: readonly ClaimedJob[], isOver: () => boolean): Promise<void> {
    const { contents } = this.#parts
    this.#held += jobs.length
    try {
      const loaded = await contents.load(jobs.map(({ message }) => message))
      for (const [i, job] of jobs.entries()) {
        const content = loaded[i] ?? 'gone'
        if (content === 'no room') void this.#settle(job, HANDED_BACK)
        else if (content === 'gone') void this.#settle(job, gone(job))
        else if (isOver() || this.#isTooLate(job)) {
          contents.release(job.message)
          void this.#settle(job, HANDED_BACK)
        } else void this.#run(job, content)
      }
    } catch (error) {
      for (const job of jobs) void this.#settle(job, HANDED_BACK)
      throw error
    }
  }

  /** Ends what runs, which is handed back. */
  cutShort(): void {
    for (const ends of this.#running) ends.abort(new Error('the server stops'))
  }

  /** So much of the claim has passed that the attempt would be cut short, or be made twice once another server has the job. */
  #isTooLate({ claimedUntil }: ClaimedJob): boolean {
    const { clock, delivery } = this.#parts
    return later(clock.now(), microseconds(delivery.timeoutSeconds / 2)) >= claimedUntil
  }

  async #run(job: ClaimedJob, content: Content): Promise<void> {
    const { clock, delivery, xids, origins, contents, allowances, onFreed } = this.#parts
    const { receiver } = job
    const ends = new AbortController()
    const requestId = xids.next()
    const startedMs = performance.now()
    this.#running.add(ends)
    allowances.began(receiver)
    const result = await attempt(job, content, { clock, delivery, origins, requestId, ends })
    const seconds = (performance.now() - startedMs) / 1_000
    this.#running.delete(ends)
    contents.release(job.message)
    const { outcome } = result
    allowances.ended(receiver.number, outcome === 'success' || outcome === 'timeout' ? outcome : 'other')
    const settled = this.#settle(job, outcomeOf(result, content))
    onFreed(receiver.number, false)
    this.#tell(job, requestId, result, seconds)
    await settled
  }

  async #settle(job: ClaimedJob, outcome: Outcome): Promise<void> {
    const { settling, breaker, onFreed } = this.#parts
    await settling.settle({ job, outcome })
    if (outcome.kind === 'handedBack') await breaker.handedBack(job)
    this.#held -= 1
    onFreed(job.receiver.number, outcome.kind === 'handedBack')
  }

  #tell(job: ClaimedJob, requestId: string, result: AttemptResult, seconds: number): void {
    const { log, breaker } = this.#parts
    const { channelId, consumerId } = job.receiver
    if (result.outcome === 'cut') return
    const { outcome } = result
    const details = { requestId, jobId: job.id, channelId, consumerId, seconds }
    if (outcome === 'success') {
      breaker.succeeded(job)
      log.debug(details, 'a webhook was delivered')
    } else {
      breaker.failed(job, result)
      log.info(
        { ...details, attempt: job.attempts + 1, error: result.errorMessage },
        'a webhook was not delivered',
      )
    }
    for (const listener of this.#listeners) {
      try {
        listener({ channelId, consumerId, outcome, seconds })
      } catch (error) {
        log.error({ err: error }, 'a listener to deliveries failed')
      }
    }
  }
}

function outcomeOf(result: AttemptResult, { messageId }: Content): Outcome {
  switch (result.outcome) {
    case 'success':
      return { kind: 'delivered' }
    case 'cut':
      return HANDED_BACK
    default: {
      const { errorClass, errorMessage } = result
      return { kind: 'failed', errorClass, errorMessage, correlationId: messageId }
    }
  }
}

const gone = ({ message }: ClaimedJob): Outcome => ({
  kind: 'failed',
  errorClass: 'MessageGone',
  errorMessage: 'the message of the job does not exist any more',
  correlationId: message,
})
