/** Whether a record is too large to be published again, as it would be published. */
import type { JsonScan } from '../../core/json/scan.ts'
import { isStrippedHeader } from '../dialects/families.ts'
import type { RawHeader, RawRecord } from '../event.ts'
import type { KafkaService, KafkaSettings } from '../settings.ts'
import { escapeNonAscii } from '../wire/json.ts'
import { recordSize } from '../wire/record-size.ts'
import { latin1 } from '../wire/text.ts'

interface Read {
  readonly record: RawRecord
  /** The key that goes out. */
  readonly key: Uint8Array | null
  readonly ways: Pick<KafkaService, 'profile' | 'stripHeaders'>
  readonly family: string | null
  readonly originalTopic: string
  readonly type: string
  readonly scan: JsonScan | null
}

/** Escapes make of a character of two bytes six, and of one of four bytes twelve. */
const GROWTH = 3
/** More than what is around one field. */
const FIELD = 16
/** More than what stands around and before the fields. */
const HEAD = 256

/** A UUID. */
const ID = Buffer.alloc(36)

/** Says so of the record that goes out: with the headers of its profile, and escaped where it will be. */
export function isTooLarge(read: Read, settings: KafkaSettings): boolean {
  return atMost(read) > settings.maxMessageBytes && sizeOf(read) > settings.maxMessageBytes
}

/** No less than its size, and cheap: nearly every record is far below the limit. */
function atMost({ record: { value, headers }, key, originalTopic, type }: Read): number {
  let size = HEAD + (key?.length ?? 0) + (value?.length ?? 0) * GROWTH + originalTopic.length + type.length
  for (const header of headers) size += FIELD + header.name.length + (header.value?.length ?? 0)
  return size
}

function sizeOf({ record, key, ways, family, originalTopic, type, scan }: Read): number {
  if (ways.profile === 'generic') {
    const stays = ({ name }: RawHeader): boolean => !isStrippedHeader(family, latin1(name), ways.stripHeaders)
    return recordSize({ key, value: record.value, headers: record.headers.filter(stays) })
  }
  const value = record.value !== null && scan?.ok ? escapeNonAscii(record.value) : record.value
  return recordSize({
    key,
    value,
    headers: [
      header('original_topic', Buffer.from(originalTopic)),
      header('type', Buffer.from(type)),
      header('event_id', ID),
      header('correlation_id', ID),
    ],
  })
}

const header = (name: string, value: Uint8Array): RawHeader => ({ name: Buffer.from(name), value })
