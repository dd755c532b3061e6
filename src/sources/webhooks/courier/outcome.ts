/** What is written because of an attempt, and when a job is tried again. */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import type { Settlement } from '../jobs/settle-jobs.ts'
import type { WebhookSettings } from '../settings.ts'
import { JOB, WEBHOOKS } from '../webhook.ts'
import type { AttemptResult } from './attempt.ts'
import type { ClaimedJob } from './claim.ts'

type Delivery = WebhookSettings['delivery']

export function settlementOf(
  { id, claim, letter, attempts }: Pick<ClaimedJob, 'id' | 'claim' | 'letter' | 'attempts'>,
  correlationId: string,
  result: AttemptResult,
  delivery: Delivery,
  now: Instant,
): Settlement {
  const held = { id, claim, letter }
  if (result.outcome === 'success') return { ...held, to: JOB.delivered, dueAt: null, failure: null }
  if (result.outcome === 'cut') return { ...held, to: JOB.ready, dueAt: null, failure: null }
  const { errorClass, errorMessage } = result
  const failure = { errorClass, errorMessage, correlationId, failedBy: WEBHOOKS }
  if (attempts >= delivery.maxRetry)
    return { ...held, to: JOB.dead, exhausted: true, reason: 'attempts', ...failure }
  return { ...held, to: JOB.later, dueAt: retryAt(delivery, attempts, now), failure }
}

export const retryAt = (
  { backoffSeconds }: Pick<Delivery, 'backoffSeconds'>,
  attempts: number,
  now: Instant,
): Instant => later(now, microseconds(retryDelaySeconds(backoffSeconds, attempts + 1)))

/** The values of the list in turn; from the last one on, that value times one, two, three … */
export function retryDelaySeconds(list: readonly number[], attempt: number): number {
  const steps = attempt - list.length + 1
  return steps < 1 ? (list[attempt - 1] ?? 0) : (list.at(-1) ?? 0) * steps
}
