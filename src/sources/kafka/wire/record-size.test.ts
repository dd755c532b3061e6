import { describe, expect, it } from 'vitest'
import { recordSize } from './bytes.ts'

const bytes = (length: number): Uint8Array => new Uint8Array(length)

describe('the size of a record', () => {
  it('is that of a batch with this record alone', () => {
    // Head 61, length 1, attributes and distances 3, a length for each of key and value, the number of headers.
    expect(recordSize({ key: null, value: null, headers: [] })).toBe(61 + 1 + 3 + 1 + 1 + 1)
    expect(recordSize({ key: bytes(0), value: bytes(0), headers: [] })).toBe(68)
    expect(recordSize({ key: bytes(2), value: bytes(10), headers: [{ name: bytes(3), value: null }] })).toBe(
      68 + 2 + 10 + (1 + 3) + 1,
    )
  })

  it('has longer lengths for longer fields', () => {
    const around = (length: number): number =>
      recordSize({ key: null, value: bytes(length), headers: [] }) - length
    expect(around(50)).toBe(68)
    expect(around(63)).toBe(69)
    expect(around(64)).toBe(70)
    expect(around(8_191)).toBe(71)
    expect(around(8_192)).toBe(72)
    expect(around(1_048_576)).toBe(74)
  })
})
