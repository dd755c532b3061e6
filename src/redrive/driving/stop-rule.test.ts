import { describe, expect, it } from 'vitest'
import { haltNote, lookAgain, type Recent, readRecent, saysHalt } from './stop-rule.ts'

const rule = { percent: 20, of: 10 }

/** What is remembered after looks at which so many were confirmed and returned in all. */
const remembered = (...looks: readonly (readonly [confirmed: number, returned: number])[]): Recent =>
  looks.reduce(
    (recent, [confirmed, returned]) => lookAgain(recent, { confirmed, returned }, rule),
    readRecent(null),
  )

describe('the stop rule', () => {
  it('halts when more than its share of the last outcomes were deaths, and not before', () => {
    expect(saysHalt(remembered([0, 2]), rule)).toBe(false)
    expect(saysHalt(remembered([8, 2]), rule)).toBe(false)
    expect(saysHalt(remembered([0, 3]), rule)).toBe(true)
    expect(saysHalt(remembered([7, 3]), rule)).toBe(true)
  })

  it('forgets what is older than the outcomes it looks at', () => {
    expect(saysHalt(remembered([0, 2], [10, 2], [10, 4]), rule)).toBe(false)
    expect(saysHalt(remembered([0, 2], [9, 2], [9, 3]), rule)).toBe(false)
    expect(saysHalt(remembered([0, 2], [7, 2], [7, 3]), rule)).toBe(true)
  })

  it('halts at the first death when none is allowed', () => {
    const strict = { percent: 0, of: 1_000 }
    expect(saysHalt(lookAgain(readRecent(null), { confirmed: 500, returned: 0 }, strict), strict)).toBe(false)
    expect(saysHalt(lookAgain(readRecent(null), { confirmed: 500, returned: 1 }, strict), strict)).toBe(true)
  })

  it('hears of a letter that was confirmed and comes back all the same', () => {
    expect(saysHalt(remembered([5, 2], [4, 3]), rule)).toBe(true)
  })

  it('goes on with what another server remembered', () => {
    const told = readRecent(JSON.stringify(remembered([5, 2])))
    expect(saysHalt(lookAgain(told, { confirmed: 5, returned: 3 }, rule), rule)).toBe(true)
  })

  it('remembers a bounded number of looks, and no outcome less', () => {
    const wide = { percent: 50, of: 10_000 }
    let recent = readRecent(null)
    for (let i = 1; i <= 1_000; i++) recent = lookAgain(recent, { confirmed: i, returned: i * 2 }, wide)
    expect(recent.looks.length).toBeLessThanOrEqual(200)
    expect(recent.looks.reduce((sum, [confirmed, returned]) => sum + confirmed + returned, 0)).toBe(3_000)
  })

  it('says why', () => {
    expect(haltNote(remembered([0, 3]), rule)).toBe(
      '3 of the last 3 letters came back dead, and 20% of 10 are allowed',
    )
  })
})
