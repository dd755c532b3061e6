/**
 * Writes lease replies without building messages: 1,000 items take 0.8 ms instead of 3.5 ms in JSON, and 0.7 ms instead of 1.4 to 2.3 ms in
 * binary. A test compares both outputs with the library's on random batches.
 */
import { create, toBinary } from '@bufbuild/protobuf'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import type { Instant } from '../../core/clock.ts'
import { formatTimestamp, partsFromInstant } from '../../core/timestamp.ts'
import type { LeasedBatch, LeasedItem } from '../queue.ts'

/** Defaults left out, payload in padded base64. */
export function leaseReplyJson(batch: LeasedBatch): string {
  let json = '{'
  if (batch.queueName !== '') json += `"queue_name":${JSON.stringify(batch.queueName)}`
  if (batch.partition !== 0) json += `${json.length > 1 ? ',' : ''}"partition":${batch.partition}`
  if (batch.items.length > 0) {
    json += json.length > 1 ? ',"items":[' : '"items":['
    // Items of a batch usually share one deadline, so its text is made once.
    let deadline = batch.items[0]?.leaseDeadline
    let deadlineText = deadline === undefined ? '' : formatTimestamp(deadline)
    let separator = ''
    for (const item of batch.items) {
      if (item.leaseDeadline !== deadline) {
        deadline = item.leaseDeadline
        deadlineText = formatTimestamp(deadline)
      }
      json += separator + itemJson(item, deadlineText)
      separator = ','
    }
    json += ']'
  }
  return `${json}}`
}

function itemJson(item: LeasedItem, deadlineText: string): string {
  let json = '{'
  if (item.encoding !== '') json += `"encoding":${JSON.stringify(item.encoding)},`
  if (item.kind !== '') json += `"kind":${JSON.stringify(item.kind)},`
  if (item.reference !== '') json += `"reference":${JSON.stringify(item.reference)},`
  if (item.id !== '') json += `"id":"${item.id}",`
  if (item.attempts !== 0) json += `"attempts":${item.attempts},`
  json += `"lease_deadline":"${deadlineText}"`
  if (item.payload.length > 0) json += `,"bytes":"${base64(item.payload)}"`
  return `${json}}`
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const base64 = (bytes: Uint8Array): string => asBuffer(bytes).toString('base64')

/** Sizes are counted first, so that everything is written once, in place. */
export function leaseReplyBinary(batch: LeasedBatch): Buffer {
  const deadlines = new Array<Buffer>(batch.items.length)
  const sizes = new Array<number>(batch.items.length)
  let total = textSize(batch.queueName) + intSize(batch.partition)
  let deadlineAt: Instant | undefined
  let deadline: Buffer = EMPTY
  for (let index = 0; index < batch.items.length; index++) {
    const item = batch.items[index]
    if (item === undefined) continue
    if (item.leaseDeadline !== deadlineAt) {
      deadlineAt = item.leaseDeadline
      deadline = timestamp(deadlineAt)
    }
    const size = itemSize(item) + delimitedSize(deadline.length)
    deadlines[index] = deadline
    sizes[index] = size
    total += delimitedSize(size)
  }

  const writer = new Writer(total)
  writer.text(10, batch.queueName)
  writer.int(16, batch.partition)
  for (let index = 0; index < batch.items.length; index++) {
    const item = batch.items[index]
    if (item === undefined) continue
    writer.open(26, sizes[index] ?? 0)
    writer.text(10, item.encoding)
    writer.text(18, item.kind)
    writer.text(26, item.reference)
    writer.text(34, item.id)
    writer.int(40, item.attempts)
    writer.bytes(50, deadlines[index] ?? EMPTY)
    if (item.payload.length > 0) writer.bytes(58, item.payload)
  }
  return writer.buffer
}

const EMPTY = Buffer.alloc(0)

const timestamp = (at: Instant): Buffer =>
  Buffer.from(toBinary(TimestampSchema, create(TimestampSchema, partsFromInstant(at))))

const varintSize = (value: number): number =>
  value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5

/** Tag, length and content. */
const delimitedSize = (length: number): number => 1 + varintSize(length) + length

const textSize = (value: string): number => (value === '' ? 0 : delimitedSize(Buffer.byteLength(value)))

const intSize = (value: number): number => (value === 0 ? 0 : 1 + varintSize(value))

const itemSize = (item: LeasedItem): number =>
  textSize(item.encoding) +
  textSize(item.kind) +
  textSize(item.reference) +
  textSize(item.id) +
  intSize(item.attempts) +
  (item.payload.length === 0 ? 0 : delimitedSize(item.payload.length))

/** Short ASCII is written fastest by hand; up to about this length a call of Buffer costs more than the loop. */
const BY_HAND = 32

/** Appends fields to a buffer of the exact size. Numbers are never negative. */
class Writer {
  readonly buffer: Buffer
  #at = 0

  constructor(size: number) {
    this.buffer = Buffer.allocUnsafe(size)
  }

  text(tag: number, value: string): void {
    if (value === '') return
    const length = Buffer.byteLength(value)
    this.open(tag, length)
    if (length === value.length && length <= BY_HAND) {
      for (let index = 0; index < length; index++) this.buffer[this.#at + index] = value.charCodeAt(index)
    } else {
      this.buffer.write(value, this.#at, 'utf8')
    }
    this.#at += length
  }

  bytes(tag: number, value: Uint8Array): void {
    this.open(tag, value.length)
    this.buffer.set(value, this.#at)
    this.#at += value.length
  }

  int(tag: number, value: number): void {
    if (value === 0) return
    this.open(tag, value)
  }

  /** Tag and length of what follows; a number looks the same. */
  open(tag: number, value: number): void {
    this.buffer[this.#at++] = tag
    let rest = value
    while (rest > 0x7f) {
      this.buffer[this.#at++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.buffer[this.#at++] = rest
  }
}
