/** Walks through bytes as Kafka writes them: big-endian numbers, variable-length numbers, lengths before contents. */

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

  get left(): number {
    return this.bytes.length - this.at
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
    const hex = this.take(16).toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
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
