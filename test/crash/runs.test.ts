/** Two servers share one PostgreSQL, and the one that is at a run is killed in the middle: the other ends it, and nothing is done twice. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { RedriveClient, type RedriveItem, RunClient, type RunItem } from '../../src/client/index.ts'
import { instant } from '../../src/core/clock.ts'
import { JOB } from '../../src/sources/webhooks/webhook.ts'
import { sql } from '../../src/store/database.ts'
import { LetterStore } from '../world/letter-store.ts'
import { PATIENCE_MS, sizeOf } from '../world/limits.ts'
import { type SpawnedServer, spawnServer } from '../world/server.ts'
import { type FreshStore, freshPostgres } from '../world/stores.ts'
import { systemNow } from '../world/time.ts'
import { violationsIn } from '../world/verified.ts'
import { WebhookWorld } from '../world/webhooks/world.ts'

const MANY = sizeOf(2_000, 20_000)
/** Rows that are made in one transaction. */
const CHUNK = 1_000
/** Removed a thousand at a time, so there are more of them. */
const ITEMS = 15 * MANY
/** Steps of a requeue are small, so that the crash is in the middle. */
const CONFIG = 'webhooks:\n  dlq:\n    batchSize: 50\n'
/** On a machine that does nothing else. */
const TAKEN_UP_MS = sizeOf(PATIENCE_MS, 5_000)
const PLAN = 'redrive-plan'
/** Letters of a plan: fewer, because a recipe takes a few milliseconds for each, so that the crash is in the middle. */
const PLANNED = sizeOf(500, MANY)
const SLOW = '$merge([$, {"sum": $sum([1..5000])}])'
const DAY_US = 86_400_000_000n
/** Before all that servers do now. */
const LONG_AGO = instant(1_600_000_000_000_000n)

/** Any number; locks of this sort are of one database. */
const HOLD = 18

/**
 * Holds the step that would take a run past its middle, with its row and all that it did, until that is released: a run may be quicker
 * than the look that finds it begun. Not by a locked letter: an expiry passes over those.
 */
async function holdInTheMiddle(
  { url }: FreshStore,
  kind: string,
  rows: number,
): Promise<{ release(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`
    SELECT pg_advisory_lock(${HOLD});
    CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${HOLD}); RETURN NEW; END $$;
    CREATE TRIGGER held BEFORE UPDATE ON bartleby.runs FOR EACH ROW
      WHEN (NEW.kind = '${kind}' AND NEW.done > ${rows / 2}) EXECUTE FUNCTION held()`)
  let isHeld = true
  return {
    async release() {
      if (!isHeld) return
      isHeld = false
      await client.query(`SELECT pg_advisory_unlock(${HOLD})`)
      await client.query('DROP FUNCTION held() CASCADE')
      await client.end()
    },
  }
}

/** Kills the server that was asked, once the run has begun; gives what `end` finds when the other server has ended it. */
async function killedInTheMiddle<T>(
  place: FreshStore,
  kind: string,
  ask: (url: string) => Promise<unknown>,
  end: (url: string, id: string) => Promise<T>,
  rows = MANY,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-runs-'))
  const config = join(folder, 'bartleby.yaml')
  await writeFile(config, CONFIG)
  const servers: SpawnedServer[] = []
  // Letters of a plan are looked at again once all of them are found, and a recipe takes its time for each.
  const hold = kind === PLAN ? null : await holdInTheMiddle(place, kind, rows)
  try {
    const options = { store: place.url, testApi: false, config }
    for (const server of await Promise.all([spawnServer(options), spawnServer(options)])) servers.push(server)
    const [victim, heir] = servers as [SpawnedServer, SpawnedServer]
    const runs = new RunClient({ url: heir.url })
    const call = ask(victim.url).catch(() => {})
    const begun = await vi.waitFor(
      async () => {
        const [run] = (await runs.list({ kinds: [kind] })).items
        if (run === undefined || run.counts.done === 0) throw new Error('it has not begun')
        return run
      },
      { timeout: PATIENCE_MS, interval: 5 },
    )
    await victim.kill9()
    const killedMs = performance.now()
    const before = await runs.read(begun.id)
    const isMidway = hold === null || before.counts.done <= rows / 2
    expect([before.state, isMidway]).toEqual(['running', true])
    await hold?.release()
    await vi.waitFor(async () => expect((await runs.read(begun.id)).resumed).toBe(1), {
      timeout: PATIENCE_MS,
      interval: 20,
    })
    expect(performance.now() - killedMs).toBeLessThan(TAKEN_UP_MS)
    await call
    return await vi.waitFor(() => end(heir.url, begun.id), { timeout: PATIENCE_MS, interval: 50 })
  } finally {
    for (const server of servers) await server.kill9()
    await hold?.release()
    await rm(folder, { recursive: true })
  }
}

