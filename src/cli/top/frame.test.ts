import { describe, expect, it } from 'vitest'
import type { LetterItem } from '../../client/letter-types.ts'
import { widthOf } from '../../terminal/table.ts'
import { PLAIN } from '../../terminal/terminal.ts'
import { frame, type Look, type Picture } from './frame.ts'

const AT = '2027-03-10T11:59:00.000000Z'
const NOW = Date.parse('2027-03-10T12:00:00Z')

const letter = (number: number): LetterItem => ({
  engine: 'hmac',
  rowKey: `i-${number}-20270310T115900000000Z`,
  instanceId: `a-rather-long-instance-${number}`,
  originalQueue: 'a-queue-with-quite-a-long-name',
  errorMessage: `connection reset by peer ${number} while something else went on`,
  dequeueCount: number,
  status: 'Pending',
  firstFailureAtUtc: AT,
  lastFailureAtUtc: AT,
  correlationId: '',
  resolutionNotes: null,
  resolvedAtUtc: null,
  resolvedBy: null,
  resolution: null,
  confirmedAtUtc: null,
  source: 'http',
  sourceId: '',
  signature: '1-4f2a9c7d81e3b650',
  reason: 'failed',
  errorClass: 'NetworkError',
  deadQueue: null,
})

const range = <T>(count: number, make: (number: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, number) => make(number + 1))

const LOOK: Look = {
  version: '1.2.3',
  environment: 'production',
  counts: {
    items: [
      { source: 'queues', status: 'Pending', count: 1_200 },
      { source: 'queues', status: 'Resolved', count: 3 },
      { source: 'http', status: 'Pending', count: 34 },
    ],
    totals: { Pending: 1_234, Resolved: 3, Expired: 0 },
  },
  groups: range(30, (number) => ({
    signature: `1-${String(number).padStart(16, '0')}`,
    version: 1,
    errorClass: 'NetworkError',
    title: 'connection reset by peer #',
    open: number,
    total: number,
    firstSeenAtUtc: AT,
    lastSeenAtUtc: AT,
    sources: [],
    engines: [],
    originalQueues: [],
    sample: null,
    trend: range(24, (hour) => hour % 8),
  })),
  queues: range(20, (number) => ({
    name: `queue-${number}`,
    deadQueue: null,
    onDeath: 'letter',
    partitions: 1,
    ready: number,
    leased: 0,
    scheduled: 0,
    held: 0,
    dead: 0,
    oldestAtUtc: AT,
    letters: 0,
    maxAttempts: 0,
    leaseTimeout: '1m0s',
    deadTimeout: null,
  })),
  newest: range(50, letter),
}

const PICTURE: Picture = { url: 'http://127.0.0.1:1853', look: LOOK, trouble: null, now: NOW, lookedAt: NOW }

describe('a picture of an office', () => {
  it.each([
    [160, 50],
    [100, 30],
    [80, 24],
  ])('fits %i columns and %i rows, with something of everything', (columns, rows) => {
    const lines = frame(PICTURE, { columns, rows, style: PLAIN })
    expect(lines).toHaveLength(rows)
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
    for (const title of ['Letters by source', 'Errors', 'Queues', 'Newest letters']) {
      const at = lines.indexOf(title)
      expect(at).toBeGreaterThan(0)
      expect(lines[at + 2]).toMatch(/\S/)
    }
  })

  it('begins with who it is and how many letters there are', () => {
    const [first, second] = frame(PICTURE, { columns: 80, rows: 24, style: PLAIN })
    expect(first).toBe(`${'bartleby 1.2.3  production  http://127.0.0.1:1853'.padEnd(71)}12:00:00Z`)
    expect(second).toBe('1,234 pending   3 resolved   0 expired')
  })

  it('says how long the server has been away, over what was last seen', () => {
    const picture = { ...PICTURE, trouble: 'connect ECONNREFUSED\u001b[2J', now: NOW + 90_000 }
    const lines = frame(picture, { columns: 80, rows: 24, style: PLAIN })
    expect(lines[1]).toBe('no answer for 1m, trying on: connect ECONNREFUSED\\x1b[2J')
    expect(lines).toContain('Errors')
  })

  it('is short while nothing is known', () => {
    expect(frame({ ...PICTURE, look: null }, { columns: 80, rows: 24, style: PLAIN })).toEqual([
      'bartleby  http://127.0.0.1:1853',
      'asking the server …',
    ])
  })

  it('is as long as it needs where nothing bounds it', () => {
    expect(frame(PICTURE, { columns: undefined, rows: undefined, style: PLAIN }).length).toBeGreaterThan(30)
  })
})
