/**
 * Kill -9 in the middle of a redrive, again and again: another server, or the next one, goes on where it was, and in the end every
 * letter was sent exactly once, those of a key in order. 3,000 letters and 2 crashes; 100,000 and ten in `npm run prove`.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.ts'
import { PATIENCE_MS, sizeOf } from '../world/limits.ts'
import { buryKeyed } from '../world/many-deaths.ts'
import { MortalServer } from '../world/mortal-server.ts'
import { seededRandom } from '../world/random.ts'
import { countSent } from '../world/sent-letters.ts'
import { type SpawnedServer, type StandbyServer, standbyServer } from '../world/server.ts'
import { freshPostgres, freshSqlite } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

const LETTERS = sizeOf(3_000, 100_000)
const KILLS = sizeOf(2, 10)
/** Letters a second to each of two queues: slow enough that every crash is in the middle. After the last it is lifted. */
const RATE = LETTERS / (5 * KILLS)
/** Letters a second while a server is started: that takes as long as the machine likes, and the next crash must be in the middle too. */
const TRICKLE = 1
/** Another server is at it within this time; on a machine that is busy with other tests, it is at it at all. */
const TAKEN_UP_MS = sizeOf(PATIENCE_MS, 5_000)

interface Standing {
  readonly id: string
  readonly state: string
  readonly resumed: number
  readonly note: string | null
  readonly counts: { readonly planned: number; readonly sent: number; readonly remaining: number }
}

async function call(server: SpawnedServer, path: string, body?: object): Promise<Standing> {
  const response = await fetch(`${server.url}/api/redrives${path}`, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
  })
  const reply = (await response.json()) as { data: Standing }
  expect(response.ok, JSON.stringify(reply)).toBe(true)
  return reply.data
}

/** Asks again and again until `holds`; how long that took, and how much of it the machine made this test itself wait. */
async function until(
  server: SpawnedServer,
  id: string,
  holds: (standing: Standing) => boolean,
): Promise<{ readonly standing: Standing; readonly tookMs: number; readonly lateMs: number }> {
  const startedMs = performance.now()
  let lateMs = 0
  for (;;) {
    const askedMs = performance.now()
    const standing = await call(server, `/${id}`)
    const tookMs = performance.now() - startedMs
    if (holds(standing)) return { standing, tookMs, lateMs }
    if (tookMs > PATIENCE_MS) expect.fail(`nothing happens: ${JSON.stringify(standing)}`)
    await pause(10)
    lateMs += Math.max(0, performance.now() - askedMs - 30)
  }
}

const isOver = ({ state }: Standing): boolean => ['done', 'stopped', 'cancelled'].includes(state)

async function started(server: SpawnedServer): Promise<string> {
  const { id, counts } = await call(server, '', { filter: {}, action: 'retry', rate: RATE, order: 'key' })
  expect(counts.planned).toBe(LETTERS)
  await call(server, `/${id}/start`, {})
  return id
}

/** How many letters are sent when the `n`th crash comes: all crashes are in the first half. */
const dueAt = (n: number, jitter: number): number =>
  Math.floor((LETTERS * (n + 1)) / (2 * KILLS + 2) - jitter)

async function expectWhole(url: string): Promise<void> {
  const db = openDatabase(url, { poolSize: 1 })
  try {
    expect(await countSent(db)).toEqual({
      ...{ items: LETTERS, cases: LETTERS, letters: LETTERS, retries: LETTERS, retried: LETTERS },
      overtakers: 0,
    })
    expect(await violationsIn(db)).toEqual([])
  } finally {
    await db.close()
  }
}

// Most of it is waiting for leases to end: both at once.
describe.concurrent('a redrive whose server is killed', () => {
  it(`is gone on with by the other server on PostgreSQL, over ${KILLS} crashes`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const place = await freshPostgres()
    const options = { store: place.url, testApi: false }
    const standby = () => standbyServer(options)
    const spare: StandbyServer[] = [standby(), standby()]
    const running = new Set<SpawnedServer>()
    const open = async (): Promise<SpawnedServer> => {
      const server = await (spare.pop() ?? standby()).start()
      running.add(server)
      return server
    }
    const kill = async (server: SpawnedServer): Promise<void> => {
      await server.kill9()
      running.delete(server)
    }
    try {
      await buryKeyed(place.url, LETTERS, 50)
      let [owner, other] = [await open(), await open()]
      const id = await started(owner)
      let hits = 0
      for (let n = 0; n < KILLS; n++) {
        spare.push(standby())
        const due = dueAt(n, random.whole(0, LETTERS / 40))
        const { standing } = await until(other, id, ({ counts }) => counts.sent >= due)
        expect(standing.state, seed).toBe('running')
        // Every third crash is that of the server that only looks on.
        const isHit = n % 3 !== 1
        if (isHit) {
          await kill(owner)
          hits++
          const before = await call(other, `/${id}`)
          const went = await until(
            other,
            id,
            ({ resumed, counts }) => resumed === hits && counts.sent > before.counts.sent,
          )
          expect(went.tookMs, seed).toBeLessThan(TAKEN_UP_MS + went.lateMs)
          owner = other
        } else await kill(other)
        await call(owner, `/${id}/rate`, { rate: TRICKLE })
        other = await open()
        await call(other, `/${id}/rate`, { rate: RATE })
      }
      await call(other, `/${id}/rate`, { rate: null })
      const { standing } = await until(owner, id, isOver)
      expect(standing, seed).toMatchObject({
        ...{ state: 'done', resumed: hits },
        counts: { planned: LETTERS, sent: LETTERS, skipped: 0, failed: 0, remaining: 0 },
      })
      for (const server of running) await server.term()
      await expectWhole(place.url)
    } finally {
      for (const server of running) await server.kill9()
      for (const server of spare) await server.discard()
      await place.dispose()
    }
  })

  it(`is gone on with by the next one on SQLite, over ${KILLS} crashes`, async () => {
    const random = seededRandom()
    const seed = `BARTLEBY_TEST_SEED=${random.seed}`
    const place = await freshSqlite()
    const mortal = new MortalServer(place.url)
    try {
      await buryKeyed(place.url, LETTERS, 50)
      let server = await mortal.start()
      const id = await started(server)
      for (let n = 0; n < KILLS; n++) {
        const due = dueAt(n, random.whole(0, LETTERS / 40))
        const { standing } = await until(server, id, ({ counts }) => counts.sent >= due)
        expect(standing.state, seed).toBe('running')
        await mortal.kill()
        server = await mortal.start({ isLast: n === KILLS - 1 })
        const went = await until(
          server,
          id,
          ({ resumed, counts }) => resumed === n + 1 && counts.sent > standing.counts.sent,
        )
        expect(went.tookMs, seed).toBeLessThan(TAKEN_UP_MS + went.lateMs)
      }
      await call(server, `/${id}/rate`, { rate: null })
      const { standing } = await until(server, id, isOver)
      expect(standing, seed).toMatchObject({
        ...{ state: 'done', resumed: KILLS },
        counts: { planned: LETTERS, sent: LETTERS, skipped: 0, failed: 0, remaining: 0 },
      })
      expect(await server.term()).toBe(0)
      await expectWhole(place.url)
    } finally {
      await mortal.end()
      await place.dispose()
    }
  })
})
