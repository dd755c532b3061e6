/** Records on their way into the store: all that follows from the record alone, whoever reads it and how often. */
import { hash, randomUUID } from 'node:crypto'
import { storable, textBytes } from '../../../core/content.ts'
import { signatureOf } from '../../../core/signature.ts'
import { type Cause, PLAIN_RECORD } from '../../../letters/bury.ts'
import type { LetterId } from '../../../letters/letter.ts'
import type { List, Value } from '../../../store/database.ts'
import {
  type DlqId,
  dlqId,
  type EventFacts,
  type EventId,
  KAFKA,
  KAFKA_OPERATIONS,
  type RawRecord,
  SYSTEM,
  UNKNOWN,
  type Warning,
} from '../event.ts'
import { isUuidV4, type KafkaSettings } from '../settings/settings.ts'
import { eventKey, factsBytes, sameKeyOf } from '../stored-event.ts'
import { bufferOf, encodeHeaders, lastHeader, latin1, shownBytes, uuidText } from '../wire/bytes.ts'
import { readEvent } from './read-event.ts'

export interface Incoming {
  readonly record: RawRecord
  readonly fingerprint: Uint8Array
  /** Topic, partition and offset. */
  readonly place: string
  /** Place and fingerprint: equal for duplicates. */
  readonly sourceId: string
  /** Null when it brought no usable name. */
  readonly ownId: DlqId | null
  readonly facts: EventFacts
  readonly cause: Cause
  readonly bytes: EntryBytes
  /** A hash of its key; null without one. */
  readonly sameKey: bigint | null
}

/** With its name and its place in the order. */
export interface Entry extends Incoming {
  readonly dlqId: DlqId
  readonly orderTs: bigint
}

/** The next death of a letter. */
export interface Reopening {
  readonly entry: Entry
  readonly letterId: LetterId
  readonly send: EventId
}

/** Never throws, whatever the bytes. */
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
      bytes: bytesOf(record, fingerprint, facts),
      sameKey: sameKeyOfRecord({ record, facts }),
    }
  })
}

export const withFacts = (each: Incoming, facts: EventFacts): Incoming =>
  facts === each.facts ? each : { ...each, facts, bytes: { ...each.bytes, facts: factsBytes(facts) } }

/** For a record without a name, or with one that is taken. */
export const derivedId = ({ record, fingerprint }: Incoming): DlqId => derivedDlqId(record, fingerprint)

export const withWarnings = (facts: EventFacts, more: readonly Warning[]): EventFacts =>
  more.length === 0 ? facts : { ...facts, warnings: [...new Set([...facts.warnings, ...more])] }

/** Correlation ids are indexed; those of consumers have 36 characters. */
const MAX_CORRELATION_BYTES = 256

/** Its own correlation id, whatever it is, or one that stands for it. */
export const correlationOf = ({ facts, dlqId }: Entry): string =>
  storable(facts.correlationId ?? '', MAX_CORRELATION_BYTES) || facts.mintedCorrelationId || dlqId

export const placeOf = (topic: string, partition: number, offset: bigint): string =>
  `${topic}:${partition}:${offset}`

export const sourceIdOf = (place: string, fingerprint: Uint8Array): string =>
  `${place}:${bufferOf(fingerprint).toString('hex')}`

/** The class of a failure that no header explains. */
const UNKNOWN_CLASS = 'unknown'

const RECORD: Cause['record'] = {
  ...PLAIN_RECORD,
  captured: KAFKA_OPERATIONS.received,
  reopened: KAFKA_OPERATIONS.reopened,
  isSilent: true,
  actor: SYSTEM.actor,
}

/** Records that are stored together share their causes and signatures. */
function causes(): (facts: EventFacts) => Cause {
  const kinds = new Map<string, Cause>()
  return (facts) => {
    const { class: errorClass = UNKNOWN_CLASS, message: errorMessage = '', stack = null } = facts.exception
    const queue = queueOf(facts)
    const kind = JSON.stringify([queue, errorClass, errorMessage, stack])
    const known = kinds.get(kind)
    if (known !== undefined) return known
    const cause: Cause = {
      source: KAFKA,
      engine: KAFKA,
      queue,
      reason: 'failed',
      errorClass,
      errorMessage,
      errorStack: stack,
      failedBy: facts.service === UNKNOWN ? null : facts.service,
      record: RECORD,
    }
    signatureOf(cause)
    kinds.set(kind, cause)
    return cause
  }
}

/** The queue of its drawer. */
export const queueOf = ({ service, originalTopic }: Pick<EventFacts, 'service' | 'originalTopic'>): string =>
  `${service}/${originalTopic}`

/** Records of usual sizes are laid out here and hashed in one call; nothing else runs meanwhile. */
const DESK = Buffer.allocUnsafeSlow(64 * 1024)

/** SHA-256 of time, key, value and headers. Lengths come first, −1 for null, so that no two records are laid out alike. */
export function fingerprintOf({ timestampMs, key, value, headers }: RawRecord): Uint8Array {
  let length = 8 + fieldLength(key) + fieldLength(value) + 4
  for (const header of headers) length += fieldLength(header.name) + fieldLength(header.value)
  const desk = length <= DESK.length ? DESK : Buffer.allocUnsafe(length)
  let at = desk.writeBigInt64BE(BigInt.asIntN(64, timestampMs))
  at = layField(desk, key, at)
  at = layField(desk, value, at)
  at = desk.writeInt32BE(headers.length, at)
  for (const header of headers) {
    at = layField(desk, header.name, at)
    at = layField(desk, header.value, at)
  }
  // By way of hex: a buffer of its own for every digest takes twice as long.
  return Buffer.from(hash('sha256', desk.subarray(0, length), 'hex'), 'hex')
}

