import { describe, expect, it } from 'vitest'
import { instant } from '../../../core/clock.ts'
import { Bucket } from './allowances.ts'

const SECOND = 1_000_000n
const at = (seconds: number) => instant(10_000n * SECOND + BigInt(seconds) * SECOND)

describe('a rate', () => {
  it('lets so many begin in a second, evenly', () => {
    const bucket = new Bucket(0.5, at(0))
    expect(bucket.available(at(0))).toBe(1)
    bucket.take(at(0))
    expect([bucket.available(at(1)), bucket.nextAt(at(1))]).toEqual([0, at(2)])
    expect(bucket.available(at(2))).toBe(1)
    expect(bucket.available(at(100))).toBe(1)
  })

  it('goes on when the clock is set back', () => {
    const bucket = new Bucket(1, at(0))
    bucket.take(at(0))
    expect(bucket.available(at(-3_600))).toBe(0)
    expect(bucket.available(at(-3_599))).toBe(1)
  })

  it('has a next time, however small it is', () => {
    const bucket = new Bucket(Number.MIN_VALUE, at(0))
    bucket.take(at(0))
    expect(bucket.nextAt(at(0))).toBe(at(86_400))
  })
})
