/**
 * Settling: what came of attempts is written down at once, together with whatever else has ended meanwhile. What cannot be written
 * because the store is away is written when it is back; a claim that is over makes a result void.
 */
import { backoffDelayMs } from '../../core/backoff.ts'
import { Changes } from '../../core/changes.ts'
import { type Clock, type Instant, later, microseconds } from '../../core/clock.ts'
import { Gather } from '../../core/gather.ts'
import type { Log } from '../../core/log.ts'
import type { Xid } from '../../core/xid.ts'
import { type Database, StoreUnavailable } from '../../db/database.ts'
import { closeCasesOf } from '../../letters/confirm.ts'
import type { Registers } from '../../letters/death-note.ts'
import type { LetterId } from '../../letters/letter.ts'
import { lockLettersOf } from '../../letters/reopen.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import { buryJobs, type DyingJob } from '../letters/bury.ts'
import type { WebhookSettings } from '../settings.ts'
import { Tallies } from '../tallies.ts'
import { JOB, WEBHOOKS } from '../webhook.ts'
import { retryDelaySeconds } from './backoff.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type FailedJob, fileFailures, type Move, moveJobs, moveOf, withCases } from './moves.ts'

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

export interface Settlement {
  readonly job: ClaimedJob
  readonly outcome: Outcome
}

/** `void`: the claim was over. `away`: the store does not answer. Otherwise what became of the job; `later` with the time. */
type Settled = 'void' | 'away' | 'delivered' | 'ready' | 'dead' | { readonly dueAt: Instant }

export interface SettlingParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly registers: Registers
  readonly settings: WebhookSettings
  /** A job is tried again then. */
  onLater(dueAt: Instant): void
}

/** Settled in one transaction at most. */
const MOST_SETTLED = 500
const OUTAGE = { baseMs: 50, factor: 2, maxMs: 1_000, jitter: 0.3 }

export class Settling {
  readonly #parts: SettlingParts
  readonly #gather: Gather<Settlement, Settled>
  readonly #changes = new Changes()
  #stopping = false

  constructor(parts: SettlingParts) {
    this.#parts = parts
    this.#gather = new Gather((batch) => this.#writeOrSayAway(batch), { most: MOST_SETTLED })
  }

  /** Writes down what came of a job. Resolves when that is done, or of no use any more. Never rejects. */
  async settle(settlement: Settlement): Promise<void> {
    const { clock, log, onLater } = this.#parts
    const { job } = settlement
    for (let failures = 1; ; failures++) {
      try {
        const settled = await this.#gather.do(settlement)
        if (settled === 'void') log.debug({ jobId: job.id }, 'a late result of a delivery was ignored')
        if (typeof settled === 'object') onLater(settled.dueAt)
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
    this.#changes.signal()
  }

  /** Tries until the store is there, for all that have gathered: if each did so for itself, each would tell of it. */
  async #writeOrSayAway(batch: readonly Settlement[]): Promise<readonly Settled[]> {
    const { db, clock, log } = this.#parts
    for (let failures = 1; ; failures++) {
      try {
        return await inOffice(db, clock, 'webhooks.settle', (work) => this.#write(work, batch))
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        log.warn({ err: error, jobs: batch.length }, 'results of deliveries wait for the store')
      }
      if (this.#stopping) return batch.map(() => 'away')
      await this.#changes.within(backoffDelayMs(failures, OUTAGE), () => this.#stopping)
    }
  }

  async #write(work: OfficeWork, batch: readonly Settlement[]): Promise<readonly Settled[]> {
    const tallies = new Tallies()
    const { moves, failing, dying } = this.#sorted(batch, work.now)
    // Letters before jobs, in the order that everybody keeps.
    const dyingIds = new Set(dying.map(({ id }) => id))
    await lockLettersOf(work.tx, lettersOf(batch, dyingIds))
    const failed = await withCases(work, failing)
    const moved = await moveJobs(work, tallies, [...moves, ...failed.map(moveOf)])
    const isDelivered = ({ job, outcome }: Settlement) => outcome.kind === 'delivered' && moved.has(job.id)
    await Promise.all([
      fileFailures(work, failed, moved),
      closeCasesOf(
        work,
        batch.filter(isDelivered).flatMap(({ job }) => job.letter ?? []),
        new Map(),
      ),
    ])
    const { registers } = this.#parts
    const dead = dying.length === 0 ? new Set<Xid>() : await buryJobs(work, registers, tallies, dying)
    tallies.write(work.tx)
    const dueAt = new Map(failed.map((job) => [job.id, job.dueAt]))
    return batch.map(({ job: { id }, outcome }): Settled => {
      if (dead.has(id)) return 'dead'
      if (!moved.has(id)) return 'void'
      const due = dueAt.get(id)
      if (due != null) return { dueAt: due }
      return outcome.kind === 'delivered' ? 'delivered' : 'ready'
    })
  }

  #sorted(batch: readonly Settlement[], now: Instant) {
    const { maxRetry, backoffSeconds } = this.#parts.settings.delivery
    const moves: Move[] = []
    const failing: FailedJob[] = []
    const dying: DyingJob[] = []
    for (const { job, outcome } of batch) {
      const { id, claim, letter, attempts } = job
      if (outcome.kind !== 'failed') {
        const to = outcome.kind === 'delivered' ? JOB.delivered : JOB.ready
        moves.push({ id, claim, to, failures: 0, dueAt: null, letter })
        continue
      }
      const { errorClass, errorMessage, correlationId } = outcome
      const failure = { errorClass, errorMessage, failedBy: WEBHOOKS }
      if (attempts >= maxRetry) dying.push({ id, claim, exhausted: true, reason: 'attempts', ...failure })
      else {
        const delay = retryDelaySeconds(backoffSeconds, attempts + 1)
        const dueAt = later(now, microseconds(delay))
        failing.push({ id, claim, to: JOB.later, dueAt, letter, failure: { ...failure, correlationId } })
      }
    }
    return { moves, failing, dying }
  }
}

/** The letters that deliveries confirm and deaths reopen. */
const lettersOf = (batch: readonly Settlement[], dying: ReadonlySet<Xid>): readonly LetterId[] =>
  batch.flatMap(({ job, outcome }) =>
    outcome.kind === 'delivered' || dying.has(job.id) ? (job.letter ?? []) : [],
  )
