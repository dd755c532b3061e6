import { describe, expect, it } from 'vitest'
import { formatMicros } from '../core/timestamp.ts'
import { flagOf, instantOf, limitOf, periodOf, readQuery } from './query.ts'

const KNOWN = ['limit', 'engine', 'fromDate', 'toDate', 'dryRun']
const query = (text: string) => readQuery(`/api/x?${text}`, KNOWN)
const refusal = (parameter: string, reason: RegExp) =>
  expect.objectContaining({
    code: 'parameter_invalid',
    details: { parameter, reason: expect.stringMatching(reason) },
  })

describe('query parameters', () => {
  it('are read decoded', () => {
    expect([...query('engine=a%20b+c&limit=5')]).toEqual([
      ['engine', 'a b c'],
      ['limit', '5'],
    ])
    expect(readQuery('/api/x', KNOWN).size).toBe(0)
  })

  it.each([
    ['engines=hmac', 'engines', /none of limit, engine, fromDate, toDate, dryRun/],
    ['engine=a&engine=b', 'engine', /twice/],
    ['engine=', 'engine', /empty/],
    ['engine=a%00b', 'engine', /null character/],
  ])('%s are refused', (text, parameter, reason) => {
    expect(() => query(text)).toThrow(refusal(parameter, reason))
  })

  it('of a call that takes none are refused', () => {
    expect(() => readQuery('/api/x?a=1', [])).toThrow(refusal('a', /no parameters/))
  })
})

describe('limit', () => {
  it('is 50 unless it is given', () => {
    expect(limitOf(query(''))).toBe(50)
    expect([limitOf(query('limit=1')), limitOf(query('limit=100'))]).toEqual([1, 100])
  })

  it.each(['0', '101', '-1', '1.5', '1e1', 'ten', '0x10', '99999999999999999999', '%205'])(
    'is never %s',
    (text) => {
      expect(() => limitOf(query(`limit=${text}`))).toThrow(refusal('limit', /whole number from 1 to 100/))
    },
  )
})

describe('a date', () => {
  it.each([
    ['2027-01-01', '2027-01-01T00:00:00.000000Z'],
    ['2027-01-01T12:00:00Z', '2027-01-01T12:00:00.000000Z'],
    ['2027-01-01T12:00:00.123456%2B02:00', '2027-01-01T10:00:00.123456Z'],
    ['2027-01-01T12:00:00+02:00', '2027-01-01T10:00:00.000000Z'],
  ])('%s is %s', (text, expected) => {
    const at = instantOf(query(`fromDate=${text}`), 'fromDate')
    expect(at === null ? null : formatMicros(at)).toBe(expected)
  })

  it.each(['yesterday', '2027-02-30', '2027-01-01T12:00:00', '1798761600', '2027-1-1'])(
    'is never %s',
    (text) => {
      expect(() => instantOf(query(`fromDate=${text}`), 'fromDate')).toThrow(
        refusal('fromDate', /2027-01-01/),
      )
    },
  )

  it('from which on must not be later than the one up to which', () => {
    expect(() => periodOf(query('fromDate=2027-01-02&toDate=2027-01-01'))).toThrow(
      refusal('fromDate', /toDate/),
    )
    expect(periodOf(query('fromDate=2027-01-01&toDate=2027-01-01')).from).not.toBeNull()
    expect(periodOf(query(''))).toEqual({ from: null, to: null })
  })
})

describe('a flag', () => {
  it('is true or false', () => {
    expect([flagOf(query('dryRun=true'), 'dryRun'), flagOf(query('dryRun=false'), 'dryRun')]).toEqual([
      true,
      false,
    ])
    expect(flagOf(query(''), 'dryRun')).toBe(false)
    expect(() => flagOf(query('dryRun=1'), 'dryRun')).toThrow(refusal('dryRun', /neither true nor false/))
  })
})
