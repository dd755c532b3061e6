import { randomBytes } from 'node:crypto'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import * as library from '@platformatic/kafka'
import { describe, expect, it } from 'vitest'
import { text } from '../../../../test/world/kafka/memory-store.ts'
import { BatchUnreadable, decodeBatches, nextOffset, type PartitionAnswer } from './reader-fetch.ts'

interface BatchOptions {
  readonly base?: bigint
  readonly attributes?: number
  readonly producerId?: bigint
}

const HEAD = 61
const TRANSACTIONAL = 0b1_0000
const CONTROL = 0b10_0000

/** A batch as the library writes it, with what it does not write put in afterwards. */
function batch(
  values: readonly string[],
  { base = 0n, attributes = 0, producerId = -1n }: BatchOptions = {},
): Buffer {
  const messages = values.map((value) => ({ topic: 't', value: Buffer.from(value), timestamp: 1_000n }))
  const bytes = Buffer.from(library.createRecordsBatch(messages, { producerId }).buffer)
  bytes.writeBigInt64BE(base, 0)
  bytes.writeInt16BE(attributes, 21)
  return sealed(bytes)
}

function sealed(bytes: Buffer): Buffer {
  bytes.writeUInt32BE(library.crc32c(bytes.subarray(21)), 17)
  return bytes
}

/** What ends a transaction: 0 aborts it, 1 commits it. */
function marker(base: bigint, producerId: bigint, kind: 0 | 1): Buffer {
  const key = Buffer.from([0, 0, 0, kind])
  const value = Buffer.alloc(6)
  const message = { topic: 't', key, value, timestamp: 1_000n }
  const bytes = Buffer.from(library.createRecordsBatch([message], { producerId }).buffer)
  bytes.writeBigInt64BE(base, 0)
  bytes.writeInt16BE(TRANSACTIONAL | CONTROL, 21)
  return sealed(bytes)
}

interface Reading {
  readonly from?: bigint
  readonly aborted?: PartitionAnswer['aborted']
  readonly most?: number
}
const decode = (batches: Buffer, { from = 0n, aborted = [], most }: Reading = {}) =>
  decodeBatches(library, { topic: 't', partition: 0, from, batches, aborted }, most)
const valuesOf = (...given: Parameters<typeof decode>) =>
  [...decode(...given)].flatMap(({ records }) => records.map(({ value }) => text(value)))

