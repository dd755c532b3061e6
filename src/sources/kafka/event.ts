/**
 * The words of Kafka: a record, what was understood of it, and what can become of its letter.
 *
 *   record ──► pending ──► claimed ──► publishing ──► published     a retry record is on its topic
 *                ▲  ▲         │            ├───────► uncertain      nobody knows; shown, never guessed
 *                │  └─────────┴────────────┘         │              refused, failed for certain, lease run out
 *                │                 └───────────────► discarded
 *                └── the same event died again: its letter reopens, whatever its state
 *
 * In the office the first three and `uncertain` are Pending, `published` is Resolved by retry, `discarded` is Resolved by discard, or
 * Expired.
 */
import type { RawHeader } from '../../outgoing/kafka/record.ts'
import type { Integer } from '../../store/database.ts'

/** Source and engine of these letters. */
export const KAFKA = 'kafka'

/** Operations in history; each row but that of a gap has its letter. */
export const KAFKA_OPERATIONS = {
  received: 'kafka.received',
  reopened: 'kafka.reopened',
  refused: 'kafka.refused',
  processorFailed: 'kafka.processor_failed',
  published: 'kafka.published',
  publishFailed: 'kafka.publish_failed',
  uncertain: 'kafka.uncertain',
  resent: 'kafka.resent',
  discarded: 'kafka.discarded',
  reassigned: 'kafka.reassigned',
  gap: 'kafka.gap',
} as const

/** The run that gives events of nobody to their services. */
export const REASSIGNMENT = 'kafka-reassignment'

/** The service, or original topic, of letters without one. No legal name has a tilde. */
export const UNKNOWN = '~unknown'

/** One Kafka message. Null and empty differ. */
export interface RawRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** −1 when it has none. */
  readonly timestampMs: bigint
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly headers: readonly RawHeader[]
  /** The value is a whole batch, compressed as in the topic. */
  readonly packed?: PackedBatch
}

/** Too large to be unpacked. */
export interface PackedBatch {
  readonly compression: string
  /** By its own word. */
  readonly records: number
  readonly mostBytes: number
}

declare const dlqIdBrand: unique symbol
declare const eventIdBrand: unique symbol

/** How clients name a dead event: a UUID v4, its own or derived from place and content. */
export type DlqId = string & { readonly [dlqIdBrand]: true }
/** Minted for a publish: a UUID v4. */
export type EventId = string & { readonly [eventIdBrand]: true }

export const dlqId = (text: string): DlqId => text as DlqId
export const eventId = (text: string): EventId => text as EventId

/** Numbered in this order. */
export const STATE = {
  pending: 0,
  claimed: 1,
  publishing: 2,
  uncertain: 3,
  published: 4,
  discarded: 5,
} as const
export type StateName = keyof typeof STATE
export type State = (typeof STATE)[StateName]

export const STATE_NAMES = Object.keys(STATE) as readonly StateName[]

/** The store keeps nothing else. */
export const stateOf = (value: Integer): State => Number(value) as State

export const stateName = nameIn(STATE_NAMES, 'state')

function nameIn<Name extends string>(names: readonly Name[], what: string) {
  return (number: Integer): Name => {
    const name = names[Number(number)]
    if (name === undefined) throw new Error(`no ${what} has the number ${number}`)
    return name
  }
}

/** Why a letter is quarantined: it must not be published as it is. */
export const REASONS = [
  'value_not_json',
  'value_null',
  'value_not_utf8',
  'value_not_ascii',
  'value_unreadable_for_consumer',
  'key_null',
  'key_not_ascii',
  'type_missing',
  'type_not_ascii',
  'type_not_allowed',
  'original_topic_missing',
  'original_topic_invalid',
  'original_topic_not_allowed',
  'correlation_id_missing',
  'correlation_id_invalid',
  'event_id_invalid',
  'header_not_allowed',
  'header_duplicate',
  'service_unknown',
  'target_invalid',
  'too_large',
  'batch_too_large',
  'later_same_key',
] as const
export type Reason = (typeof REASONS)[number]

/** Oddities that do not keep a letter from being published. */
export const WARNINGS = [
  'value_needs_escape',
  'payload_not_object',
  'non_finite_numbers',
  'correlation_id_minted',
  'event_id_invalid',
  'original_event_id_invalid',
  'header_not_utf8',
  'header_null',
  'header_duplicate',
  'timestamp_missing',
  'too_large',
  'service_guessed',
  'position_reused',
  'duplicate_event_id',
  'duplicate_retry',
  'later_same_key',
] as const
export type Warning = (typeof WARNINGS)[number]

/** As the headers tell. */
export interface ExceptionFacts {
  readonly class?: string
  readonly message?: string
  readonly stack?: string
  readonly causeClass?: string
  readonly causeMessage?: string
}

/** Where another tool says it was read. Offsets are texts: JSON has no 64-bit integers. */
export interface Origin {
  readonly topic?: string
  readonly partition?: number
  readonly offset?: string
  readonly timestampMs?: string
  readonly consumerGroup?: string
  /** A URI, where a tool names no topic. */
  readonly destination?: string
  readonly failedAtMs?: string
}

/** What was understood of a record, kept as JSON beside the letter; the record's bytes are the truth. */
export interface EventFacts {
  /** `~unknown` without one. */
  readonly service: string
  /** `~unknown` without one. */
  readonly originalTopic: string
  /** '' without one. */
  readonly type: string
  /** As in the record, valid or not. */
  readonly correlationId: string | null
  /** Made at intake in place of a missing or unreadable one. */
  readonly mintedCorrelationId: string | null
  /** A UUID v4. */
  readonly originalEventId: string | null
  /** Generations 4 and 5: where the failed record was read. */
  readonly readFrom: { readonly topic: string; readonly partition: number; readonly offset: string } | null
  readonly exception: ExceptionFacts
  /** Whose headers these are. */
  readonly family: string | null
  readonly origin: Origin
  /** Where it failed first, unless at `origin`. */
  readonly firstOrigin?: Origin
  /** By another tool's word. */
  readonly attemptsReported: number | null
  /** `key_format: uber`: the original key, in base64. */
  readonly originalKey?: string
  readonly valueForm: 'json' | 'null' | 'other'
  readonly packed?: PackedBatch
  readonly reasons: readonly Reason[]
  readonly warnings: readonly Warning[]
  /** The letter that had this event id first. */
  readonly duplicateOf?: string
}

export interface Caller {
  /** A token's name, `token#n` for the n-th configured hash, or `system`. */
  readonly actor: string
  readonly requestId: string | null
}

export const SYSTEM: Caller = { actor: 'system', requestId: null }

/** The outcome of a publish in `kafka_sends`. */
export const SEND = { publishing: 0, uncertain: 1, published: 2, failed: 3 } as const
/** The condition of kafka_sends_unplaced: a copy may lie at an unknown place, and has not come back. */
export const UNPLACED = `(published_offset IS NULL OR resends > 0) AND reopened = 0 AND outcome <> ${SEND.failed}`
export const sendOutcomeName = nameIn(Object.keys(SEND) as readonly (keyof typeof SEND)[], 'outcome')

export const partitionKey = ({ topic, partition }: Pick<RawRecord, 'topic' | 'partition'>): string =>
  `${topic}:${partition}`
