/** The attempts of a courier: room while each runs, and who is told of the result. */
import type { Origins } from '../../../outgoing/connections.ts'
import type { Parts, WebhookSettings } from '../settings.ts'
import type { Allowances } from './allowances.ts'
import { type AttemptResult, attempt } from './attempt.ts'
import type { Breaker } from './breaker.ts'
import type { ClaimedJob } from './claim.ts'
import type { Content, Contents } from './contents.ts'
import { HANDED_BACK, type Outcome } from './outcome.ts'

interface AttemptsParts extends Pick<Parts, 'clock' | 'log' | 'xids'> {
  readonly delivery: WebhookSettings['delivery']
  readonly origins: Origins
  readonly contents: Contents
  readonly allowances: Allowances
  readonly breaker: Breaker
  /** There is room for another one. */
  onEnded(): void
}

export interface Attempted {
  readonly channelId: string
  readonly consumerId: string
  readonly outcome: 'success' | 'http_error' | 'network' | 'timeout'
  readonly seconds: number
}

export class Attempts {
  readonly #parts: AttemptsParts
  readonly #listeners: ((attempt: Attempted) => void)[] = []

  constructor(parts: AttemptsParts) {
    this.#parts = parts
  }

  onAttempt(listener: (attempt: Attempted) => void): void {
    this.#listeners.push(listener)
  }

  /** Never rejects. */
  async make(job: ClaimedJob, content: Content, signal: AbortSignal): Promise<Outcome> {
    const { clock, delivery, xids, origins, contents, allowances, onEnded } = this.#parts
    const { receiver } = job
    const requestId = xids.next()
    const startedMs = performance.now()
    allowances.began(receiver)
    const result = await attempt(job, content, { clock, delivery, origins, requestId, signal })
    const seconds = (performance.now() - startedMs) / 1_000
    contents.release(job.message)
    const { outcome } = result
    allowances.ended(receiver.number, outcome === 'success' || outcome === 'timeout' ? outcome : 'other')
    onEnded()
    this.#tell(job, requestId, result, seconds)
    return outcomeOf(result, content)
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
