import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { STATUSES } from '../letters/letter.ts'
import {
  formatLetterQuery,
  LETTER_QUERY_KEYS,
  type LetterParameters,
  parseLetterQuery,
} from './letter-query.ts'

const NOW = Date.parse('2027-03-10T12:00:00.000Z')

const filterOf = (text: string): LetterParameters => {
  const { filter, problems } = parseLetterQuery(text, NOW)
  expect(problems).toEqual([])
  return filter
}
const problemOf = (text: string) => {
  const { problems } = parseLetterQuery(text, NOW)
  expect(problems).toHaveLength(1)
  return problems[0]
}

describe('a query for letters', () => {
  it('names parameters of the API in the words of the console', () => {
    expect(
      filterOf(
        'engine:hmac status:pending error:"timed out" queue:orders age:>2d attempts:>=3 key:c-1 correlation:x:y signature:1-ab source:queues outcome:confirmed',
      ),
    ).toEqual({
      engine: 'hmac',
      status: 'Pending',
      q: 'timed out',
      originalQueue: 'orders',
      toDate: '2027-03-08T12:00:00.000Z',
      minAttempts: '3',
      instanceId: 'c-1',
      correlationId: 'x:y',
      signature: '1-ab',
      source: 'queues',
      outcome: 'confirmed',
    })
  })

  it('asks for nothing when it is empty', () => {
    expect(filterOf(' \n ')).toEqual({})
  })

  it('takes words without a key as one text', () => {
    expect(filterOf('connection engine:tls  reset')).toEqual({ q: 'connection reset', engine: 'tls' })
    expect(filterOf('at 12:30:05')).toEqual({ q: 'at 12:30:05' })
    expect(filterOf('"http://host  engine:x"')).toEqual({ q: 'http://host  engine:x' })
  })

  it('reads quotes and backslashes inside quotes, and other backslashes as they are', () => {
    expect(filterOf(String.raw`error:"say \"no\" to C:\\temp\new"`)).toEqual({
      q: String.raw`say "no" to C:\temp\new`,
    })
  })

  it('reads keys and fixed values whatever their case', () => {
    expect(filterOf('STATUS:Expired Source:KAFKA')).toEqual({ status: 'Expired', source: 'kafka' })
  })

  it.each([
    ['attempts:>=3', '3'],
    ['attempts:>2', '3'],
    ['attempts:3', '3'],
    ['attempts:>0', '1'],
  ])('reads %s as a least number', (text, minAttempts) => {
    expect(filterOf(text)).toEqual({ minAttempts })
  })

  it.each([
    ['age:>2d', { toDate: '2027-03-08T12:00:00.000Z' }],
    ['age:>=1w', { toDate: '2027-03-03T12:00:00.000Z' }],
    ['age:<1h', { fromDate: '2027-03-10T11:00:00.000Z' }],
    ['age:<=90s', { fromDate: '2027-03-10T11:58:30.000Z' }],
    ['age:<5d age:>30m', { fromDate: '2027-03-05T12:00:00.000Z', toDate: '2027-03-10T11:30:00.000Z' }],
    [
      'from:2027-01-01 to:2027-02-01T00:00:00+01:00',
      { fromDate: '2027-01-01', toDate: '2027-02-01T00:00:00+01:00' },
    ],
  ])('reads %s as times of the last failure', (text, filter) => {
    expect(filterOf(text)).toEqual(filter)
  })

  it('knows the statuses that there are, and leaves sources to the server', () => {
    for (const status of STATUSES) expect(filterOf(`status:${status}`)).toEqual({ status })
    expect(filterOf('source:Queues')).toEqual({ source: 'queues' })
  })

  it('explains each key with an example that can be read', () => {
    for (const { key, example, values } of LETTER_QUERY_KEYS) {
      expect(Object.keys(filterOf(example))).toHaveLength(1)
      expect(example.startsWith(`${key}:`)).toBe(true)
      for (const value of values) expect(parseLetterQuery(`${key}:${value}`, NOW).problems).toEqual([])
    }
  })
})

