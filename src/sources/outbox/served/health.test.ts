import { describe, expect, it } from 'vitest'
import { OUTBOX_NOW, PostedOutbox } from '../../../../test/world/outbox-post.ts'
import { freshSqlite, stores } from '../../../../test/world/stores.ts'
import type { Instant } from '../../../core/clock.ts'
import { openDatabase } from '../../../store/open.ts'
import { onDatabase } from '../sql/table.ts'
import { readLayout } from '../table/layout.ts'
import { DEFAULT_THRESHOLDS, FEWEST_ATTEMPTS, healthOf, judge, lookAt, worstOf } from './health.ts'
import type { OutboxHandle } from './outbox-handle.ts'

const WELL = { backlog: 0, oldestAgeSeconds: 0, failureRatio: 0, attempts: 1_000 }
const judged = (changes: Partial<typeof WELL>) => judge({ ...WELL, ...changes }, DEFAULT_THRESHOLDS)

const checkOutbox = async (outbox: OutboxHandle, now: Instant) => healthOf(outbox, await lookAt(outbox, now))

describe('the health of an outbox', () => {
  it('is ok up to its thresholds', () => {
    expect(judged({})).toEqual({ status: 'ok', reasons: [] })
    expect(judged({ backlog: 10_000, oldestAgeSeconds: 60, failureRatio: 0.1 })).toEqual({
      status: 'ok',
      reasons: [],
    })
  })

  it.each([
    [{ backlog: 10_001 }, 'backlog is 10001, above 10000'],
    [{ backlog: 100_000 }, 'backlog is 100000, above 10000'],
    [{ oldestAgeSeconds: 61 }, 'oldestAgeSeconds is 61, above 60'],
    [{ failureRatio: 0.2504 }, 'failureRatio is 0.25, above 0.1'],
  ])('is degraded by %o', (changes, reason) => {
    expect(judged(changes)).toEqual({ status: 'degraded', reasons: [reason] })
  })

  it.each([
    [{ backlog: 100_001 }, 'backlog is 100001, above 100000'],
    [{ oldestAgeSeconds: 601.9 }, 'oldestAgeSeconds is 601, above 600'],
    [{ failureRatio: 1 }, 'failureRatio is 1, above 0.5'],
  ])('is unhealthy by %o', (changes, reason) => {
    expect(judged(changes)).toEqual({ status: 'unhealthy', reasons: [reason] })
  })

  it('is the worst of its numbers, with a reason for each, the worst first', () => {
    expect(judged({ backlog: 20_000, oldestAgeSeconds: 700, failureRatio: 0.3 })).toEqual({
      status: 'unhealthy',
      reasons: [
        'oldestAgeSeconds is 700, above 600',
        'backlog is 20000, above 10000',
        'failureRatio is 0.3, above 0.1',
      ],
    })
  })

  it('does not depend on a failure in a quiet minute', () => {
    expect(judged({ failureRatio: 1, attempts: FEWEST_ATTEMPTS - 1 }).status).toBe('ok')
    expect(judged({ failureRatio: 1, attempts: FEWEST_ATTEMPTS }).status).toBe('unhealthy')
  })

  it('follows thresholds of its own', () => {
    const thresholds = { ...DEFAULT_THRESHOLDS, backlog: { degraded: 0, unhealthy: 2 } }
    expect(judge(WELL, thresholds).status).toBe('ok')
    expect(judge({ ...WELL, backlog: 1 }, thresholds).status).toBe('degraded')
    expect(judge({ ...WELL, backlog: 3 }, thresholds).status).toBe('unhealthy')
  })

  it('is the worst of several outboxes, and ok of none', () => {
    expect(worstOf([])).toBe('ok')
    expect(worstOf(['ok', 'degraded'])).toBe('degraded')
    expect(worstOf(['unhealthy', 'ok', 'degraded'])).toBe('unhealthy')
  })
})

describe.each(stores)('checking an outbox on $name', (kind) => {
  it('reads its numbers and its meter', async () => {
    const outbox = await PostedOutbox.open(kind)
    try {
      const post = outbox.post()
      expect(await checkOutbox(post, OUTBOX_NOW)).toEqual({ status: 'ok', reasons: [] })
      await outbox.insert({ createdAt: OUTBOX_NOW - 100_000_000n })
      expect(await checkOutbox(post, OUTBOX_NOW)).toEqual({
        status: 'degraded',
        reasons: ['oldestAgeSeconds is 100, above 60'],
      })
      for (let n = 0; n < 20; n++) post.meter.failed(0.1)
      expect(await checkOutbox(post, OUTBOX_NOW)).toMatchObject({ status: 'unhealthy' })
    } finally {
      await outbox.close()
    }
  })

  it('finds one unhealthy whose table is none, or lacks columns', async () => {
    const place = await kind.fresh()
    const db = openDatabase(place.url, { poolSize: 1 })
    const outbox = await PostedOutbox.open(kind)
    try {
      const post = outbox.post({ db, layout: () => readLayout(db.dialect, {}, onDatabase(db)) })
      expect(await checkOutbox(post, OUTBOX_NOW)).toEqual({
        status: 'unhealthy',
        reasons: [expect.stringMatching(/^its table is no outbox: table 'outbox_messages' does not exist/)],
      })
      const table = 'CREATE TABLE outbox_messages (id bigint PRIMARY KEY, payload text)'
      await db.transaction('test', (tx) => db.script(tx, table))
      expect(await checkOutbox(post, OUTBOX_NOW)).toEqual({
        status: 'unhealthy',
        reasons: [expect.stringMatching(/^its table is no outbox: .* it lacks tenant_id, event_type, /)],
      })
      // It was one when it was looked at.
      const dropped = outbox.post({ db })
      expect(await checkOutbox(dropped, OUTBOX_NOW)).toEqual({
        status: 'unhealthy',
        reasons: [expect.stringMatching(/^its database cannot be read: /)],
      })
    } finally {
      await outbox.close()
      await db.close()
      await place.dispose()
    }
  })
})

describe('checking an outbox whose database is away', () => {
  it('finds it unhealthy, with the reason and without the password', async () => {
    const db = openDatabase('postgres://app:secret@127.0.0.1:9/none', { poolSize: 1 })
    const outbox = await PostedOutbox.open({ name: 'sqlite', fresh: freshSqlite })
    try {
      const post = outbox.post({ db, layout: () => readLayout('postgres', {}, onDatabase(db)) })
      const { status, reasons } = await checkOutbox(post, OUTBOX_NOW)
      expect(status).toBe('unhealthy')
      expect(reasons.join()).toMatch(/^its database cannot be read: .*ECONNREFUSED/)
      expect(reasons.join()).not.toContain('secret')
    } finally {
      await db.close()
      await outbox.close()
    }
  })
})
