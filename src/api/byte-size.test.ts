import { describe, expect, it } from 'vitest'
import { formatByteSize } from './body.ts'

describe('a body limit in an error', () => {
  it.each([
    [5_000_000, '5.0MB'],
    [512, '512B'],
    [512_000, '500.0KiB'],
    [64_000_000, '61.0MiB'],
    [256_000, '250.0KiB'],
  ])('of %i bytes is printed as the contract says: %s', (bytes, text) => {
    expect(formatByteSize(bytes)).toBe(text)
  })

  it.each([
    [1_024, '1.0KiB'],
    [1_048_576, '1.0MiB'],
    [1_073_741_824, '1.0GiB'],
    [1_000, '1.0kB'],
    [999, '999B'],
    [1_500_000, '1.5MB'],
    [0, '0B'],
  ])('of %i configured bytes follows the same rule: %s', (bytes, text) => {
    expect(formatByteSize(bytes)).toBe(text)
  })
})
