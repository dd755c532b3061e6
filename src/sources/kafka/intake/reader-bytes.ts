/**
 * Bytes as Kafka writes them: big-endian numbers, variable-length numbers, lengths before contents; and what compressed batches hold, as
 * far as it fits: a batch of a few bytes may unpack to any size.
 */
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { KafkaLibrary } from '../../../outgoing/kafka/library.ts'
import { COMPRESSIONS, type Compression } from '../../../outgoing/kafka/record.ts'
import { uuidText } from '../wire/bytes.ts'

/** The bytes end before what they promise, or promise what cannot be. */
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

  /** Up to 32 bits, seven to a byte. */
  unsignedVarint(): number {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte()
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value >>> 0
    }
    throw new BytesUnreadable('a number is longer than numbers are')
  }

  /** The same with a sign, which is its lowest bit. */
  varint(): number {
    const value = this.unsignedVarint()
    return (value >>> 1) ^ -(value & 1)
  }

  /** Up to 64 bits. Most are small, and numbers are four times as fast as bigints. */
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

  /** Bytes after their length, of which −1 stands for null. */
  nullableBytes(): Buffer | null {
    const length = this.varint()
    return length === -1 ? null : this.take(length)
  }

  /** The text form of an id of 16 bytes, as the client library has it. */
  uuid(): string {
    return uuidText(this.take(16))
  }

  /** A text after its length plus one. */
  compactString(): string {
    return this.take(this.unsignedVarint() - 1).toString()
  }

  /** Things after their number plus one; none where that is zero, for null. */
  compactArray<T>(read: () => T): T[] {
    const things: T[] = []
    for (let left = this.unsignedVarint() - 1; left > 0; left--) things.push(read())
    return things
  }

  /** Fields that newer brokers add. */
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

/** A batch that grows beyond this is no batch of dead events but an attack on the memory of this server. */
export const MOST_BYTES = 268_435_456

/** The compression that has this number in the head of a batch. */
export function compressionOf(kind: number): Compression {
  const compression = COMPRESSIONS[kind]
  if (compression === undefined) throw new BytesUnreadable(`its compression has the unknown number ${kind}`)
  return compression
}

/** The content of a batch; null when it is larger than `most`. */
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
    // The library has no limit for these two, so they are measured before.
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

/** The size that a reader of snappy makes room for: each block begins with it. */
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

/** The size of a frame of LZ4, or one beyond `most` as soon as it is. What its head says may be absent, and need not be true. */
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

/** Sequences of bytes as they are, and of bytes repeated; four bits tell the length of each, and more bytes behind when it is 15. */
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
    // How far back the repeated bytes are.
    at += 2
    size += lengthFrom(token & 15) + 4
  }
  return size
}