/** The run, once it is done. */
async function done(url: string, id: string): Promise<RunItem> {
  const run = await new RunClient({ url }).read(id)
  expect(run.state).toBe('done')
  return run
}

/** The redrive, once it is planned. */
async function planned(url: string, id: string): Promise<RedriveItem> {
  const redrive = await new RedriveClient({ url }).read(id)
  expect(redrive.state).toBe('planned')
  return redrive
}

const ANY_ITEM = sql('test.anyItem', 'SELECT id FROM bartleby.items LIMIT 1')

/** A round that a server begins by itself is broken off by a kill; gives it as the server that was started then ended it. */
async function roundBrokenOff(
  place: FreshStore,
  kind: string,
  prepare: () => Promise<void>,
): Promise<RunItem> {
  const folder = await mkdtemp(join(tmpdir(), 'bartleby-rounds-'))
  const config = join(folder, 'bartleby.yaml')
  await writeFile(config, 'webhooks:\n  retention:\n    days: 1\n')
  const servers: SpawnedServer[] = []
  /** A server whose clock stands at an hour and some minutes from now; what that makes due is not waited for. */
  const started = async (minutes: number): Promise<SpawnedServer> => {
    const server = await spawnServer({ store: place.url, testApi: true, config })
    servers.push(server)
    if (servers.length === 1) await prepare()
    const freeze = new Date(Date.now() + (60 + minutes) * 60_000).toISOString()
    void post(server.url, '/v1/test.clock', { freeze }).catch(() => {})
    return server
  }
  try {
    const victim = await started(1)
    const begun = await vi.waitFor(
      async () => {
        const [run] = (await new RunClient({ url: victim.url }).list({ kinds: [kind] })).items
        if (run === undefined || run.counts.done === 0) throw new Error('it has not begun')
        return run
      },
      { timeout: PATIENCE_MS, interval: 5 },
    )
    await victim.kill9()
    // Later than the lease of who was killed.
    const runs = new RunClient({ url: (await started(2)).url })
    const run = await vi.waitFor(
      async () => {
        const run = await runs.read(begun.id)
        expect(run.state).toBe('done')
        return run
      },
      { timeout: PATIENCE_MS, interval: 50 },
    )
    expect([begun.state, run.resumed]).toEqual(['running', 1])
    return run
  } finally {
    for (const server of servers) await server.kill9()
    await rm(folder, { recursive: true })
  }
}

const post = (url: string, path: string, body: object) =>
  fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

