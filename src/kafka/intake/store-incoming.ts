/** Records on their way into the store: what is worked out of each before the transaction, and what is decided in it. */
import { randomUUID } from 'node:crypto'
import { storable } from '../../core/content.ts'
import type { LetterId } from '../../letters/letter.ts'
import { type DlqId, type EventFacts, type EventId, type RawRecord, UNKNOWN, type Warning } from '../event.ts'
import type { KafkaSettings } from '../settings.ts'
import { derivedDlqId, fingerprintOf, ownDlqId } from './identity.ts'
import { readEvent } from './read-event.ts'

/** A record with all that depends on nothing but itself. */
export interface Incoming {
  readonly record: RawRecord
  readonly fingerprint: Uint8Array
  /** Topic, partition and offset in one text. */
  readonly place: string
  /** The same with the fingerprint: the source id of its letter, and what makes it a duplicate. */
  readonly sourceId: string
  /** The name it brought along; null when it has none that can be used. */
  readonly ownId: DlqId | null
  readonly facts: EventFacts
}

/** A record that is new, with its name and its place in the order. */
export interface Entry extends Incoming {
  readonly dlqId: DlqId
  readonly orderTs: bigint
}

/** A record that is the next death of a letter. */
export interface Reopening {
  readonly entry: Entry
  readonly letterId: LetterId
  /** The publish that it died of. */
  readonly send: EventId
}

/** Works out what a record says. Never throws, whatever its bytes. */
export function incoming(record: RawRecord, settings: KafkaSettings): Incoming {
  const fingerprint = fingerprintOf(record)
  const place = placeOf(record.topic, record.partition, record.offset)
  return {
    record,
    fingerprint,
    place,
    sourceId: sourceIdOf(place, fingerprint),
    ownId: ownDlqId(record),
    facts: readEvent(record, settings, randomUUID),
  }
}

/** The name of a record that brings none along, or one that is taken. */
export const derivedId = ({ record, fingerprint }: Incoming): DlqId => derivedDlqId(record, fingerprint)

/** Facts with what the store knows about them. */
export const withWarnings = (facts: EventFacts, more: readonly Warning[]): EventFacts =>
  more.length === 0 ? facts : { ...facts, warnings: [...new Set([...facts.warnings, ...more])] }

/** The queue of the drawer that letters of this event lie in. */
export const queueOf = ({ service, originalTopic }: Pick<EventFacts, 'service' | 'originalTopic'>): string =>
  `${service}/${originalTopic}`

export const failedBy = ({ service }: EventFacts): string | null => (service === UNKNOWN ? null : service)

/** Correlation ids are indexed; those of consumers have 36 characters. */
const MAX_CORRELATION_BYTES = 256

/** What the office finds an event by: its own correlation id, whatever it is, or one that stands for it. */
export const correlationOf = ({ facts, dlqId }: Entry): string =>
  storable(facts.correlationId ?? '', MAX_CORRELATION_BYTES) || facts.mintedCorrelationId || dlqId

export const placeOf = (topic: string, partition: number, offset: bigint): string =>
  `${topic}:${partition}:${offset}`

/** The same with what it is: the source id of its letter. */
export const sourceIdOf = (place: string, fingerprint: Uint8Array): string =>
  `${place}:${Buffer.from(fingerprint.buffer, fingerprint.byteOffset, fingerprint.byteLength).toString('hex')}`