describe('batches', () => {
  it('give their records from where reading goes on', () => {
    const bytes = Buffer.concat([batch(['0', '1', '2']), batch(['3'], { base: 3n })])
    expect(valuesOf(bytes)).toEqual(['0', '1', '2', '3'])
    expect(valuesOf(bytes, { from: 2n })).toEqual(['2', '3'])
    expect([...decode(bytes)].map(({ next }) => next)).toEqual([3n, 4n])
    expect(nextOffset({ from: 0n, batches: bytes })).toBe(4n)
  })

  it('are left alone when the answer ends in the middle of one', () => {
    const whole = batch(['0'])
    for (const length of [0, 5, HEAD - 1, HEAD, whole.length - 1]) {
      const bytes = Buffer.concat([whole, batch(['1'], { base: 1n }).subarray(0, length)])
      expect(valuesOf(bytes)).toEqual(['0'])
      expect(nextOffset({ from: 0n, batches: bytes })).toBe(1n)
    }
    expect(nextOffset({ from: 7n, batches: Buffer.alloc(0) })).toBe(7n)
  })

  const broken: readonly (readonly [string, (bytes: Buffer) => Buffer, string])[] = [
    ['a wrong checksum', (bytes) => Buffer.from(bytes.fill(1, bytes.length - 1)), 'checksum'],
    ['an old format', (bytes) => Buffer.from(bytes.fill(1, 16, 17)), 'format 1'],
    ['an unknown compression', (bytes) => sealed(bytes.fill(7, 22, 23)), 'unknown number 7'],
    [
      'bytes that are not compressed as it says',
      (bytes) => sealed(bytes.fill(1, 22, 23)),
      'incorrect header check',
    ],
    ['more records than it holds', (bytes) => sealed(bytes.fill(9, HEAD - 1, HEAD)), 'ends too early'],
    [
      'a record of another length',
      (bytes) => sealed(bytes.fill(2, HEAD, HEAD + 1)),
      'not as long as it says',
    ],
    ['a length that cannot be', (bytes) => bytes.fill(0, 8, 12), 'shorter than its head'],
  ]
  it.each(broken)('with %s stop reading there', (_, damage, why) => {
    const bytes = Buffer.concat([batch(['0']), damage(batch(['1'], { base: 1n }))])
    const read: (string | null)[] = []
    const reading = () => {
      for (const { records } of decode(bytes)) read.push(...records.map(({ value }) => text(value)))
    }
    expect(reading).toThrow(BatchUnreadable)
    expect(reading).toThrow(expect.objectContaining({ offset: 1n, message: expect.stringContaining(why) }))
    expect(read).toEqual(['0', '0'])
    expect(() => nextOffset({ from: 0n, batches: bytes })).not.toThrow()
  })

  const { snappy, lz4 } = library.compressionsAlgorithms
  const KINDS = [
    { name: 'gzip', kind: 1, compress: gzipSync },
    { name: 'snappy', kind: 2, compress: (bytes: Buffer) => snappy.compressSync(bytes) },
    { name: 'lz4', kind: 3, compress: (bytes: Buffer) => lz4.compressSync(bytes) },
    { name: 'zstd', kind: 4, compress: zstdCompressSync },
  ] as const

  /** The same batch, compressed. */
  function compressed(
    plain: Buffer,
    { kind, compress }: Pick<(typeof KINDS)[number], 'kind' | 'compress'>,
  ): Buffer {
    return repacked(plain, kind, compress(plain.subarray(HEAD)))
  }

  function repacked(plain: Buffer, kind: number, content: Uint8Array): Buffer {
    const bytes = Buffer.concat([plain.subarray(0, HEAD), content])
    bytes.writeInt32BE(bytes.length - 12, 8)
    bytes.writeInt16BE(kind, 21)
    return sealed(bytes)
  }

  it.each(KINDS)('compressed with $name are read up to what a batch may grow to', (how) => {
    for (const large of ['x'.repeat(200_000), randomBytes(100_000).toString('hex')]) {
      const plain = batch([large, 'small'], { base: 5n })
      const bytes = compressed(plain, how)
      const most = plain.length - HEAD
      expect(valuesOf(bytes, { most })).toEqual([large, 'small'])
      expect([...decode(Buffer.concat([bytes, batch(['next'], { base: 7n })]), { most: most - 1 })]).toEqual([
        {
          records: [
            {
              ...{ topic: 't', partition: 0, offset: 6n, timestampMs: 1_000n },
              ...{ key: null, value: bytes, headers: [] },
              packed: { compression: how.name, records: 2, mostBytes: most - 1 },
            },
          ],
          next: 7n,
        },
        expect.objectContaining({ next: 8n }),
      ])
    }
  })

  it('compressed with snappy in the frames of Java are measured too', () => {
    const plain = batch(['x'.repeat(50_000), 'y'.repeat(50_000)])
    const content = plain.subarray(HEAD)
    const chunks = [content.subarray(0, 32_768), content.subarray(32_768)].flatMap((part) => {
      const packed = snappy.compressSync(part)
      const length = Buffer.alloc(4)
      length.writeUInt32BE(packed.length)
      return [length, packed]
    })
    const head = Buffer.from('82534e41505059000000000100000001', 'hex')
    const bytes = repacked(plain, 2, Buffer.concat([head, ...chunks]))
    expect(valuesOf(bytes, { most: content.length })).toHaveLength(2)
    expect([...decode(bytes, { most: content.length - 1 })][0]?.records[0]).toHaveProperty('packed')
  })

  /** A frame of LZ4 that repeats one byte four million times in each of its blocks. */
  function lz4Bomb(blocks: number): Buffer {
    const block = Buffer.concat([Buffer.from('1f780100', 'hex'), Buffer.alloc(16_000, 255), Buffer.from([0])])
    const length = Buffer.alloc(4)
    length.writeUInt32LE(block.length)
    const head = Buffer.from('04224d18607000', 'hex')
    return Buffer.concat([
      head,
      ...Array.from({ length: blocks }, () => [length, block]).flat(),
      Buffer.alloc(4),
    ])
  }

  it.each([
    ['gzip', 1, () => Buffer.concat(Array.from({ length: 10 }, () => gzipSync(Buffer.alloc(30_000_000))))],
    ['snappy', 2, () => Buffer.from([0x81, 0x80, 0x80, 0x80, 0x01, 0, 0])],
    ['lz4', 3, () => lz4Bomb(70)],
    ['zstd', 4, () => zstdCompressSync(Buffer.alloc(270_000_000))],
  ] as const)('compressed with %s cannot fill the memory', (_name, kind, content) => {
    const [only] = [...decode(repacked(batch(['x']), kind, content()))]
    expect(only?.records).toMatchObject([{ offset: 0n, packed: { records: 1, mostBytes: 268_435_456 } }])
  })

  it('that say where they end tell it when they cannot be read', () => {
    const reading = () => [...decode(sealed(batch(['0', '1'], { base: 4n }).fill(7, 22, 23)))]
    expect(reading).toThrow(expect.objectContaining({ offset: 4n, next: 6n }))
  })

  it('of aborted transactions give nothing, also when the end of the transaction is not among them', () => {
    const ours = { attributes: TRANSACTIONAL, producerId: 7n }
    const bytes = Buffer.concat([
      batch(['other'], { attributes: TRANSACTIONAL, producerId: 8n }),
      batch(['aborted'], { base: 1n, ...ours }),
      batch(['plain'], { base: 2n }),
      marker(3n, 7n, 0),
      batch(['later'], { base: 4n, ...ours }),
      marker(5n, 7n, 1),
      batch(['aborted too'], { base: 6n, ...ours }),
    ])
    const aborted = [
      { producerId: 7n, firstOffset: 6n },
      { producerId: 7n, firstOffset: 1n },
    ]
    expect(valuesOf(bytes, { aborted })).toEqual(['other', 'plain', 'later'])
    expect([...decode(bytes, { aborted })].at(-1)?.next).toBe(7n)
  })

  it('have the time of the broker where they say so', () => {
    const bytes = batch(['0'], { attributes: 0b1000 })
    bytes.writeBigInt64BE(5_000n, 35)
    const [only] = [...decode(sealed(bytes))]
    expect(only?.records[0]?.timestampMs).toBe(5_000n)
  })
})
