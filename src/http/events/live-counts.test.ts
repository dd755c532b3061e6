/** What becomes of clients that do not read, on streams whose far end is in the hands of the test. */
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import { silentLog } from '../../core/log.ts'
import { TestClock } from '../../core/test-clock.ts'
import { LiveCounts } from './live-counts.ts'

/** Takes what is written, and never says that it has. */
const unread = () => new Writable({ write: () => {} })
const read = () => new Writable({ write: (_chunk, _encoding, done) => done() })

function liveCounts() {
  const clock = new TestClock()
  clock.freeze(instant(1_800_000_000_000_000n))
  let Pending = 0
  const counts = new LiveCounts({
    read: async () => ({ Pending: ++Pending, Resolved: 0, Expired: 0, captured: 0, unconfirmed: 0 }),
    redrives: async () => [],
    clock,
    log: silentLog,
  })
  return { clock, counts }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a client that does not read', () => {
  it('is given up before much has gathered for it, and others are not', async () => {
    const { clock, counts } = liveCounts()
    const [stuck, well] = [unread(), read()]
    counts.add(stuck, null)
    counts.add(well, null)
    let most = 0
    for (let looks = 0; looks < 1_000 && !stuck.destroyed; looks++) {
      clock.advance(1_000_001n)
      await turn()
      most = Math.max(most, stuck.writableLength)
    }
    expect(stuck.destroyed).toBe(true)
    expect(most).toBeLessThan(17_000)
    expect(well.destroyed).toBe(false)
    well.destroy()
  })

  it('does not keep a server that stops', async () => {
    const { counts } = liveCounts()
    const [stuck, well] = [unread(), read()]
    counts.add(stuck, null)
    counts.add(well, null)
    counts.stop()
    expect([stuck.destroyed, well.writableEnded]).toEqual([true, true])
  })
})
