/** Calls on the queue of a service, by the same door as letters of the office; obstacles in the words of this API. */
import type { Caller } from '../event.ts'
import type { Resolution } from '../return/attempt.ts'
import type { Obstacle, QueueHead, Terms } from '../return/terms.ts'
import type { StoredEvent } from '../stored-event.ts'
import type { KafkaCalls } from './call.ts'
import { KafkaRefused } from './reply.ts'

type Path = Pick<KafkaCalls, 'returnPath'>
type Next = Omit<QueueHead, 'by'>

export type ResolveRequest = Next & Pick<Terms, 'caller' | 'mintCorrelationId' | 'resend' | 'override'>

/** Sends the next event back, or discards it when its processor says so. */
export async function resolveNext(
  { returnPath, settings }: Path & Pick<KafkaCalls, 'settings'>,
  { service, topic, dlqId, resend, ...asked }: ResolveRequest,
  isDryRun: boolean,
): Promise<Resolution> {
  const target: QueueHead = { by: 'queue', service, topic, dlqId }
  const terms: Terms = {
    ...asked,
    edit: null,
    resend: resend || settings.onUncertain === 'resend',
    mayDiscard: true,
    notes: null,
  }
  const ended = await (isDryRun ? returnPath.rehearse(target, terms) : returnPath.send(target, terms))
  if ('why' in ended) throw refusalOf(ended, target)
  return ended
}

export async function discardNext({ returnPath }: Path, next: Next, caller: Caller): Promise<StoredEvent> {
  const ended = await returnPath.discardNext({ by: 'queue', ...next }, caller)
  if ('why' in ended) throw refusalOf(ended, next)
  return ended
}

/** False when there is none to discard. */
export async function discardNamed({ returnPath }: Path, dlqId: string, caller: Caller): Promise<boolean> {
  const ended = await returnPath.discard(dlqId, caller)
  if (!('why' in ended)) return true
  if (ended.why === 'empty') return false
  throw refusalOf(ended, { service: '', topic: null, dlqId })
}

function refusalOf(obstacle: Obstacle, { service, topic, dlqId }: Next): KafkaRefused {
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
        // Without a topic a condition of the request failed.
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
      const { reasons } = obstacle
      const reason = `the event must not be published like this: ${reasons.join(', ')}`
      return new KafkaRefused('overrideValidationError', { event: {}, reason, reasons }, reason)
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

/** The only advice for an event of nobody. */
const wayOut = ({ event, reasons }: Extract<Obstacle, { why: 'guarded' }>): string =>
  reasons.includes('service_unknown')
    ? `; give it to a service with: bartleby kafka reassign ${event.dlqId} SERVICE [--topic TOPIC]`
    : ''
