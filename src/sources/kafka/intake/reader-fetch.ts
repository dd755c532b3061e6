/**
 * Fetches batches and decodes them. The library stops at the first batch it cannot read and loses the whole answer, checks no checksum,
 * hands out records of aborted transactions when their end is in another answer, and ignores topics whose time is the broker's.
 */
import type { Connection } from '@platformatic/kafka'
import type { KafkaLibrary } from '../../../outgoing/kafka/library.ts'
import type { RawHeader } from '../../../outgoing/kafka/record.ts'
import type { RawRecord } from '../event.ts'
import { BytesUnreadable, Cursor, compressionOf, MOST_BYTES, unpack } from './reader-bytes.ts'

/** From 13 on topics go by id, so that a recreated one is told from the old. */
export const FETCH_VERSIONS = [17, 16, 15, 14, 13, 12] as const
type FetchVersion = (typeof FETCH_VERSIONS)[number]
export const FETCH_KEY = 1

const READ_COMMITTED = 1
const MAX_WAIT_MS = 500
/** Per partition; a larger batch comes alone. As fast as all of `fetch_max_bytes`, in less memory. */
const PARTITION_BYTES = 4_194_304
/** Every request says all that it wants. */
const NO_SESSION = { id: 0, epoch: -1 } as const

interface PartitionAsk {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly offset: bigint
}

/** Throws the answer's error code when the whole request was wrong. */
export async function fetchPartitions(
  library: KafkaLibrary,
  connection: Connection,
  version: FetchVersion,
  asks: readonly PartitionAsk[],
  maxBytes: number,
): Promise<readonly PartitionAnswer[]> {
  const byName = version < 13
  const idOf = ({ topic, topicId }: PartitionAsk): string => (byName ? topic : topicId)
  const names = new Map(asks.map((ask) => [idOf(ask), ask.topic]))
  const topics = [...Map.groupBy(asks, idOf)].map(([topicId, of]) => ({
    topicId,
    partitions: of.map(({ partition, offset }) => ({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: offset,
      lastFetchedEpoch: -1,
      partitionMaxBytes: Math.min(maxBytes, PARTITION_BYTES),
    })),
  }))
  const { promise, resolve, reject } = Promise.withResolvers<FetchAnswer>()
  connection.send<FetchAnswer>(
    FETCH_KEY,
    version,
    () =>
      library[`fetchV${version}`].createRequest(
        MAX_WAIT_MS,
        1,
        maxBytes,
        READ_COMMITTED,
        NO_SESSION.id,
        NO_SESSION.epoch,
        topics,
        [],
        '',
      ),
    (_correlation, _key, _version, reader) =>
      parse(new Cursor(reader.buffer.slice(reader.position)), byName, names),
    true,
    true,
    (error, answer) => (error || answer === undefined ? reject(error) : resolve(answer)),
  )
  const { errorCode, partitions } = await promise
  if (errorCode !== 0) throw new library.ProtocolError(errorCode)
  return partitions
}

type FetchAnswer = ReturnType<typeof parse>

function parse(cursor: Cursor, byName: boolean, names: ReadonlyMap<string, string>) {
  cursor.int32()
  const errorCode = cursor.int16()
  cursor.int32()
  const topics = cursor.compactArray(() => {
    const id = byName ? cursor.compactString() : cursor.uuid()
    const partitions = cursor.compactArray(() => parsePartition(cursor, names.get(id) ?? ''))
    cursor.skipTags()
    return partitions
  })
  return { errorCode, partitions: topics.flat() }
}

export type PartitionAnswer = Readonly<ReturnType<typeof parsePartition>>

function parsePartition(cursor: Cursor, topic: string) {
  const partition = cursor.int32()
  const errorCode = cursor.int16()
  // The end of the log, and its beginning: negative if unknown.
  const end = cursor.int64()
  // The last stable offset: nothing beyond it is given.
  cursor.int64()
  const begin = cursor.int64()
  // Skipped from this offset on, until the transaction's end.
  const aborted = cursor.compactArray(() => {
    const one = { producerId: cursor.int64(), firstOffset: cursor.int64() }
    cursor.skipTags()
    return one
  })
  // A nearer replica; the leader is always right.
  cursor.int32()
  const length = cursor.unsignedVarint()
  const batches = cursor.take(Math.max(0, length - 1))
  cursor.skipTags()
  return { topic, partition, errorCode, end, begin, aborted, batches }
}

/** Batches may begin before `from`. */
type PartitionBytes = Pick<PartitionAnswer, 'topic' | 'partition' | 'batches' | 'aborted'> & {
  readonly from: bigint
}

interface DecodedBatch {
  readonly records: readonly RawRecord[]
  /** The offset behind the batch. */
  readonly next: bigint
}

/** Reading stops before it: nothing is skipped. */
export class BatchUnreadable extends Error {
  override readonly name = 'BatchUnreadable'
  readonly offset: bigint
  /** The offset behind it; null if unknown. */
  readonly next: bigint | null

  constructor(offset: bigint, next: bigint | null, why: string) {
    super(why)
    this.offset = offset
    this.next = next
  }
}

const LENGTH_AT = 8
const MAGIC_AT = 16
const CHECKED_AT = 21
const HEAD_LENGTH = 61
const MAGIC = 2

const COMPRESSION = 0b111
const LOG_APPEND_TIME = 0b1000
const TRANSACTIONAL = 0b1_0000
const CONTROL = 0b10_0000
const ABORT = 0

