/** What comes of a claim, and what is written because of it. */
import { type Instant, later, microseconds } from '../../../core/clock.ts'
import type { Settlement } from '../jobs/settle-jobs.ts'
import type { WebhookSettings } from '../settings.ts'
import { JOB, WEBHOOKS } from '../webhook.ts'
import type { ClaimedJob } from './claim.ts'

/** `handedBack`: no attempt was made, or it was cut short. */
export type Outcome =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'handedBack' }
  | {
      readonly kind: 'failed'
      readonly errorClass: string
      readonly errorMessage: string
      readonly correlationId: string
    }

export const HANDED_BACK = { kind: 'handedBack' } as const satisfies Outcome

export const messageGone = ({ message }: ClaimedJob): Outcome => ({
  kind: 'failed',
  errorClass: 'MessageGone',
  errorMessage: 'the message of the job does not exist any more',
  correlationId: message,
})

export function settlementOf(
  { id, claim, letter, attempts }: ClaimedJob,
  outcome: Outcome,
  delivery: WebhookSettings['delivery'],
  now: Instant,
): Settlement {
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

export const retryAt = (
  { backoffSeconds }: Pick<WebhookSettings['delivery'], 'backoffSeconds'>,
  attempts: number,
  now: Instant,
): Instant => later(now, microseconds(retryDelaySeconds(backoffSeconds, attempts + 1)))

/** The values of the list in turn; from the last one on, that value times one, two, three … */
export function retryDelaySeconds(list: readonly number[], attempt: number): number {
  const steps = attempt - list.length + 1
  return steps < 1 ? (list[attempt - 1] ?? 0) : (list.at(-1) ?? 0) * steps
}
