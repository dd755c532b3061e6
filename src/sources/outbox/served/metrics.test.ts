import { describe, expect, it } from 'vitest'
import { PostedOutbox } from '../../../../test/world/outbox-post.ts'
import { freshSqlite } from '../../../../test/world/stores.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import { Metrics } from '../../../observe/metrics.ts'
import { openDatabase } from '../../../store/open.ts'
import { onDatabase } from '../sql/table.ts'
import { readLayout } from '../table/layout.ts'
import { OutboxReadings, outboxMetrics, servedOutboxes } from './readings.ts'

describe('outboxes as Prometheus sees them', () => {
  it('are nothing where there is none', () => {
    expect(outboxMetrics([])).toBe('')
  })

  it('have their numbers and the totals of their meters, each under its name', async () => {
    const outbox = await PostedOutbox.open({ name: 'sqlite', fresh: freshSqlite })
    try {
      const now = outbox.clock.now()
      await outbox.insert(
        { createdAt: now - 90_000_000n, retryCount: 1 },
        { createdAt: now },
        { createdAt: now, deadAt: now },
        { createdAt: now, processedAt: now },
      )
      const post = outbox.post()
      for (let n = 0; n < 3; n++) post.meter.dispatched(0.004)
      post.meter.failed(0.7)
      post.meter.duplicate()
      post.meter.duplicate()
      post.meter.conflict()
      const odd = outbox.post({ name: 'a "b"\n\\' })
      const metrics = new Metrics({
        depths: async () => [],
        sources: [servedOutboxes(() => [post, odd], outbox.clock)],
        clock: outbox.clock,
      })
      // Twice: what is shown is not added up.
      await metrics.text()
      const text = await metrics.text()
      const lines = text.split('\n').filter((line) => line.includes('{outbox="orders"'))
      const named = (line: string) => line.startsWith('bartleby_outbox_dispatch_seconds_bucket')
      expect(lines.filter((line) => !named(line))).toEqual([
        'bartleby_outbox_backlog{outbox="orders"} 2',
        'bartleby_outbox_failed_pending{outbox="orders"} 1',
        'bartleby_outbox_oldest_age_seconds{outbox="orders"} 90',
        'bartleby_outbox_dead{outbox="orders"} 1',
        'bartleby_outbox_throughput_per_second{outbox="orders"} 3',
        'bartleby_outbox_failure_ratio{outbox="orders"} 0.25',
        'bartleby_outbox_dispatched_total{outbox="orders"} 3',
        'bartleby_outbox_failures_total{outbox="orders"} 1',
        'bartleby_outbox_duplicates_total{outbox="orders"} 2',
        'bartleby_outbox_conflicts_total{outbox="orders"} 1',
        'bartleby_outbox_dispatch_seconds_sum{outbox="orders"} 0.712',
        'bartleby_outbox_dispatch_seconds_count{outbox="orders"} 4',
      ])
      expect(lines).toContain('bartleby_outbox_dispatch_seconds_bucket{outbox="orders",le="0.0025"} 0')
      expect(lines).toContain('bartleby_outbox_dispatch_seconds_bucket{outbox="orders",le="0.005"} 3')
      expect(lines).toContain('bartleby_outbox_dispatch_seconds_bucket{outbox="orders",le="1"} 4')
      expect(lines).toContain('bartleby_outbox_dispatch_seconds_bucket{outbox="orders",le="+Inf"} 4')
      expect(text).toContain('# TYPE bartleby_outbox_backlog gauge')
      expect(text).toContain('# TYPE bartleby_outbox_dispatched_total counter')
      expect(text).toContain('# TYPE bartleby_outbox_dispatch_seconds histogram')
      expect(text).toContain('bartleby_outbox_backlog{outbox="a \\"b\\"\\n\\\\"} 2')
      const names = text.split('\n').filter((line) => line.startsWith('# TYPE'))
      expect(new Set(names).size).toBe(names.length)
    } finally {
      await outbox.close()
    }
  })

  it('have only their totals while they cannot be read', async () => {
    const outbox = await PostedOutbox.open({ name: 'sqlite', fresh: freshSqlite })
    const db = openDatabase('postgres://app:secret@127.0.0.1:9/none', { poolSize: 1 })
    try {
      const post = outbox.post({ db, layout: () => readLayout('postgres', {}, onDatabase(db)) })
      post.meter.dispatched(0.1)
      const text = outboxMetrics(await new OutboxReadings(() => [post], new SystemClock()).read())
      expect(text).toContain('bartleby_outbox_dispatched_total{outbox="orders"} 1')
      expect(text).not.toContain('bartleby_outbox_backlog{')
    } finally {
      await db.close()
      await outbox.close()
    }
  })
})
