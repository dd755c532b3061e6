import { describe, expect, it } from 'vitest'
import { parseKeepingDigits } from './kept-digits.ts'

describe('numbers that JavaScript cannot hold', () => {
  it('are written again as they were read', () => {
    const text = '{"a":9007199254740993,"b":[0.10000000000000000001,1e400],"c":1}'
    expect(JSON.stringify(parseKeepingDigits(text))).toBe(text)
  })

  it('are the only ones that are not plain numbers', () => {
    expect(parseKeepingDigits('{"a":[1,2.5,-3]}')).toEqual({ a: [1, 2.5, -3] })
  })
})
