/**
 * Wire messages as requests of the queues. Absent text is the empty string and an absent number 0, as protobuf has it.
 *
 * Produce requests are read without building messages: 1,000 items take 0.24 ms instead of 0.55 ms in binary and 0.8 ms instead of 2.8 ms
 * in JSON. Anything unusual (unknown field, odd type, bad UTF-8, a null) yields undefined, and the protobuf library judges.
 */
import { isUtf8 } from 'node:buffer'
import { fromBinary } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { isObject } from '../../api/json-body.ts'
import type { Instant } from '../../core/clock.ts'
import { parseTimestamp, ZERO_TIME } from '../../core/timestamp.ts'
import type { ImportItem, NewItem, ProduceRequest, RetryItem } from '../queue.ts'
import { decodeMessage, decoding, type Format, instantFromWire, parseJson } from './codec.ts'
import {
  type QueueProduceItem,
  QueueProduceRequestSchema,
  type QueueProduceWithIdsItem,
  QueueProduceWithIdsRequestSchema,
  type QueueRetryItem,
  type StorageItem,
} from './queues_pb.ts'

/** `withIds` is our own variant, whose items may carry a dedupe key. */
export function produceRequest(body: Buffer, format: Format, withIds: boolean): ProduceRequest {
  const plain = decoding(() =>
    format === 'protobuf' ? producePlainBinary(body, withIds) : producePlainJson(parseJson(body), withIds),
  )
  if (plain !== undefined) return plain
  const schema = withIds ? QueueProduceWithIdsRequestSchema : QueueProduceRequestSchema
  const { queueName, requestTimeout, items } = decodeMessage(schema, body, format)
  return { queueName, requestTimeout, items: items.map(newItem) }
}

const newItem = (item: QueueProduceItem | QueueProduceWithIdsItem): NewItem =>
  itemOf({
    ...item,
    dedupeKey: 'dedupeKey' in item ? item.dedupeKey : '',
    enqueueAt: item.enqueueAt && instantFromWire(item.enqueueAt, 'enqueue_at'),
  })

export const retryItem = ({ retryAt, ...item }: QueueRetryItem): RetryItem =>
  retryAt === undefined ? item : { ...item, retryAt: instantFromWire(retryAt, 'retry_at') }

/** Without ids and the times that are never stored. */
export const importItem = ({ leaseDeadline, expireDeadline, ...item }: StorageItem): ImportItem => ({
  ...item,
  leaseDeadline: deadline(leaseDeadline, 'lease_deadline'),
  expireDeadline: deadline(expireDeadline, 'expire_deadline'),
})

/** The zero time means none. */
function deadline(timestamp: StorageItem['leaseDeadline'], field: string): Instant | null {
  if (timestamp === undefined) return null
  const at = instantFromWire(timestamp, field)
  return at === ZERO_TIME ? null : at
}

/** Fields of an item while it is read; all present, so that every item has the same hidden class. */
interface ItemFields {
  encoding: string
  kind: string
  reference: string
  bytes: Uint8Array | undefined
  utf8: string
  dedupeKey: string
  enqueueAt: NewItem['enqueueAt']
}

const noFields = (): ItemFields => ({
  encoding: '',
  kind: '',
  reference: '',
  bytes: undefined,
  utf8: '',
  dedupeKey: '',
  enqueueAt: undefined,
})

/** The payload is `bytes`, or `utf8` if that is empty. */
function itemOf(fields: ItemFields): NewItem {
  const item = {
    encoding: fields.encoding,
    kind: fields.kind,
    reference: fields.reference,
    payload: fields.bytes !== undefined && fields.bytes.length > 0 ? fields.bytes : fields.utf8,
  }
  if (fields.enqueueAt === undefined && fields.dedupeKey === '') return item
  return {
    ...item,
    ...(fields.enqueueAt === undefined ? {} : { enqueueAt: fields.enqueueAt }),
    ...(fields.dedupeKey === '' ? {} : { dedupeKey: fields.dedupeKey }),
  }
}

const text = (value: unknown): value is string => typeof value === 'string' && value.isWellFormed()

/** undefined when the library must judge. */
export function producePlainJson(json: unknown, withIds: boolean): ProduceRequest | undefined {
  if (!isObject(json)) return undefined
  let queueName: string | undefined
  let requestTimeout: string | undefined
  let items: NewItem[] | undefined
  for (const key in json) {
    const value = json[key]
    switch (key) {
      case 'queue_name':
      case 'queueName':
        if (!text(value) || queueName !== undefined) return undefined
        queueName = value
        break
      case 'request_timeout':
      case 'requestTimeout':
        if (!text(value) || requestTimeout !== undefined) return undefined
        requestTimeout = value
        break
      case 'items':
        if (!Array.isArray(value)) return undefined
        items = []
        for (const element of value) {
          const item = plainJsonItem(element, withIds)
          if (item === undefined) return undefined
          items.push(item)
        }
        break
      default:
        return undefined
    }
  }
  return { queueName: queueName ?? '', requestTimeout: requestTimeout ?? '', items: items ?? [] }
}

