import { describe, expect, it } from 'vitest'
import { PLAIN } from '../../terminal/terminal.ts'
import { durationText, rateText, timesText } from '../../terminal/words.ts'
import { leftOut, numberLines } from './text.ts'
import { countLines } from './watch-frame.ts'

const NUMBERS = {
  matched: 1_310,
  eligible: 1_204,
  inFlight: 80,
  noDestination: 26,
  orderBlocked: 0,
  duplicate: 0,
  invalid: 0,
}

describe('the numbers of a plan', () => {
  it('have a line each that says what they mean; zero steps back', () => {
    const style = { ...PLAIN, dim: (text: string) => `(${text})` }
    const lines = numberLines(NUMBERS, style)
    expect(lines).toHaveLength(7)
    expect(lines[1]).toBe('1,204  eligible        are in the plan')
    expect(lines[3]).toBe('   26  no destination  have nowhere to go to')
    expect(lines[5]).toBe('(    0  duplicate       were named more than once)')
  })

  it('say what is left out', () => {
    expect(leftOut(NUMBERS)).toBe('80 in flight, 26 no destination')
    expect(leftOut({ ...NUMBERS, inFlight: 0, noDestination: 0 })).toBe('')
  })
})

describe('the counts of a redrive', () => {
  const counts = {
    planned: 1_204,
    sent: 300,
    skipped: 3,
    failed: 1,
    remaining: 900,
    confirmed: 280,
    returned: 4,
    unconfirmed: 16,
  }

  it('are sums', () => {
    expect(countLines('retry', counts)).toEqual([
      '1,204 planned = 300 sent back + 3 skipped + 1 failed + 900 remaining',
      '300 sent back = 280 confirmed + 4 returned + 16 unconfirmed',
    ])
  })

  it('know no outcomes where nothing is sent', () => {
    expect(countLines('discard', counts)).toHaveLength(1)
    expect(countLines('move', { ...counts, sent: 0 })).toHaveLength(1)
  })
})

it('durations, rates and times are short', () => {
  expect([0, 0.2, 59, 61, 3_700, 90_000].map(durationText)).toEqual([
    '0s',
    '1s',
    '59s',
    '1m 1s',
    '1h 1m',
    '1d 1h',
  ])
  expect([0.05, 48.31, 1_234.5, 1_000_000].map(rateText)).toEqual(['0.05', '48.3', '1,234.5', '1,000,000'])
  expect([1, 2, 3].map(timesText)).toEqual(['once', 'twice', '3 times'])
})
