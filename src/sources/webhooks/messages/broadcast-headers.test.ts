import { describe, expect, it } from 'vitest'
import { instant, later } from '../../../core/clock.ts'
import { formatTimestamp } from '../../../core/timestamp.ts'
import { Refused } from '../refusal.ts'
import { readMetadataHeaders, readPriority, readScheduledFor } from '../routes/broadcast.ts'

const NOW = instant(1_800_000_000_000_000n)
const MINUTE = 60_000_000n

describe('the priority of a broadcast', () => {
  it.each([
    ['7', 7],
    ['+7', 7],
    ['-7', 7],
    ['007', 7],
    ['0', 0],
    ['-0', 0],
    ['9007199254740991', 9_007_199_254_740_991],
  ])('%s is %i', (text, priority) => {
    expect(readPriority(text)).toBe(priority)
  })

  it.each([
    '',
    ' 7',
    '7 ',
    '7\n',
    '7x',
    '1.5',
    '1e3',
    '0x10',
    'abc',
    '+',
    '--7',
    '٧',
    '9007199254740992',
    '9'.repeat(400),
  ])('is 0 for %j', (text) => {
    expect(readPriority(text)).toBe(0)
  })
})

describe('the time of a scheduled message', () => {
  const refusal = (text: string, minDelayMinutes = 2): Refused => {
    try {
      readScheduledFor(text, NOW, minDelayMinutes)
    } catch (error) {
      if (error instanceof Refused) return error
    }
    throw new Error(`${text} was not refused`)
  }

  it('may have a fraction and any offset', () => {
    const utc = readScheduledFor('2030-01-02T03:04:05Z', NOW, 2)
    expect(formatTimestamp(utc)).toBe('2030-01-02T03:04:05Z')
    expect(readScheduledFor('2030-01-02T03:04:05+06:00', NOW, 2)).toBe(later(utc, -360n * MINUTE))
    expect(readScheduledFor('2030-01-02T03:04:05.123Z', NOW, 2)).toBe(later(utc, 123_000n))
  })

  it.each([
    '2025/12/31 23:59:59',
    '2030-01-02',
    '2030-01-02T03:04:05',
    '2030-01-02 03:04:05Z',
    '2030-02-30T03:04:05Z',
    '1900000000',
    'tomorrow',
    ' 2030-01-02T03:04:05Z',
  ])('is not %s', (text) => {
    expect(refusal(text).refusal).toBe('schedule_invalid')
  })

  it('lies at least as far ahead as the setting says, to the microsecond', () => {
    const at = (us: bigint) => formatTimestamp(later(NOW, us))
    expect(readScheduledFor(at(2n * MINUTE), NOW, 2)).toBe(later(NOW, 2n * MINUTE))
    expect(refusal(at(2n * MINUTE - 1n)).message).toBe(
      'scheduled time must be at least 2 minutes in the future',
    )
    expect(refusal(at(2n * MINUTE), 15)).toMatchObject({
      status: 412,
      message: 'scheduled time must be at least 15 minutes in the future',
    })
    expect(readScheduledFor(at(0n), NOW, 0)).toBe(NOW)
  })
})

describe('metadata headers', () => {
  const read = (list: string, ...rawHeaders: string[]) =>
    readMetadataHeaders(list, rawHeaders, 'X-Secret-Token')

  it('are those that the list names, in its order and spelling', () => {
    expect(
      read(
        ' TraceParent ,x-foo,\tX-Bar',
        'x-bar',
        '3',
        'X-Foo',
        '1',
        'traceparent',
        '00-abc',
        'x-other',
        '4',
      ),
    ).toEqual([
      ['TraceParent', '00-abc'],
      ['x-foo', '1'],
      ['X-Bar', '3'],
    ])
  })

  it('are named by the first of two spellings, and have the first of two values', () => {
    expect(read('X-Foo,x-foo,X-FOO', 'x-FOO', 'one', 'X-Foo', 'two')).toEqual([['X-Foo', 'one']])
  })

  it('are left out when they are absent or empty', () => {
    expect(
      read(',,Missing,X-Empty,X-First-Empty, ', 'X-Empty', '', 'X-First-Empty', '', 'X-First-Empty', 'x'),
    ).toEqual([])
    expect(read('', 'X-Foo', 'bar')).toEqual([])
  })

  it('keep every byte of their values', () => {
    const bytes = Buffer.from(Array.from({ length: 256 - 32 }, (_, i) => i + 32)).toString('latin1')
    const [header] = JSON.parse(JSON.stringify(read('X-Bytes', 'X-Bytes', bytes)))
    expect(header).toEqual(['X-Bytes', bytes])
  })

  it.each([
    'Content-Type',
    'User-Agent',
    'X-Request-ID',
    'X-Secret-Token',
    'X-Broker-Consumer-Token',
    'X-Broker-Channel-ID',
    'X-Broker-Consumer-ID',
    'X-Broker-Message-ID',
    'X-Broker-Message-Priority',
    'X-Broker-Metadata-Headers',
    'X-Broker-Anything',
    'Host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Upgrade',
    'Expect',
    'Proxy-Authorization',
    'Proxy-Connection',
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
  ])('never include %s, however it is spelt', (name) => {
    for (const spelling of [name, name.toLowerCase(), name.toUpperCase()]) {
      expect(read(`${spelling},X-Keep`, spelling, 'evil', 'X-Keep', 'yes')).toEqual([['X-Keep', 'yes']])
    }
  })

  it('include what only looks like a barred one', () => {
    const names = ['Authorization', 'Hostess', 'X-Brokerage', 'X-Proxy-Id', 'X-Broker']
    expect(read(names.join(), ...names.flatMap((name) => [name, '1']))).toEqual(
      names.map((name) => [name, '1']),
    )
  })
})
