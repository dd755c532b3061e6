/** What a record is, whoever reads it and how often: its content in 32 bytes, and the id that clients call it by. */
import { hash } from 'node:crypto'
import { type DlqId, dlqId, type RawRecord } from '../event.ts'
import { isUuidV4 } from '../names.ts'
import { lastHeader } from '../wire/headers.ts'
import { bufferOf, latin1 } from '../wire/text.ts'

/** Where records of usual sizes are laid out to be hashed in one call; nothing else runs meanwhile. */
const DESK = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * SHA-256 of the record's time, key, value and headers. Byte strings have their length before them, −1 for null, so that no two
 * records are laid out alike.
 */
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

/** The id of a record that has none of its own: from its place and content, so that every reader finds the same one. */
export function derivedDlqId({ topic, partition, offset }: RawRecord, fingerprint: Uint8Array): DlqId {
  const place = `${topic}\n${partition}\n${offset}\n${bufferOf(fingerprint).toString('hex')}`
  const bytes = Buffer.from(hash('sha256', place, 'hex').slice(0, 32), 'hex')
  // A UUID says which kind it is: version 4, in the variant of RFC 4122.
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return dlqId(
    `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`,
  )
}

/** The id that its service gave the record: its event id, when that is a UUID v4; in lower case. */
export function ownDlqId({ headers }: RawRecord): DlqId | null {
  const value = lastHeader(headers, 'event_id')
  if (value == null || value.length !== 36) return null
  const text = latin1(value)
  return isUuidV4(text) ? dlqId(text.toLowerCase()) : null
}
