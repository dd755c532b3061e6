import { describe, expect, it } from 'vitest'
import { absolute, byteSize, clockTime, duration, grouped, relative, short, span } from './format.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

describe('a span', () => {
  it.each([
    [0, 'now'],
    [999, 'now'],
    [SECOND, '1 s'],
    [59 * SECOND, '59 s'],
    [MINUTE, '1 min'],
    [HOUR - 1, '59 min'],
    [HOUR, '1 h'],
    [DAY - 1, '23 h'],
    [400 * DAY, '400 d'],
  ])('of %d ms is %s', (ms, text) => {
    expect(span(ms)).toBe(text)
  })
})

describe('a time', () => {
  it('is told by how long ago it was, or how far ahead it is', () => {
    expect(relative(0, 5 * MINUTE)).toBe('5 min ago')
    expect(relative(5 * MINUTE, 0)).toBe('in 5 min')
    expect(relative(500, 0)).toBe('now')
  })

  it('is told in full in UTC', () => {
    expect(absolute('2026-11-15T14:03:22.123456Z', 'utc')).toBe('2026-11-15 14:03:22.123 UTC')
  })

  it('is told in full as the clock on the wall shows it', () => {
    expect(absolute('2026-11-15T14:03:22.007Z', 'local')).toMatch(/^2026-11-1\d \d\d:\d\d:22\.007 local$/)
  })

  it('is left as it is when it is none', () => {
    expect(absolute('soon', 'utc')).toBe('soon')
  })
})

describe('a number', () => {
  it('has its thousands apart', () => {
    expect(grouped(1_234_567)).toBe('1,234,567')
  })

  it('of milliseconds is told as people say it', () => {
    expect(duration(839.6)).toBe('840 ms')
    expect(duration(2_440)).toBe('2.4 s')
    expect(duration(3 * MINUTE + 1)).toBe('3 min')
  })

  it('of bytes is told in powers of 1,024', () => {
    expect(byteSize(1_023)).toBe('1023 B')
    expect(byteSize(1_536)).toBe('1.5 KiB')
    expect(byteSize(3 * 1_048_576)).toBe('3.0 MiB')
  })
})

describe('a number in little room', () => {
  it.each([
    [0, '0'],
    [99_999, '99,999'],
    [120_456, '120k'],
    [999_999, '999k'],
    [3_490_000, '3.4M'],
    [23_000_000, '23M'],
  ])('%d is %s', (count, text) => {
    expect(short(count)).toBe(text)
  })
})

describe('a time of the clock', () => {
  const now = Date.parse('2026-11-18T04:20:00Z')

  it('has the day only where it is another one', () => {
    expect(clockTime(new Date('2026-11-18T03:05:00Z'), now, 'utc')).toBe('03:05')
    expect(clockTime(new Date('2026-11-17T23:46:00Z'), now, 'utc')).toBe('11-17 23:46')
  })
})
