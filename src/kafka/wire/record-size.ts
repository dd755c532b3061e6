/** How long a record is for a broker: what `max.message.bytes` is compared with, before compression. */
import type { OutgoingRecord, RawHeader } from '../event.ts'

/** The head of a batch, of which every record has one to itself. */
const BATCH_HEAD = 61
/** Attributes, and the distances to the batch's time and offset, which are 0. */
const RECORD_HEAD = 3

/** The bytes of a batch that holds nothing but this record. */
export function recordSize({ key, value, headers }: Omit<OutgoingRecord, 'topic'>): number {
  let body = RECORD_HEAD + fieldSize(key) + fieldSize(value) + lengthSize(headers.length)
  for (const header of headers) body += headerSize(header)
  return BATCH_HEAD + lengthSize(body) + body
}

const headerSize = ({ name, value }: RawHeader): number => fieldSize(name) + fieldSize(value)

const fieldSize = (bytes: Uint8Array | null): number =>
  bytes === null ? 1 : lengthSize(bytes.length) + bytes.length

/** Lengths are zigzag varints: one bit for the sign, then seven in each byte. */
function lengthSize(length: number): number {
  let size = 1
  for (let rest = length; rest >= 64; rest = Math.floor(rest / 128)) size++
  return size
}