/** The offset behind the last whole batch; `from` when there is none. Stops at a broken one. */
export function nextOffset({ from, batches }: Pick<PartitionBytes, 'from' | 'batches'>): bigint {
  let next = from
  try {
    for (const head of heads(batches)) next = head.baseOffset + BigInt(head.lastOffsetDelta) + 1n
  } catch (error) {
    if (!(error instanceof BatchUnreadable)) throw error
  }
  return next
}

/** Decodes batch by batch, on demand. A batch that unpacks to more than `most` bytes is one record that holds the batch as it is. */
export function* decodeBatches(
  library: Pick<KafkaLibrary, 'crc32c' | 'compressionsAlgorithms'>,
  { topic, partition, from, batches, aborted }: PartitionBytes,
  most = MOST_BYTES,
): Generator<DecodedBatch> {
  const toCome = [...aborted].sort((a, b) => (a.firstOffset < b.firstOffset ? -1 : 1))
  const ignored = new Set<bigint>()
  for (const head of heads(batches)) {
    const { baseOffset, attributes, producerId, content } = head
    const next = baseOffset + BigInt(head.lastOffsetDelta) + 1n
    try {
      if (head.magic !== MAGIC) throw new BytesUnreadable(`it is of format ${head.magic}`)
      const checked = batches.subarray(head.start + CHECKED_AT, head.end)
      if (library.crc32c(checked) !== head.crc) throw new BytesUnreadable('its checksum is wrong')
      for (let first = toCome[0]; first !== undefined && first.firstOffset < next; first = toCome[0]) {
        ignored.add(first.producerId)
        toCome.shift()
      }
      const records: RawRecord[] = []
      if ((attributes & CONTROL) !== 0) {
        if (markerKind(content) === ABORT) ignored.delete(producerId)
      } else if ((attributes & TRANSACTIONAL) === 0 || !ignored.has(producerId)) {
        const compression = compressionOf(attributes & COMPRESSION)
        const unpacked = unpack(library, compression, content, most)
        if (unpacked === null) {
          // Its last offset: the only one that is certainly not before `from`.
          const place = { topic, partition, offset: next - 1n, timestampMs: head.maxTimestamp }
          const packed = { compression, records: head.count, mostBytes: most }
          const value = batches.subarray(head.start, head.end)
          records.push({ ...place, key: null, value, headers: [], packed })
        } else {
          const cursor = new Cursor(unpacked)
          const brokersTime = (attributes & LOG_APPEND_TIME) === 0 ? null : head.maxTimestamp
          for (let left = head.count; left > 0; left--) {
            const record = readRecord(cursor, topic, partition, head, brokersTime)
            if (record.offset >= from) records.push(record)
          }
        }
      }
      yield { records, next }
    } catch (error) {
      if (error instanceof BatchUnreadable) throw error
      throw new BatchUnreadable(baseOffset, next, error instanceof Error ? error.message : String(error))
    }
  }
}

/** Brokers cut the last batch where the answer is full. */
function* heads(batches: Buffer): Generator<Head> {
  for (let start = 0; batches.length - start >= HEAD_LENGTH; ) {
    const end = start + LENGTH_AT + 4 + batches.readInt32BE(start + LENGTH_AT)
    if (end > batches.length) return
    if (end - start < HEAD_LENGTH)
      throw new BatchUnreadable(batches.readBigInt64BE(start), null, 'it is shorter than its head')
    yield headAt(batches, start, end)
    start = end
  }
}

type Head = ReturnType<typeof headAt>

function headAt(batches: Buffer, start: number, end: number) {
  const cursor = new Cursor(batches.subarray(start, end))
  const baseOffset = cursor.int64()
  cursor.at = MAGIC_AT
  const head = {
    magic: cursor.int8(),
    crc: cursor.uint32(),
    attributes: cursor.int16(),
    lastOffsetDelta: cursor.int32(),
    firstTimestamp: cursor.int64(),
    maxTimestamp: cursor.int64(),
    producerId: cursor.int64(),
  }
  cursor.at += 6
  const content = batches.subarray(start + HEAD_LENGTH, end)
  return { start, end, baseOffset, ...head, count: cursor.int32(), content }
}

function readRecord(
  cursor: Cursor,
  topic: string,
  partition: number,
  { baseOffset, firstTimestamp }: Head,
  brokersTime: bigint | null,
): RawRecord {
  const end = cursor.varint() + cursor.at
  cursor.int8()
  const timestampMs = firstTimestamp + cursor.varlong()
  const offset = baseOffset + BigInt(cursor.varint())
  const key = cursor.nullableBytes()
  const value = cursor.nullableBytes()
  const headers: RawHeader[] = []
  for (let left = cursor.varint(); left > 0; left--) {
    headers.push({ name: cursor.nullableBytes() ?? Buffer.alloc(0), value: cursor.nullableBytes() })
  }
  if (cursor.at !== end) throw new BytesUnreadable('a record is not as long as it says')
  return { topic, partition, offset, timestampMs: brokersTime ?? timestampMs, key, value, headers }
}

/** The key of a control record is a version and a kind. */
function markerKind(content: Buffer): number {
  const cursor = new Cursor(content)
  cursor.varint()
  cursor.int8()
  cursor.varlong()
  cursor.varint()
  const key = cursor.nullableBytes()
  return key !== null && key.length >= 4 ? key.readInt16BE(2) : -1
}
