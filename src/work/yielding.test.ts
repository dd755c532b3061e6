import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { SqliteDatabase } from '../store/sqlite.ts'
import { Yielding } from './yielding.ts'

/** Longer than it counts before it judges. */
const LOOK_MS = 420

describe('the yielding of redrives', () => {
  it('rests beside traffic of others, and does not count its own', async () => {
    const db = new SqliteDatabase(':memory:')
    try {
      const yielding = new Yielding(db)
      const { signal } = new AbortController()
      const calls = async (verb: string) => {
        for (let i = 0; i < 60; i++) await db.session(verb, async () => {})
        await pause(LOOK_MS)
        await yielding.rest(0, signal)
      }
      // Before the first batch: nothing that a run is beside.
      await calls('office.open')
      expect(yielding.isLive).toBe(false)
      await calls('redrive.batch')
      expect(yielding.isLive).toBe(false)
      await calls('queues.lease')
      expect(yielding.isLive).toBe(true)
      const startedMs = performance.now()
      await yielding.rest(10, signal)
      expect(performance.now() - startedMs).toBeGreaterThan(50)
    } finally {
      await db.close()
    }
  })

  it('ends its rest when its server stops', async () => {
    const db = new SqliteDatabase(':memory:')
    try {
      await new Yielding(db).rest(1_000, AbortSignal.abort())
    } finally {
      await db.close()
    }
  })
})