describe('a query with problems', () => {
  it('says what was given, where it stands and what is allowed, and keeps the other terms', () => {
    const { filter, problems } = parseLetterQuery('engine:hmac  status:dead', NOW)
    expect(filter).toEqual({ engine: 'hmac' })
    expect(problems).toEqual([
      {
        given: 'status:dead',
        start: 13,
        message: "'dead' is none of pending, resolved, expired",
        allowed: ['pending', 'resolved', 'expired'],
      },
    ])
  })

  it('lists the keys for one that is unknown, and how to search for the text', () => {
    const problem = problemOf('topic:orders')
    expect(problem?.allowed).toContain('queue')
    expect(problem?.message).toBe(
      `'topic' is none of the keys status, outcome, source, engine, queue, signature, key, correlation, attempts, age, from, to, error; to search for it as text, put it in double quotes: "topic:orders"`,
    )
  })

  it.each([
    ['engine:a engine:b', 'engine:b', "another term already says 'engine'"],
    ['age:>1d to:2027-01-01', 'to:2027-01-01', 'before when it failed last'],
    ['error:abc def', 'def', 'one text'],
    ['engine:', 'engine:', 'no value, write one such as engine:hmac'],
    ['queue:""', 'queue:""', 'no value'],
    ['error:"abc', 'error:"abc', 'the quote has no end'],
    ['"abc def', '"abc def', 'the quote has no end'],
    ['attempts:<3', 'attempts:<3', "'<3' is no least number of attempts"],
    ['attempts:0', 'attempts:0', "'0' is no least number of attempts"],
    ['age:2d', 'age:2d', 'the units are s, m, h, d and w'],
    ['age:>2y', 'age:>2y', 'the units are s, m, h, d and w'],
    ['age:>999999w', 'age:>999999w', 'before all dates'],
    ['from:yesterday', 'from:yesterday', "'yesterday' is not an RFC 3339 timestamp"],
    ['ab', 'ab', '3 to 200 characters'],
  ])('refuses %s', (text, given, message) => {
    const problem = problemOf(text)
    expect(problem?.given).toBe(given)
    expect(problem?.start).toBe(text.lastIndexOf(given))
    expect(problem?.message).toContain(message)
  })
})

describe('a filter as a query', () => {
  it('is written in the words of the console', () => {
    expect(
      formatLetterQuery(
        {
          q: 'timed out',
          engine: 'hmac',
          status: 'Pending',
          minAttempts: '3',
          toDate: '2027-03-08T12:00:00Z',
        },
        NOW,
      ),
    ).toBe('status:pending engine:hmac attempts:>=3 age:>2d timed out')
  })

  it('has an age where the date lies a round time back, else the date', () => {
    expect(formatLetterQuery({ fromDate: '2027-03-10T11:00:00.000Z' }, NOW)).toBe('age:<1h')
    expect(formatLetterQuery({ fromDate: '2027-03-10T11:00:00.000001Z' }, NOW)).toBe(
      'from:2027-03-10T11:00:00.000001Z',
    )
    expect(formatLetterQuery({ toDate: '2027-01-01' }, NOW)).toBe('to:2027-01-01')
    expect(formatLetterQuery({ toDate: '2028-01-01' }, NOW)).toBe('to:2028-01-01')
  })

  it('is read as the same filter again', () => {
    const unit = fc.constantFrom('a', 'key', ':', '"', '\\', ' ', '\n', '>', '1', 'é', '\u{1F4EE}', '\ud800')
    const text = fc.string({ minLength: 1, maxLength: 12, unit })
    const at = fc.date({ min: new Date('2020-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
    const back = fc.integer({ min: 1, max: 400 * 86_400 }).map((seconds) => new Date(NOW - seconds * 1000))
    const time = fc.oneof(at, back).map((date) => date.toISOString())
    const search = text.filter((q) => [...q].length >= 3)
    const filters = fc.record(
      {
        engine: text,
        status: fc.constantFrom(...STATUSES),
        instanceId: text,
        fromDate: time,
        toDate: time,
        source: fc.constantFrom('queues', 'engines', 'http'),
        originalQueue: text,
        signature: text,
        correlationId: text,
        q: fc.oneof(
          search,
          fc.constantFrom('a b:c d', 'one two', ' lead', 'trail ', 'a  b', '"x"', 'a "b" c'),
        ),
        minAttempts: fc.integer({ min: 1, max: 1000 }).map(String),
        outcome: fc.constantFrom('confirmed', 'unconfirmed'),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(filters, (filter) => {
        expect(filterOf(formatLetterQuery(filter, NOW))).toEqual(filter)
      }),
      { numRuns: 100 },
    )
  })

  it('never fails on any text, and finds each problem where it says', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'age', ':', '"', '\\', ' ', '>', '1', 'd', 'key') }),
        (text) => {
          for (const { given, start } of parseLetterQuery(text, NOW).problems) {
            expect(text.slice(start, start + given.length)).toBe(given)
          }
        },
      ),
    )
  })
})
