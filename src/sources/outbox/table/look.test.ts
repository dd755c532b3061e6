import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { OUTBOX_NOW, PostedOutbox, type TestRow } from '../../../../test/world/outbox-post.ts'
import { freshPostgres, stores } from '../../../../test/world/stores.ts'
import { readBacklog } from '../served/health.ts'

const SECOND = 1_000_000n
const ago = (seconds: number) => OUTBOX_NOW - BigInt(seconds) * SECOND

/** Six that wait, three of them failed; one dead; three done, one of them discarded after it died. */
const KNOWN: readonly TestRow[] = [
  { createdAt: ago(10) },
  { createdAt: ago(20), nextAttemptAt: 'never', orderingKey: 'line' },
  { createdAt: ago(90), claimedUntil: ago(-30) },
  { createdAt: ago(120), retryCount: 1, nextAttemptAt: ago(-60), error: 'refused' },
  // Given back, or left behind by a dispatcher of before.
  { createdAt: ago(40), retryCount: 2, error: 'refused' },
  { createdAt: ago(30), retryCount: 3, nextAttemptAt: ago(5), claimedUntil: ago(-30) },
  { createdAt: ago(900), retryCount: 6, deadAt: ago(300), error: 'gone' },
  { createdAt: ago(1_000), processedAt: ago(990) },
  { createdAt: ago(1_000), retryCount: 2, processedAt: ago(900) },
  { createdAt: ago(2_000), retryCount: 6, deadAt: ago(1_500), processedAt: ago(100) },
]

describe.each(stores)('the backlog of an outbox on $name', (kind) => {
  let outbox: PostedOutbox
  afterEach(() => outbox.close())

  const look = () =>
    outbox.db.session('test', (session) => readBacklog(session, outbox.layout, outbox.clock.now()))

  describe('in a table of our own', () => {
    beforeEach(async () => {
      outbox = await PostedOutbox.open(kind)
    })

    it('is nothing at first', async () => {
      expect(await look()).toEqual({ backlog: 0, failedPending: 0, oldestAgeSeconds: 0, dead: 0 })
    })

    it('is what a known set of rows makes it', async () => {
      await outbox.insert(...KNOWN)
      expect(await look()).toEqual({ backlog: 6, failedPending: 3, oldestAgeSeconds: 120, dead: 1 })
    })

    it('grows older with time', async () => {
      await outbox.insert({ createdAt: ago(1) })
      outbox.clock.advance(1_500_000n)
      expect((await look()).oldestAgeSeconds).toBe(2.5)
    })

    it('is not younger than nothing when a clock of elsewhere is ahead', async () => {
      await outbox.insert({ createdAt: ago(-100) })
      expect(await look()).toMatchObject({ backlog: 1, oldestAgeSeconds: 0 })
    })
  })

  describe('in a table of others', () => {
    beforeEach(async () => {
      outbox = await PostedOutbox.openAdopted(kind)
    })

    it('is what a known set of rows makes it', async () => {
      const tenantId = 'b06f9f5e-4b0c-4a5f-9d4c-3f8f6a1f0a11'
      for (const [number, row] of KNOWN.entries()) {
        await outbox.insert({ ...row, tenantId, id: `00000000-0000-4000-8000-00000000000${number}` })
      }
      expect(await look()).toEqual({ backlog: 6, failedPending: 3, oldestAgeSeconds: 120, dead: 1 })
    })
  })
})

describe('a time that no calendar has', () => {
  it('does not keep the backlog from being counted', async () => {
    const outbox = await PostedOutbox.open({ name: 'postgres', fresh: freshPostgres })
    try {
      await outbox.execute(
        `INSERT INTO outbox_messages (tenant_id, event_type, payload, created_at) VALUES ('t', 'e', '', '-infinity')`,
      )
      const look = outbox.db.session('test', (session) => readBacklog(session, outbox.layout, OUTBOX_NOW))
      expect(await look).toMatchObject({ backlog: 1, oldestAgeSeconds: 0 })
    } finally {
      await outbox.close()
    }
  })
})