// One after the other: how soon a run is taken up is measured.
describe('a run whose server is killed', () => {
  it(`requeues ${MANY} dead jobs, each of them once`, async () => {
    const place = await freshPostgres()
    const store = await WebhookWorld.open({ name: 'postgres', fresh: async () => place })
    try {
      store.clock.freeze(LONG_AGO)
      const channel = await store.channel('orders')
      const consumer = await store.consumer(channel, { type: 'pull' })
      for (let made = 0; made < MANY; made += CHUNK) await store.deadJobs(consumer, CHUNK)
      const path = `/api/webhooks/channels/orders/consumers/${encodeURIComponent(consumer.consumerId)}/requeue`
      const run = await killedInTheMiddle(place, 'webhook-requeue', (url) => post(url, path, {}), done)
      expect(run.counts).toEqual({ expected: MANY, done: MANY, skipped: 0, failed: 0, remaining: 0 })
      expect(await store.deadCount(consumer)).toBe(0)
      expect(await store.counted(consumer)).toEqual({ queued: MANY })
      expect(await violationsIn(store.db)).toEqual([])
    } finally {
      await store.close()
    }
  })

  it(`expires ${MANY} letters, each of them once`, async () => {
    const place = await freshPostgres()
    const store = await LetterStore.open({ name: 'postgres', fresh: async () => place })
    try {
      store.clock.freeze(LONG_AGO)
      for (let made = 0; made < MANY; made += CHUNK) await store.captureMany(CHUNK)
      const ask = (url: string) => post(url, '/api/dlq/expire', { olderThanDays: 1, engine: 'hmac' })
      const run = await killedInTheMiddle(place, 'expire', ask, done)
      expect(run.counts).toMatchObject({ done: MANY, skipped: 0, failed: 0 })
      expect((await store.statuses()).real).toEqual([0, 0, MANY])
      expect((await store.statuses()).counted).toEqual([0, 0, MANY])
      expect((await store.history()).filter(({ operation }) => operation === 'expire')).toHaveLength(MANY)
      expect(await violationsIn(store.db)).toEqual([])
    } finally {
      await store.close()
    }
  })

  it(`plans to send ${PLANNED} letters back, with each of them once`, async () => {
    const place = await freshPostgres()
    const store = await LetterStore.open({ name: 'postgres', fresh: async () => place })
    try {
      store.clock.freeze(LONG_AGO)
      await store.createQueue('orders')
      for (let made = 0; made < PLANNED; made += CHUNK)
        await store.captureMany(Math.min(CHUNK, PLANNED), () => ({ originalQueue: 'orders' }))
      const plan = { filter: { engine: 'hmac' }, action: 'retry', repair: { mapping: SLOW } }
      const ask = (url: string) => post(url, '/api/redrives', plan)
      const { counts, numbers } = await killedInTheMiddle(place, PLAN, ask, planned)
      expect(numbers).toMatchObject({ matched: PLANNED, eligible: PLANNED })
      expect(counts).toMatchObject({ planned: PLANNED, sent: 0, remaining: PLANNED })
      expect((await store.statuses()).real).toEqual([PLANNED, 0, 0])
      expect(await violationsIn(store.db)).toEqual([])
    } finally {
      await store.close()
    }
  })

  it(`removes ${ITEMS} items of a deleted queue`, async () => {
    const place = await freshPostgres()
    const store = await LetterStore.open({ name: 'postgres', fresh: async () => place })
    try {
      // The servers would let items of long ago die.
      store.clock.freeze(instant(systemNow()))
      await store.createQueue('orders')
      const items = Array.from({ length: CHUNK }, () => ({ payload: 'x' }))
      for (let made = 0; made < ITEMS; made += CHUNK)
        await store.queues.produce({ queueName: 'orders', items, requestTimeout: '1m' })
      const ask = (url: string) => post(url, '/v1/queues.delete', { queue_name: 'orders' })
      const run = await killedInTheMiddle(place, 'queue-removal', ask, done, ITEMS)
      expect(run).toMatchObject({ about: 'orders', counts: { done: ITEMS, skipped: 0, failed: 0 } })
      const left = await store.db.session('test', (session) => session.rows(ANY_ITEM))
      expect(left).toEqual([])
      expect(await violationsIn(store.db)).toEqual([])
    } finally {
      await store.close()
    }
  })
})

describe.concurrent('a round whose server is killed', () => {
  it(`removes ${MANY} letters that are past their time, and tells of each of them once`, async () => {
    const place = await freshPostgres()
    const store = await LetterStore.open({ name: 'postgres', fresh: async () => place })
    try {
      store.clock.freeze(LONG_AGO)
      for (let made = 0; made < MANY; made += CHUNK) await store.captureMany(CHUNK)
      store.clock.advance(2n * DAY_US)
      await store.letters.expireOlder({ olderThanDays: 1, engine: null, actor: 'nell' })
      const run = await roundBrokenOff(place, 'retention', async () => {})
      // Each letter, its capture and its expiry.
      expect(run.counts).toMatchObject({ done: 3 * MANY, skipped: 0, failed: 0 })
      expect((await store.statuses()).real).toEqual([0, 0, 0])
      expect((await store.history()).map(({ operation }) => operation)).toEqual(['remove'])
      expect(await violationsIn(store.db)).toEqual([])
    } finally {
      await store.close()
    }
  })

  it(`removes ${MANY} messages that are delivered, each with its job`, async () => {
    const place = await freshPostgres()
    const store = await WebhookWorld.open({ name: 'postgres', fresh: async () => place })
    try {
      const run = await roundBrokenOff(place, 'webhook-pruning', async () => {
        store.clock.freeze(LONG_AGO)
        const channel = await store.channel('orders')
        const consumer = await store.consumer(channel, { type: 'pull' })
        for (let made = 0; made < MANY; made += CHUNK) await store.send([consumer], CHUNK)
        await store.settleJobs(channel, JOB.delivered)
      })
      expect(run.counts).toMatchObject({ done: MANY, skipped: 0, failed: 0 })
      expect(await violationsIn(store.db)).toEqual([])
    } finally {
      await store.close()
    }
  })
})
