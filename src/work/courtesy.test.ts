import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { SqliteDatabase } from '../store/sqlite.ts'
import { Courtesy } from './courtesy.ts'

/** Longer than it counts before it judges. */
const LOOK_MS = 420

describe('the courtesy of redrives', () => {
  it('rests beside traffic of others, and does not count its own', async () => {
    const db = new SqliteDatabase(':memory:')
    try {
      const courtesy = new Courtesy(db)
      const { signal } = new AbortController()
      const calls = async (verb: string) => {
        for (let i = 0; i < 60; i++) await db.session(verb, async () => {})
        await pause(LOOK_MS)
        await courtesy.rest(0, signal)
      }
      // Before the first batch: nothing that a run is beside.
      await calls('office.open')
      expect(courtesy.isLive).toBe(false)
      await calls('redrive.batch')
      expect(courtesy.isLive).toBe(false)
      await calls('queues.lease')
      expect(courtesy.isLive).toBe(true)
      const startedMs = performance.now()
      await courtesy.rest(10, signal)
      expect(performance.now() - startedMs).toBeGreaterThan(50)
    } finally {
      await db.close()
    }
  })

  it('ends its rest when its server stops', async () => {
    const db = new SqliteDatabase(':memory:')
    try {
      await new Courtesy(db).rest(1_000, AbortSignal.abort())
    } finally {
      await db.close()
    }
  })
})
