/** Records on their way into the store: what is worked out of each before the transaction, and what is decided in it. */
import { randomUUID } from 'node:crypto'
import { storable } from '../../core/content.ts'
import type { Cause } from '../../letters/bury.ts'
import type { LetterId } from '../../letters/letter.ts'
import type { DlqId, EventFacts, EventId, RawRecord, Warning } from '../event.ts'
import type { KafkaSettings } from '../settings.ts'
import { factsBytes } from '../stored-event.ts'
import { causes } from './cause.ts'
import { derivedDlqId, fingerprintOf, ownDlqId } from './identity.ts'
import { readEvent } from './read-event.ts'
import { bytesOf, type EntryBytes, sameKeyOfRecord } from './store-packed.ts'

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
  readonly cause: Cause
  /** What is kept of it. */
  readonly bytes: EntryBytes
  /** A hash of its key; null without one. */
  readonly sameKey: bigint | null
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

/** Works out what records say that are stored together. Never throws, whatever their bytes. */
export function incoming(records: readonly RawRecord[], settings: KafkaSettings): readonly Incoming[] {
  const causeOf = causes()
  return records.map((record) => {
    const fingerprint = fingerprintOf(record)
    const place = placeOf(record.topic, record.partition, record.offset)
    const facts = readEvent(record, settings, randomUUID)
    return {
      record,
      fingerprint,
      place,
      sourceId: sourceIdOf(place, fingerprint),
      ownId: ownDlqId(record),
      facts,
      cause: causeOf(facts),
      bytes: bytesOf({ record, fingerprint, facts }),
      sameKey: sameKeyOfRecord({ record, facts }),
    }
  })
}

/** The same record with what the store knows about it. */
export const withFacts = (each: Incoming, facts: EventFacts): Incoming =>
  facts === each.facts ? each : { ...each, facts, bytes: { ...each.bytes, facts: factsBytes(facts) } }

/** The name of a record that brings none along, or one that is taken. */
export const derivedId = ({ record, fingerprint }: Incoming): DlqId => derivedDlqId(record, fingerprint)

/** Facts with what the store knows about them. */
export const withWarnings = (facts: EventFacts, more: readonly Warning[]): EventFacts =>
  more.length === 0 ? facts : { ...facts, warnings: [...new Set([...facts.warnings, ...more])] }

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
