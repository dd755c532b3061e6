/**
 * Recovery: retries that are due become ready, and elapsed claims end. A job whose server went away is tried again and never dies of that;
 * one that a pull consumer left dies when its attempts are used up.
 */
import { type Instant, instant, later, microseconds } from '../../../core/clock.ts'
import { Rounds, type Service } from '../../../core/rounds.ts'
import { xid } from '../../../core/xid.ts'
import { letterId } from '../../../letters/letter.ts'
import { inOffice } from '../../../letters/work.ts'
import { togetherOrAlone } from '../../../store/bad-rows.ts'
import { type Integer, sql } from '../../../store/database.ts'
import { integer, orNull, type RowOf, rowShape } from '../../../store/row.ts'
import { type Settlement, settleAlone } from '../jobs/settle-jobs.ts'
import type { CourierParts, WebhookSettings } from '../settings.ts'
import { JOB, WEBHOOKS } from '../webhook.ts'
import { retryAt } from './outcome.ts'

/**
 * From the front of webhook_jobs_later; jobs that another server is moving are passed over. Cost: the jobs moved. Both states are QUEUED
 * outside: neither counts nor the last change move.
 */
const moveDue = sql(
  'webhooks.makeDueReady',
  `UPDATE bartleby.webhook_jobs SET state = ${JOB.ready}, due_at = NULL
   WHERE id IN (SELECT id FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_later WHERE state = ${JOB.later} AND due_at <= $1
                ORDER BY due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
   RETURNING consumer`,
)

/** The first entry of webhook_jobs_later behind a moment. */
const readNextDue = sql(
  'webhooks.nextDue',
  `SELECT due_at FROM bartleby.webhook_jobs INDEXED BY webhook_jobs_later
    WHERE state = ${JOB.later} AND due_at > $1 ORDER BY due_at, id LIMIT 1`,
  { bigints: true },
)

/**
 * From the front of webhook_jobs_in_flight, with one look each for consumer and message. No locks: whoever ends a claim finds out whether
 * it still holds. Cost: the jobs given.
 */
const findLapsed = sql(
  'webhooks.lapsed',
  `
    SELECT id, claim, attempts, letter,
      (SELECT pulls FROM bartleby.webhook_consumers AS consumer WHERE consumer.number = job.consumer) AS pulls,
      (SELECT message_id FROM bartleby.webhook_messages AS message WHERE message.id = job.message) AS message_id
    FROM bartleby.webhook_jobs AS job INDEXED BY webhook_jobs_in_flight
    WHERE state = ${JOB.inFlight} AND due_at <= $1 ORDER BY due_at, id LIMIT $2`,
  { bigints: true },
)

const LAPSED = rowShape({
  id: xid,
  claim: (value: string | null) => value ?? '',
  attempts: integer,
  letter: orNull(letterId),
  /** At present. */
  pulls: (value: Integer | null) => Number(value) === 1,
  /** The public id. */
  messageId: (value: string | null) => value ?? '',
})

type LapsedJob = RowOf<typeof LAPSED>

interface RecoveryParts extends CourierParts {
  onReady(consumers: ReadonlySet<number>): void
}

/** Of one transaction. */
const BATCH = 500
/** Retries due at about the same time become ready together. */
const GATHER_US = 50_000n

export class Recovery implements Service {
  readonly name = 'webhooks.recovery'
  readonly #parts: RecoveryParts
  readonly #ending: Rounds
  /** Runs when the next retry is due. */
  readonly #due: Rounds
  #lastLookAt = instant(0n)

