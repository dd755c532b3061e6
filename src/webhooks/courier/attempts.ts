/**
 * The attempts of a courier: jobs that were claimed are delivered side by side, and what comes of each is told and settled. A worker
 * is free as soon as its attempt is over; what is being written down holds up nobody. Jobs that were claimed ahead wait in line, the
 * most urgent first, so that a worker has its next attempt while the next claim is made.
 */
import { type Instant, later, microseconds } from '../../core/clock.ts'
import type { Origins } from '../../outgoing/origins.ts'
import type { Parts } from '../parts.ts'
import { claimUs, type WebhookSettings } from '../settings.ts'
import type { Allowances } from './allowances.ts'
import { type AttemptResult, attempt } from './attempt.ts'
import type { Breaker } from './breaker.ts'
import type { ClaimedJob } from './claim.ts'
import type { Content, Contents } from './contents.ts'
import { byUrgency } from './peek.ts'
import type { Outcome, Settling } from './settling.ts'

interface AttemptsParts extends Pick<Parts, 'clock' | 'log' | 'xids'> {
  readonly delivery: WebhookSettings['delivery']
  readonly origins: Origins
  readonly contents: Contents
  readonly allowances: Allowances
  readonly breaker: Breaker
  readonly settling: Settling
  /** Whether more than one consumer has ready jobs. */
  othersWait(): boolean
  /** A worker is free, or a job was settled. `mayHaveMore`: a job of the consumer was handed back. */
  onFreed(consumer: number, mayHaveMore: boolean): void
}

/** A job in line, with what it delivers. */
interface Waiting {
  readonly job: ClaimedJob
  readonly content: Content
  /** Then it is handed back: what was read of its consumer may not be true any more. */
  readonly until: Instant
}

/** From the claim on. */
const LONGEST_WAIT_US = 1_000_000n

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
  /** The most urgent first. */
  #line: Waiting[] = []
  #stopped = false
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

  /**
   * Begins with as many of each consumer as it has room for, as far as there are workers, once their messages are there. The others
   * stand in line. Rejects when the messages cannot be read.
   */
  async begin(jobs: readonly ClaimedJob[], rooms: ReadonlyMap<number, number>): Promise<void> {
    const { contents, allowances, delivery } = this.#parts
    const waits = claimedAhead(jobs, rooms, delivery.workers - allowances.running)
    this.#held += jobs.length
    for (const { receiver } of waits) allowances.waits(receiver, 1)
    try {
      const loaded = await contents.load(jobs.map(({ message }) => message))
      for (const [i, job] of jobs.entries()) {
        const content = loaded[i] ?? 'gone'
        const isLater = waits.has(job)
        if (isLater && typeof content === 'string') allowances.waits(job.receiver, -1)
        if (content === 'no room') void this.#settle(job, HANDED_BACK)
        else if (content === 'gone') void this.#settle(job, gone(job))
        else if (isLater) this.#line.push({ job, content, until: this.#waitsUntil(job) })
        else this.#runOrHandBack(job, content)
      }
      this.#line.sort((a, b) => byUrgency(a.job, b.job))
      this.beginMore()
    } catch (error) {
      for (const { receiver } of waits) allowances.waits(receiver, -1)
      for (const job of jobs) void this.#settle(job, HANDED_BACK)
      throw error
    }
  }

  /** Begins with those in line that have a worker and room, and hands back what has waited for too long. */
  beginMore(): void {
    const { clock, allowances, othersWait } = this.#parts
    if (this.#line.length === 0) return
    const now = clock.now()
    const shared = othersWait()
    for (let at = 0; at < this.#line.length; ) {
      const waiting = this.#line[at]
      if (waiting === undefined) return
      const { job, content, until } = waiting
      const isOver = this.#stopped || now >= until
      if (isOver || allowances.mayBegin(job.receiver.number, shared)) {
        this.#line.splice(at, 1)
        allowances.waits(job.receiver, -1)
        if (isOver) this.#handBack(job)
        else this.#runOrHandBack(job, content)
      } else at += 1
    }
  }

  /** Begins nothing more, and hands back what was not begun. */
  stop(): void {
    this.#stopped = true
    this.beginMore()
  }

  /** Ends what runs, which is handed back. */
  cutShort(): void {
    for (const ends of this.#running) ends.abort(new Error('the server stops'))
  }

  #runOrHandBack(job: ClaimedJob, content: Content): void {
    if (this.#stopped || this.#isTooLate(job)) this.#handBack(job)
    else void this.#run(job, content)
  }

  #handBack(job: ClaimedJob): void {
    this.#parts.contents.release(job.message)
    void this.#settle(job, HANDED_BACK)
  }

  #waitsUntil({ claimedUntil }: ClaimedJob): Instant {
    return later(claimedUntil, LONGEST_WAIT_US - claimUs(this.#parts.delivery))
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
    const startedAt = clock.now()
    const startedMs = performance.now()
    this.#running.add(ends)
    allowances.began(receiver)
    const result = await attempt(job, content, { clock, delivery, origins, requestId, ends })
    const seconds = (performance.now() - startedMs) / 1_000
    this.#running.delete(ends)
    contents.release(job.message)
    const { outcome } = result
    const known = outcome === 'success' || outcome === 'timeout' ? outcome : 'other'
    allowances.ended(receiver.number, known, Number(clock.now() - startedAt) / 1e6)
    const settled = this.#settle(job, outcomeOf(result, content))
    this.beginMore()
    onFreed(receiver.number, false)
    this.#tell(job, requestId, result, seconds)
    await settled
  }

  async #settle(job: ClaimedJob, outcome: Outcome): Promise<void> {
    const { settling, onFreed } = this.#parts
    await settling.settle({ job, outcome })
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

/** Those of the jobs, the most urgent first, for which there is no room at their consumer, or no worker. */
function claimedAhead(
  jobs: readonly ClaimedJob[],
  rooms: ReadonlyMap<number, number>,
  workers: number,
): ReadonlySet<ClaimedJob> {
  const left = new Map(rooms)
  let free = workers
  const ahead = jobs.filter(({ receiver: { number } }) => {
    const room = left.get(number) ?? 0
    if (room <= 0 || free <= 0) return true
    left.set(number, room - 1)
    free -= 1
    return false
  })
  return new Set(ahead)
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
