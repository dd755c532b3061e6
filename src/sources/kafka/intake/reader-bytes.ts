/** Bytes as Kafka writes them, and batches unpacked within a limit: a batch of a few bytes may unpack to any size. */
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { KafkaLibrary } from '../../../outgoing/kafka/library.ts'
import { COMPRESSIONS, type Compression } from '../../../outgoing/kafka/record.ts'
import { uuidText } from '../wire/bytes.ts'

export class BytesUnreadable extends Error {
  override readonly name = 'BytesUnreadable'
}

export class Cursor {
  readonly bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.bytes = bytes
  }

  int8(): number {
    return this.bytes.readInt8(this.#advance(1))
  }

  int16(): number {
    return this.bytes.readInt16BE(this.#advance(2))
  }

  int32(): number {
    return this.bytes.readInt32BE(this.#advance(4))
  }

  uint32(): number {
    return this.bytes.readUInt32BE(this.#advance(4))
  }

  int64(): bigint {
    return this.bytes.readBigInt64BE(this.#advance(8))
  }

  /** Seven bits to a byte. */
  unsignedVarint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte()
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value >>> 0
    }
    throw new BytesUnreadable('a number is longer than numbers are')
  }

  /** The sign is the lowest bit. */
  varint(): number {
    const value = this.unsignedVarint()
    return (value >>> 1) ^ -(value & 1)
  }

  /** Most are small, and numbers are four times as fast as bigints. */
  varlong(): bigint {
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte()
      low |= (byte & 0x7f) << shift
      if (byte < 0x80) return BigInt((low >>> 1) ^ -(low & 1))
    }
    let value = BigInt(low)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n))
    }
    throw new BytesUnreadable('a number is longer than numbers are')
  }

  /** Not copied. */
  take(length: number): Buffer {
    if (length < 0) throw new BytesUnreadable('a length is negative')
    const start = this.#advance(length)
    return this.bytes.subarray(start, this.at)
  }

  /** Length first; −1 is null. */
  nullableBytes(): Buffer | null {
    const length = this.varint()
    return length === -1 ? null : this.take(length)
  }

  uuid(): string {
    return uuidText(this.take(16))
  }

  /** Length plus one first. */
  compactString(): string {
    return this.take(this.unsignedVarint() - 1).toString()
  }

  /** Count plus one first; zero is null. */
  compactArray<T>(read: () => T): T[] {
    const things: T[] = []
    for (let left = this.unsignedVarint() - 1; left > 0; left--) things.push(read())
    return things
  }

  /** Fields of newer brokers. */
  skipTags(): void {
    for (let left = this.unsignedVarint(); left > 0; left--) {
      this.unsignedVarint()
      this.take(this.unsignedVarint())
    }
  }

  #advance(length: number): number {
    const start = this.at
    if (length > this.bytes.length - start) throw new BytesUnreadable('it ends too early')
    this.at = start + length
    return start
  }

  #byte(): number {
    const byte = this.bytes[this.at]
    if (byte === undefined) throw new BytesUnreadable('it ends too early')
    this.at += 1
    return byte
  }
}

/** More than this is no batch of dead events but an attack on the server's memory. */
export const MOST_BYTES = 268_435_456

export function compressionOf(kind: number): Compression {
  const compression = COMPRESSIONS[kind]
  if (compression === undefined) throw new BytesUnreadable(`its compression has the unknown number ${kind}`)
  return compression
}

/** Null when the content is larger than `most`. */
export function unpack(
  { compressionsAlgorithms: { snappy, lz4 } }: Pick<KafkaLibrary, 'compressionsAlgorithms'>,
  compression: Compression,
  content: Buffer,
  most: number,
): Buffer | null {
  switch (compression) {
    case 'none':
      return content
    case 'gzip':
      return within(() => gunzipSync(content, { maxOutputLength: most }))
    case 'zstd':
      return within(() => zstdDecompressSync(content, { maxOutputLength: most }))
    // The library has no limit for these two, so they are measured first.
    case 'snappy':
      return snappySize(content) > most ? null : snappy.decompressSync(content)
    case 'lz4':
      return lz4Size(content, most) > most ? null : lz4.decompressSync(content)
  }
}

function within(decompress: () => Buffer): Buffer | null {
  try {
    return decompress()
  } catch (error) {
    if (error instanceof RangeError && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') return null
    throw error
  }
}

/** Java's clients write blocks of snappy, each after its length, behind a head of 16 bytes that begins so. */
const SNAPPY_JAVA = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const SNAPPY_JAVA_HEAD = 16

/** Each block begins with its size. */
function snappySize(content: Buffer): number {
  if (!content.subarray(0, SNAPPY_JAVA.length).equals(SNAPPY_JAVA)) return snappyBlockSize(content, 0)
  let size = 0
  for (let at = SNAPPY_JAVA_HEAD; at + 4 < content.length; at += 4 + content.readUInt32BE(at)) {
    size += snappyBlockSize(content, at + 4)
  }
  return size
}

function snappyBlockSize(content: Buffer, start: number): number {
  let size = 0
  for (let i = 0; i < 5; i++) {
    const byte = content[start + i] ?? 0
    // Not by shifts: the fifth byte reaches beyond 32 bits.
    size += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) break
  }
  return size
}

const LZ4_HEAD = 7
const LZ4_HAS_BLOCK_SUMS = 0b1_0000
const LZ4_HAS_SIZE = 0b1000
const LZ4_HAS_DICTIONARY = 0b1
const LZ4_IS_PLAIN = 0x8000_0000

/** Stops beyond `most`. The size in the head may be absent or untrue. */
function lz4Size(content: Buffer, most: number): number {
  const flags = content[4] ?? 0
  const sums = (flags & LZ4_HAS_BLOCK_SUMS) === 0 ? 0 : 4
  let at = LZ4_HEAD + ((flags & LZ4_HAS_SIZE) === 0 ? 0 : 8) + ((flags & LZ4_HAS_DICTIONARY) === 0 ? 0 : 4)
  let size = 0
  while (at + 4 <= content.length && size <= most) {
    const head = content.readUInt32LE(at)
    const length = head & ~LZ4_IS_PLAIN
    if (length === 0) break
    const block = content.subarray(at + 4, at + 4 + length)
    size += (head & LZ4_IS_PLAIN) === 0 ? lz4BlockSize(block) : block.length
    at += 4 + length + sums
  }
  return size
}

/** Literals and repeats in turn; four bits each for their lengths, more bytes behind when these are 15. */
function lz4BlockSize(block: Buffer): number {
  let size = 0
  let at = 0
  const lengthFrom = (bits: number): number => {
    let length = bits
    if (bits === 15) {
      let more = 255
      while (more === 255 && at < block.length) {
        more = block[at++] ?? 0
        length += more
      }
    }
    return length
  }
  while (at < block.length) {
    const token = block[at++] ?? 0
    const plain = lengthFrom(token >> 4)
    size += plain
    at += plain
    if (at >= block.length) break
    // The distance of the repeat.
    at += 2
    size += lengthFrom(token & 15) + 4
  }
  return size
}