function plainJsonItem(json: unknown, withIds: boolean): NewItem | undefined {
  if (!isObject(json)) return undefined
  const fields = noFields()
  for (const key in json) {
    const value = json[key]
    if (!text(value)) return undefined
    switch (key) {
      case 'encoding':
      case 'kind':
      case 'reference':
      case 'utf8':
        fields[key] = value
        break
      case 'bytes':
        fields.bytes = plainBase64(value)
        if (fields.bytes === undefined) return undefined
        break
      case 'enqueue_at': {
        const parsed = parseTimestamp(value)
        if (!parsed.ok) return undefined
        fields.enqueueAt = parsed.at
        break
      }
      case 'dedupe_key':
        if (!withIds) return undefined
        fields.dedupeKey = value
        break
      default:
        return undefined
    }
  }
  return itemOf(fields)
}

/** Padded base64; Buffer skips foreign characters, which shows in the length. */
function plainBase64(value: string): Uint8Array | undefined {
  if (value.length % 4 !== 0) return undefined
  const bytes = Buffer.from(value, 'base64')
  const padding = value.endsWith('==') ? 2 : value.endsWith('=') ? 1 : 0
  return bytes.length === (value.length / 4) * 3 - padding ? bytes : undefined
}

/** Tag of a length-delimited field. */
const tag = (field: number): number => field * 8 + 2

/** undefined when the library must judge. */
export function producePlainBinary(body: Buffer, withIds: boolean): ProduceRequest | undefined {
  let queueName = ''
  let requestTimeout = ''
  const items: NewItem[] = []
  let at = 0
  while (at < body.length) {
    const field = body[at]
    const length = varint(body, at + 1)
    if (length === undefined || length.next + length.value > body.length) return undefined
    const end = length.next + length.value
    if (field === tag(3)) {
      const item = plainBinaryItem(body, length.next, end, withIds)
      if (item === undefined) return undefined
      items.push(item)
    } else {
      if (field !== tag(1) && field !== tag(2)) return undefined
      const value = shortText(body, length.next, end)
      if (value === undefined) return undefined
      if (field === tag(1)) queueName = value
      else requestTimeout = value
    }
    at = end
  }
  return { queueName, requestTimeout, items }
}

function plainBinaryItem(body: Buffer, start: number, end: number, withIds: boolean): NewItem | undefined {
  const fields = noFields()
  let at = start
  while (at < end) {
    const field = body[at]
    const length = varint(body, at + 1)
    if (length === undefined || length.next + length.value > end) return undefined
    const from = length.next
    at = from + length.value
    if (field === tag(5)) {
      fields.bytes = body.subarray(from, at)
      continue
    }
    if (field === tag(4)) {
      if (fields.enqueueAt !== undefined) return undefined
      const timestamp = timestampIn(body.subarray(from, at))
      if (timestamp === undefined) return undefined
      fields.enqueueAt = instantFromWire(timestamp, 'enqueue_at')
      continue
    }
    const value = shortText(body, from, at)
    if (value === undefined) return undefined
    if (field === tag(1)) fields.encoding = value
    else if (field === tag(2)) fields.kind = value
    else if (field === tag(3)) fields.reference = value
    else if (field === tag(6)) fields.utf8 = value
    else if (field === tag(7) && withIds) fields.dedupeKey = value
    else return undefined
  }
  return itemOf(fields)
}

function timestampIn(bytes: Uint8Array): Timestamp | undefined {
  try {
    return fromBinary(TimestampSchema, bytes)
  } catch {
    return undefined
  }
}

/** A length of up to 28 bits; undefined when longer or cut off. */
function varint(bytes: Uint8Array, at: number): { value: number; next: number } | undefined {
  let value = 0
  for (let index = 0; index < 4; index++) {
    const byte = bytes[at + index]
    if (byte === undefined) return undefined
    value |= (byte & 0x7f) << (7 * index)
    if (byte < 0x80) return { value, next: at + index + 1 }
  }
  return undefined
}

/** Short ASCII is read fastest by hand, up to about this length. */
const BY_HAND = 24

/** undefined when it is not valid UTF-8. */
function shortText(bytes: Buffer, from: number, to: number): string | undefined {
  if (to - from <= BY_HAND) {
    let text = ''
    let at = from
    for (; at < to; at++) {
      const byte = bytes[at]
      if (byte === undefined || byte >= 0x80) break
      text += String.fromCharCode(byte)
    }
    if (at === to) return text
  }
  return isUtf8(bytes.subarray(from, to)) ? bytes.toString('utf8', from, to) : undefined
}
