/** What can be in the way of an attempt, and how it is told: by the Kafka API, and by the office. */
import { type BartlebyError, failure } from '../../core/errors.ts'
import type { DlqId, EventId, Reason, StoredEvent } from '../event.ts'
import { KafkaRefused } from '../refusal.ts'
import type { QueueHead } from './terms.ts'

export type Obstacle =
  /** Nothing is unresolved there. */
  | { readonly why: 'empty' }
  /** Another event is next. */
  | { readonly why: 'not_next'; readonly expected: DlqId }
  /** Another event of the service is in flight, and was for as long as one waits. */
  | { readonly why: 'busy'; readonly service: string; readonly dlqId: DlqId | null }
  /** An unresolved event with the same key comes before it. */
  | { readonly why: 'earlier_same_key'; readonly before: string }
  | { readonly why: 'guarded'; readonly event: StoredEvent; readonly reasons: readonly Reason[] }
  /** What the caller gave is not allowed: `given`. Or the topic that the event names is none to come from. */
  | { readonly why: 'override_guarded'; readonly given: object; readonly reasons: readonly Reason[] }
  | {
      readonly why: 'processor_failed' | 'processor_timeout'
      readonly event: StoredEvent
      readonly message: string
    }
  | { readonly why: 'processor_discards' }
  /** It may have been published before. */
  | { readonly why: 'uncertain'; readonly dlqId: DlqId; readonly eventId: EventId }
  /** It may have been published just now. */
  | { readonly why: 'doubt'; readonly eventId: EventId; readonly message: string }
  /** It was not published. */
  | { readonly why: 'kafka_away'; readonly message: string }

/** The refusal of a call on a queue. */
export function refusalOf(obstacle: Obstacle, { service, topic, dlqId }: QueueHead): KafkaRefused {
  switch (obstacle.why) {
    case 'empty':
      return new KafkaRefused(
        'emptyDLQError',
        topic === null ? { service } : { service, topic },
        'nothing is unresolved there',
      )
    case 'not_next':
      return new KafkaRefused(
        'dlqSequenceError',
        { service, topic, supplied_dlq_id: dlqId ?? '', expected_dlq_id: obstacle.expected },
        'another event is next',
        // Without a topic it is a condition of the request that failed.
        topic === null ? 412 : 409,
      )
    case 'busy':
      return new KafkaRefused(
        'dlqBusyError',
        { service: obstacle.service, dlq_id: obstacle.dlqId },
        'another event of the service is in flight, try again',
      )
    case 'guarded':
      return new KafkaRefused(
        'publishGuardError',
        { dlq_id: obstacle.event.dlqId, reasons: obstacle.reasons },
        `the event must not be published as it is: ${obstacle.reasons.join(', ')}${wayOut(obstacle)}`,
      )
    case 'override_guarded': {
      const { given, reasons } = obstacle
      const reason = `the event must not be published like this: ${reasons.join(', ')}`
      return new KafkaRefused('overrideValidationError', { event: given, reason, reasons }, reason)
    }
    case 'processor_failed':
    case 'processor_timeout': {
      const { message, event, why } = obstacle
      const id = why === 'processor_failed' ? 'processingError' : 'processingTimeoutError'
      return new KafkaRefused(id, { dlq_id: event.dlqId, message }, `the processor failed: ${message}`)
    }
    case 'uncertain':
      return new KafkaRefused(
        'uncertainPublishError',
        { dlq_id: obstacle.dlqId, event_id: obstacle.eventId },
        'nobody knows whether the event was published: send the same again with resend=true, or discard it',
      )
    case 'doubt':
      return new KafkaRefused(
        'kafkaUnavailableError',
        {},
        `nobody knows whether the event was published: ${obstacle.message}`,
      )
    case 'kafka_away':
      return new KafkaRefused('kafkaUnavailableError', {}, `the event was not published: ${obstacle.message}`)
    case 'earlier_same_key':
    case 'processor_discards':
      throw new Error(`a call on a queue does not meet '${obstacle.why}'`)
  }
}

/** What to do with an event of nobody. Nothing else is true of it before it has a service. */
const wayOut = ({ event, reasons }: Extract<Obstacle, { why: 'guarded' }>): string =>
  reasons.includes('service_unknown')
    ? `; give it to a service with: bartleby kafka reassign ${event.dlqId} SERVICE [--topic TOPIC]`
    : ''

/** What the office says when a letter is not sent back. */
export function failureOf(obstacle: Obstacle): BartlebyError {
  switch (obstacle.why) {
    case 'busy':
      return failure('letter_service_busy', { service: obstacle.service })
    case 'earlier_same_key':
      return failure('letter_not_next', { before: obstacle.before })
    case 'guarded':
      return obstacle.reasons.includes('service_unknown')
        ? failure('letter_service_unknown', { dlqId: obstacle.event.dlqId })
        : failure('letter_guarded', { reasons: obstacle.reasons.join(', ') })
    case 'override_guarded':
      return failure('letter_guarded', { reasons: obstacle.reasons.join(', ') })
    case 'processor_failed':
    case 'processor_timeout':
      return failure('letter_processor_failed', { message: obstacle.message })
    case 'processor_discards':
      return failure('letter_processor_discards')
    case 'uncertain':
    case 'doubt':
      return failure('letter_uncertain', { eventId: obstacle.eventId })
    case 'kafka_away':
      return failure('letter_kafka_away', { reason: obstacle.message })
    case 'empty':
    case 'not_next':
      throw new Error(`a call on a letter does not meet '${obstacle.why}'`)
  }
}
