/** What attempts to send events back are made with: which event, on what terms, for whom, how long it may be held, and what can be in the way. */
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
  /** Unique among all running servers; the same after a restart, when what it held shall be free at once. */
  readonly instance: string
}

/** For what the store takes. Who is later all the same sends nothing any more, or is believed when it knows that it arrived. */
const MARGIN_MS = 10_000

/** How long an event may be held: longer than a processor and a publish may take together. */
export const leaseUs = ({ processorTimeoutMs, publishTimeoutMs }: KafkaSettings): bigint =>
  BigInt(processorTimeoutMs + publishTimeoutMs + MARGIN_MS) * 1_000n

/** The next event of a queue. */
export interface QueueHead {
  readonly by: 'queue'
  readonly service: string
  /** null: of all topics of the service. */
  readonly topic: string | null
  /** The next event must be this one; null: whichever it is. */
  readonly dlqId: string | null
}

/** The event of one letter, wherever it stands. */
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
  /** JSON, byte for byte as it was given; made ASCII before it is published. */
  readonly value: Uint8Array
}

export interface Terms {
  readonly caller: Caller
  /** Replaces topic, type, key and value, and keeps processors out. */
  readonly override: Override | null
  /** Replaces the value, and keeps processors out. */
  readonly edit: Uint8Array | null
  readonly mintCorrelationId: boolean
  /** Whether what may have been published already is sent again. */
  readonly resend: boolean
  /** Whether the event is discarded when its processor says so. */
  readonly mayDiscard: boolean
  readonly notes: string | null
  /** The redrive that sends it; left out: none does. */
  readonly redrive?: RedriveRef | undefined
  /** Runs in the transaction that writes that it was published. */
  readonly settled?: Settled | undefined
}

/** What was in the way of an attempt. The Kafka API and the office each put it into their own words. */
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
  /** The override is not allowed, or the topic that the event names is none to come from. */
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