const fieldLength = (bytes: Uint8Array | null): number => 4 + (bytes === null ? 0 : bytes.length)

function layField(desk: Buffer, bytes: Uint8Array | null, from: number): number {
  if (bytes === null) return desk.writeInt32BE(-1, from)
  const at = desk.writeInt32BE(bytes.length, from)
  desk.set(bytes, at)
  return at + bytes.length
}

/** From place and content, so that every reader finds the same. */
export function derivedDlqId({ topic, partition, offset }: RawRecord, fingerprint: Uint8Array): DlqId {
  const place = `${topic}\n${partition}\n${offset}\n${bufferOf(fingerprint).toString('hex')}`
  const bytes = Buffer.from(hash('sha256', place, 'hex').slice(0, 32), 'hex')
  // Version 4, in the variant of RFC 4122.
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  return dlqId(uuidText(bytes))
}

/** Its event id, if that is a UUID v4; in lower case. */
export function ownDlqId({ headers }: RawRecord): DlqId | null {
  const value = lastHeader(headers, 'event_id')
  if (value == null || value.length !== 36) return null
  const text = latin1(value)
  return isUuidV4(text) ? dlqId(text.toLowerCase()) : null
}

/** What letter and event keep of a record; null for nothing. */
interface EntryBytes {
  readonly fingerprint: Uint8Array
  readonly facts: Uint8Array
  readonly headers: Uint8Array
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly key: Uint8Array | null
  /** Null when it is empty, as letters have it, and when it is null. */
  readonly payload: Uint8Array | null
}

export const bytesOf = (record: RawRecord, fingerprint: Uint8Array, facts: EventFacts): EntryBytes => ({
  fingerprint,
  facts: factsBytes(facts),
  headers: encodeHeaders(record.headers),
  kind: textBytes(facts.type),
  reference: record.key === null ? null : textBytes(shownBytes(record.key)),
  key: record.key,
  payload: record.value === null || record.value.length === 0 ? null : record.value,
})

export function sameKeyOfRecord({ record, facts }: Pick<Incoming, 'record' | 'facts'>): bigint | null {
  const key = eventKey(record.key, facts)
  return key === null ? null : sameKeyOf(key)
}

type PackedEntry = Pick<Entry, 'record' | 'facts' | 'dlqId' | 'orderTs' | 'bytes' | 'sameKey'>

/** Columns that travel as lists, with their PostgreSQL types. */
const COLUMNS: readonly (readonly [name: string, type: string, of: (entry: PackedEntry) => List[number]])[] =
  [
    ['topic', 'text', ({ record }) => record.topic],
    ['partition', 'int', ({ record }) => record.partition],
    ['record_offset', 'bigint', ({ record }) => record.offset],
    ['record_ts', 'bigint', ({ record }) => record.timestampMs],
    ['order_ts', 'bigint', ({ orderTs }) => orderTs],
    ['same_key', 'bigint', ({ sameKey }) => sameKey],
    ['dlq_id', 'uuid', ({ dlqId }) => dlqId],
    ['service', 'text', ({ facts }) => facts.service],
    ['original_topic', 'text', ({ facts }) => facts.originalTopic],
    ['value_null', 'smallint', ({ record }) => (record.value === null ? 1 : 0)],
  ]

/** In the order in which they follow the fingerprint. */
const PARTS = ['facts', 'headers', 'kind', 'reference', 'key', 'payload'] as const
const FINGERPRINT_BYTES = 32

/** All bytes, the lists, and the beginnings and lengths of the parts. */
export const PACKED_PARAMETERS = 1 + COLUMNS.length + 1 + PARTS.length

/**
 * PostgreSQL's query over the parameters of `packed`, from `$first` on: one row a record, numbered from 1. A part without length is NULL.
 */
export function unpacked(first: number): string {
  const names = COLUMNS.map(([name]) => name).join(', ')
  const lengths = PARTS.map((part) => `${part}_length`)
  const types = [...COLUMNS.map(([, type]) => type), 'int', ...lengths.map(() => 'int')]
  const cut = (part: string, i: number): string => {
    const before = lengths.slice(0, i).map((length) => ` + coalesce(${length}, 0)`)
    return `substring($${first}::bytea FROM start + ${FINGERPRINT_BYTES}${before.join('')} FOR ${part}_length) AS ${part}`
  }
  return `SELECT n, ${names}, substring($${first}::bytea FROM start FOR ${FINGERPRINT_BYTES}) AS fingerprint, ${PARTS.map(cut).join(', ')}
    FROM unnest(${types.map((type, i) => `$${first + 1 + i}::${type}[]`).join(', ')}) WITH ORDINALITY
      AS given (${names}, start, ${lengths.join(', ')}, n)`
}

/**
 * Many records as the parameters of one statement. On PostgreSQL all bytes are one binary parameter, which the statement cuts apart: a list
 * of byte strings would travel as text, at twice the size.
 */
export function packed(entries: readonly PackedEntry[]): Value[] {
  const all = entries.map(({ bytes }) => bytes)
  const pieces: Uint8Array[] = []
  const starts: number[] = []
  let end = 1
  for (const bytes of all) {
    starts.push(end)
    for (const piece of [bytes.fingerprint, ...PARTS.map((part) => bytes[part])]) {
      if (piece === null) continue
      pieces.push(piece)
      end += piece.length
    }
  }
  return [
    Buffer.concat(pieces),
    ...COLUMNS.map(([, , of]): List => entries.map(of)),
    starts,
    ...PARTS.map((part) => all.map((bytes) => bytes[part]?.length ?? null)),
  ]
}
