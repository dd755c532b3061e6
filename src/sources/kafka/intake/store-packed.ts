/**
 * Many records as the parameters of one statement. On PostgreSQL all their bytes travel as one parameter, in binary, and the
 * statement cuts them apart: a list of byte strings would travel as text, at twice the size, and be read character by character.
 */
import { textBytes } from '../../../core/content.ts'
import type { List, Value } from '../../../store/database.ts'
import { eventKey, sameKeyOf } from '../later-same-key.ts'
import { factsBytes } from '../stored-event.ts'
import { encodeHeaders, shownBytes } from '../wire/bytes.ts'
import type { Entry, Incoming } from './store-incoming.ts'

/** What a letter and an event keep of a record, in bytes; NULL where there is nothing. */
export interface EntryBytes {
  readonly fingerprint: Uint8Array
  readonly facts: Uint8Array
  readonly headers: Uint8Array
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly key: Uint8Array | null
  /** NULL when it is empty, as letters have it, and when it is null. */
  readonly payload: Uint8Array | null
}

export const bytesOf = ({
  record,
  fingerprint,
  facts,
}: Pick<Incoming, 'record' | 'fingerprint' | 'facts'>): EntryBytes => ({
  fingerprint,
  facts: factsBytes(facts),
  headers: encodeHeaders(record.headers),
  kind: textBytes(facts.type),
  reference: record.key === null ? null : textBytes(shownBytes(record.key)),
  key: record.key,
  payload: record.value === null || record.value.length === 0 ? null : record.value,
})

/** A hash of the key; null without one. */
export function sameKeyOfRecord({ record, facts }: Pick<Incoming, 'record' | 'facts'>): bigint | null {
  const key = eventKey(record.key, facts)
  return key === null ? null : sameKeyOf(key)
}

/** In the order in which the bytes of a record follow each other, behind the fingerprint. */
const PARTS = ['facts', 'headers', 'kind', 'reference', 'key', 'payload'] as const
const FINGERPRINT_BYTES = 32

export const PACKED_PARAMETERS = 18

/**
 * PostgreSQL's query over what `packed` made, which are the parameters from `$first` on: one row for each record, numbered from 1,
 * in their order. What has no length is NULL, as `substring` has it.
 */
export function unpacked(first: number): string {
  const list = (i: number, type: string): string => `$${first + i}::${type}[]`
  const lengthsBefore = (i: number): string =>
    PARTS.slice(0, i)
      .map((part) => ` + coalesce(${part}_length, 0)`)
      .join('')
  const cut = (part: string, i: number): string =>
    `substring($${first}::bytea FROM start + ${FINGERPRINT_BYTES}${lengthsBefore(i)} FOR ${part}_length) AS ${part}`
  return `SELECT n, topic, partition, record_offset, record_ts, order_ts, same_key, dlq_id, service, original_topic, value_null,
      substring($${first}::bytea FROM start FOR ${FINGERPRINT_BYTES}) AS fingerprint, ${PARTS.map(cut).join(', ')}
    FROM unnest(${list(1, 'text')}, ${list(2, 'int')}, ${list(3, 'bigint')}, ${list(4, 'bigint')}, ${list(5, 'bigint')},
      ${list(6, 'bigint')}, ${list(7, 'uuid')}, ${list(8, 'text')}, ${list(9, 'text')}, ${list(10, 'smallint')}, ${list(11, 'int')},
      ${PARTS.map((_, i) => list(12 + i, 'int')).join(', ')}) WITH ORDINALITY
      AS given (topic, partition, record_offset, record_ts, order_ts, same_key, dlq_id, service, original_topic, value_null, start,
        ${PARTS.map((part) => `${part}_length`).join(', ')}, n)`
}

/** What goes into a statement of an entry. */
type PackedEntry = Pick<Entry, 'record' | 'facts' | 'dlqId' | 'orderTs' | 'bytes' | 'sameKey'>

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
  const list = (of: (entry: PackedEntry) => List[number]): List => entries.map(of)
  return [
    Buffer.concat(pieces),
    list(({ record }) => record.topic),
    list(({ record }) => record.partition),
    list(({ record }) => record.offset),
    list(({ record }) => record.timestampMs),
    list(({ orderTs }) => orderTs),
    list(({ sameKey }) => sameKey),
    list(({ dlqId }) => dlqId),
    list(({ facts }) => facts.service),
    list(({ facts }) => facts.originalTopic),
    list(({ record }) => (record.value === null ? 1 : 0)),
    starts,
    ...PARTS.map((part) => all.map((bytes) => bytes[part]?.length ?? null)),
  ]
}