  constructor(parts: RecoveryParts) {
    this.#parts = parts
    const { clock, log, settings } = parts
    const every = {
      ...{ clock, log, everyUs: microseconds(settings.delivery.rationalDelaySeconds) },
      trouble: 'webhook jobs could not be recovered; the next round tries again',
    }
    this.#ending = new Rounds({
      ...{ ...every, name: 'webhooks.claims' },
      act: (signal) => this.#endClaims(signal),
    })
    this.#due = new Rounds({
      ...{ ...every, name: 'webhooks.retries' },
      act: (signal) => this.#makeReady(signal),
    })
  }

  get rounds(): readonly Rounds[] {
    return this.#parts.settings.recovery.enabled ? [this.#ending, this.#due] : []
  }

  start(): void {
    for (const rounds of this.rounds) rounds.start()
  }

  /** After the batch at hand. */
  async stop(): Promise<void> {
    await Promise.all([this.#ending.stop(), this.#due.stop()])
  }

  expect(dueAt: Instant): void {
    if (!this.#parts.settings.recovery.enabled) return
    const soonest = later(this.#lastLookAt, GATHER_US)
    this.#due.expect(dueAt > soonest ? dueAt : soonest)
  }

  async #makeReady(signal: AbortSignal): Promise<void> {
    const { db, clock, onReady } = this.#parts
    for (;;) {
      const now = clock.now()
      this.#lastLookAt = now
      const moved = await db.statement('webhooks.makeDueReady', (tx) =>
        tx.rows<{ consumer: Integer }>(moveDue, now, BATCH),
      )
      if (moved.length > 0) onReady(new Set(moved.map(({ consumer }) => Number(consumer))))
      if (signal.aborted) return
      if (moved.length < BATCH) break
    }
    const [next] = await db.session('webhooks.nextDue', (session) =>
      session.rows<{ due_at: Integer }>(readNextDue, this.#lastLookAt),
    )
    if (next !== undefined) this.expect(instant(BigInt(next.due_at)))
  }

  async #endClaims(signal: AbortSignal): Promise<void> {
    const { db, clock, log } = this.#parts
    const onBad = ({ id }: LapsedJob, error: unknown) =>
      log.warn({ err: error, jobId: id }, 'the claim of a webhook job is over and could not be ended')
    for (;;) {
      // The longest elapsed first.
      const lapsed = await db.session('webhooks.lapsed', (session) =>
        LAPSED.all(session, findLapsed, clock.now(), BATCH),
      )
      if (lapsed.length === 0) return
      const ended = await togetherOrAlone(lapsed, (jobs) => this.#end(jobs), onBad, signal)
      if (lapsed.length < BATCH || ended === 0 || signal.aborted) return
    }
  }

  async #end(lapsed: readonly LapsedJob[]): Promise<number> {
    const { db, clock, registers, settings } = this.#parts
    return inOffice(db, clock, 'webhooks.recover', async (work) => {
      const settlements = lapsed.map((job) => settlementOf(job, settings.delivery, work.now))
      const ended = await settleAlone(work, registers, settlements)
      for (const job of settlements) {
        const dueAt = job.to === JOB.dead ? null : job.dueAt
        if (dueAt !== null && ended.has(job.id)) work.afterCommit(() => this.expect(dueAt))
      }
      return ended.size
    })
  }
}

/** A server's job is tried later; a consumer's is ready at once, or dies when its attempts are used up. */
function settlementOf(job: LapsedJob, delivery: WebhookSettings['delivery'], now: Instant): Settlement {
  const { id, claim, letter, attempts, pulls, messageId } = job
  const held = { id, claim, letter }
  const failure = { ...(pulls ? LEFT_BY_CONSUMER : LEFT_BY_SERVER), correlationId: messageId }
  if (!pulls) return { ...held, to: JOB.later, dueAt: retryAt(delivery, attempts, now), failure }
  if (attempts < delivery.maxRetry) return { ...held, to: JOB.ready, dueAt: null, failure }
  return { ...held, to: JOB.dead, exhausted: true, reason: 'attempts', ...failure }
}

const LEFT_BY_CONSUMER = {
  errorClass: 'ClaimLapsed',
  errorMessage: 'the consumer took the job and did not settle it in time',
  failedBy: WEBHOOKS,
}
const LEFT_BY_SERVER = {
  errorClass: 'ClaimLapsed',
  errorMessage: 'the server that was delivering the job did not say in time what came of it',
  failedBy: WEBHOOKS,
}
