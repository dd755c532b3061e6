/** What attempts are made with: target, terms, parts; and what can be in the way. */
import type { Clock } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import type { LetterId, RedriveRef, Settled } from '../../../letters/letter.ts'
import type { Publisher } from '../../../outgoing/kafka/producer.ts'
import type { Database } from '../../../store/database.ts'
import type { Caller, DlqId, EventId, Reason } from '../event.ts'
import type { KafkaListener } from '../metrics.ts'
import type { Processors } from '../processors/processors.ts'
import type { KafkaSettings } from '../settings/settings.ts'
import type { StoredEvent } from '../stored-event.ts'

export interface ReturnParts {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly settings: KafkaSettings
  readonly publisher: Publisher
  readonly processors: Pick<Processors, 'decide'>
  readonly listener?: KafkaListener
  /** Unique among running servers. */
  readonly instance: string
}

/** For the store. Whoever is later still sends nothing, or is believed when the broker has it. */
const MARGIN_MS = 10_000

/** Longer than processor and publish may take together. */
export const leaseUs = ({ processorTimeoutMs, publishTimeoutMs }: KafkaSettings): bigint =>
  BigInt(processorTimeoutMs + publishTimeoutMs + MARGIN_MS) * 1_000n

/** The next event of a queue. */
export interface QueueHead {
  readonly by: 'queue'
  readonly service: string
  /** Null: all topics of the service. */
  readonly topic: string | null
  /** The next event must be this one; null: any. */
  readonly dlqId: string | null
}

/** Wherever it stands. */
export interface OneLetter {
  readonly by: 'letter'
  readonly service: string
  readonly letterId: LetterId
}

export type Target = QueueHead | OneLetter

export interface Override {
  readonly topic: string
  readonly type: string
  readonly key: string
  /** JSON as it was given; made ASCII before it is published. */
  readonly value: Uint8Array
}

export interface Terms {
  readonly caller: Caller
  /** Replaces topic, type, key and value; no processor runs. */
  readonly override: Override | null
  /** Replaces the value; no processor runs. */
  readonly edit: Uint8Array | null
  readonly mintCorrelationId: boolean
  /** Whether an uncertain event is sent again. */
  readonly resend: boolean
  /** Whether its processor may discard it. */
  readonly mayDiscard: boolean
  readonly notes: string | null
  readonly redrive?: RedriveRef | undefined
  /** Runs in the transaction that settles the publish. */
  readonly settled?: Settled | undefined
}

/** What was in the way of an attempt. Each API has its own words for it. */
export type Obstacle =
  /** Nothing is unresolved there. */
  | { readonly why: 'empty' }
  | { readonly why: 'not_next'; readonly expected: DlqId }
  /** Another event of the service was in flight for as long as a call waits. */
  | { readonly why: 'busy'; readonly service: string; readonly dlqId: DlqId | null }
  /** An unresolved event with the same key comes first. */
  | { readonly why: 'earlier_same_key'; readonly before: string }
  | { readonly why: 'guarded'; readonly event: StoredEvent; readonly reasons: readonly Reason[] }
  /** The override is not allowed, or the event's topic is one that dead events pass through. */
  | { readonly why: 'override_guarded'; readonly reasons: readonly Reason[] }
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
