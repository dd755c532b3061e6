import { describe, expect, it } from 'vitest'
import { instant } from './clock.ts'
import { TestClock } from './test-clock.ts'
import { parseXid, secondsOfXid, Xids, xid, xidAfter, xidsFrom } from './xid.ts'

const ALPHABET = '0123456789abcdefghijklmnopqrstuv'

/** The twelve bytes of an id, read in the plainest way. */
const bytesOf = (text: string): string => {
  const bits = [...text].map((character) => ALPHABET.indexOf(character).toString(2).padStart(5, '0')).join('')
  return BigInt(`0b${bits.slice(0, 96)}`)
    .toString(16)
    .padStart(24, '0')
}

const makers = (at = 1_800_000_000_000_000n) => {
  const clock = new TestClock()
  clock.freeze(instant(at))
  return { clock, xids: new Xids(clock) }
}

describe('an xid', () => {
  it.each([
    ['dbsggslqmd2qb0aabo3g', '6af90872bab345a5814a5e07', 1_794_705_522],
    ['9m4e2mr0ui3e8a215n4g', '4d88e15b60f486e428412dc9', 1_300_816_219],
  ])('is read: %s', (text, hex, seconds) => {
    const id = parseXid(text)
    expect(id).toBe(text)
    expect(bytesOf(text)).toBe(hex)
    expect(secondsOfXid(xid(text))).toBe(seconds)
  })

  it.each([
    'dbsggslqmd2qb0aabo3h',
    'zzzzzzzzzzzzzzzzzzzz',
    'DBSGGSLQMD2QB0AABO3G',
    'dbsggslqmd2qb0aabo3',
    'dbsggslqmd2qb0aabo3g0',
    'dbsggslqmd2qb0aabo3g\n',
    '',
  ])('is not: %j', (text) => {
    expect(parseXid(text)).toBeNull()
  })

  it('is followed by the one whose counter is one more', () => {
    expect(bytesOf(xidAfter(xid('dbsggslqmd2qb0aabo3g'), 1))).toBe('6af90872bab345a5814a5e08')
    expect(xidAfter(xid('dbsggslqmd2qb0aabo3g'), 0)).toBe('dbsggslqmd2qb0aabo3g')
  })
})

describe('new xids', () => {
  it('are well-formed, of the present second, and ascend', () => {
    const { clock, xids } = makers()
    const ids: string[] = []
    for (let i = 0; i < 2_000; i++) {
      ids.push(xids.next())
      if (i % 500 === 499) clock.advance(700_000n)
    }
    expect(ids.every((id) => parseXid(id) !== null)).toBe(true)
    expect(ids).toEqual([...new Set(ids)].sort())
    expect(secondsOfXid(xid(ids[0] ?? ''))).toBe(1_800_000_000)
    expect(secondsOfXid(xid(ids.at(-1) ?? ''))).toBe(1_800_000_002)
  })

  it('ascend also when the clock is set back', () => {
    const { clock, xids } = makers()
    const before = xids.next()
    clock.freeze(instant(1_700_000_000_000_000n))
    expect(xids.next() > before).toBe(true)
  })

  it('come in blocks whose members follow each other', () => {
    const { xids } = makers()
    const first = xids.block(3)
    const after = xids.next()
    const members = [first, xidAfter(first, 1), xidAfter(first, 2)]
    expect(xidsFrom(first, 3)).toEqual(members)
    expect(xidAfter(first, 3)).toBe(after)
    expect([...members, after]).toEqual([...members, after].sort())
  })

  it('stay in one block when the ids of a second run out', () => {
    const { xids } = makers()
    const last = xidAfter(xids.block(2 ** 24 - 1), 2 ** 24 - 2)
    const first = xids.block(2)
    expect(secondsOfXid(last)).toBe(1_800_000_000)
    expect(secondsOfXid(first)).toBe(1_800_000_001)
    expect(first > last).toBe(true)
    expect(xidsFrom(first, 2)).toEqual([first, xidAfter(first, 1)])
    expect(() => xids.block(2 ** 24 + 1)).toThrow(RangeError)
  })

  it('are listed like stepped to, wherever in its second a block begins', () => {
    for (let i = 0; i < 20; i++) {
      const { xids } = makers()
      xids.block(2 ** 24 - 40)
      const first = xids.block(40)
      expect(xidsFrom(first, 40)).toEqual(Array.from({ length: 40 }, (_, step) => xidAfter(first, step)))
      expect(secondsOfXid(xidAfter(first, 39))).toBe(1_800_000_000)
    }
  })

  it('of two makers at the same moment differ', () => {
    const ids = Array.from({ length: 100 }, () => makers().xids.next())
    expect(new Set(ids).size).toBe(100)
  })
})
