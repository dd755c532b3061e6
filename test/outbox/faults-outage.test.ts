/** What a dispatcher owes while PostgreSQL is away or answers late: it lives on, holds what it has, asks in moderation, and can be stopped. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SystemClock } from '../../src/core/system-clock.ts'
import { STOP_PROMISED_MS } from '../world/limits.ts'
import { type Door, doorTo } from '../world/proxy.ts'
import { freshPostgres } from '../world/stores.ts'
import { FaultBench, Gate, SECOND } from './faults-bench.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Everything has arrived, and nobody is held. */
const DONE = 'processed_at IS NOT NULL AND claimed_by IS NULL AND claimed_until IS NULL'

let bench: FaultBench
let door: Door
beforeEach(async () => {
  bench = await FaultBench.open({ name: 'postgres', fresh: freshPostgres })
  door = await doorTo(bench.outbox.url)
})
afterEach(async () => {
  door.open()
  await bench.close()
  await door.close()
})

describe('a dispatcher in a process that has nothing else', () => {
  let child: ChildProcess | undefined
  afterEach(async () => {
    if (child?.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'close')
    child.kill('SIGKILL')
    await ended
  })

  /** Runs it behind the door; gives what it has said. */
  function run(verb: 'start' | 'drain'): { said(): string } {
    const program = ['test/outbox/lone-dispatcher.ts', door.url, verb]
    child = spawn('node_modules/.bin/node', program, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      said += chunk
    })
    return { said: () => said }
  }

  /** Shuts the store while a message is being delivered: what came of it cannot be written. */
  async function outage(said: () => string): Promise<void> {
    await expect.poll(said).toContain('first')
    door.shut()
    await pause(3_000)
    expect(child?.exitCode).toBeNull()
    expect(await bench.count(DONE)).toBe(0)
  }

  it('keeps it alive while the store is away, and delivers when that is back', async () => {
    await bench.outbox.insert({ payload: 'first' })
    const { said } = run('start')
    await outage(said)
    await bench.outbox.insert({ payload: 'second' })
    door.open()
    await bench.until(DONE, 2)
    expect(said()).toBe('first\nsecond\n')
  })

  it('keeps it alive while it drains, until that is done', async () => {
    await bench.outbox.insert({ payload: 'first' })
    const { said } = run('drain')
    const ended = child === undefined ? undefined : once(child, 'close')
    await outage(said)
    door.open()
    await bench.until(DONE, 1)
    expect(await ended).toEqual([0, null])
    expect(said()).toBe('first\ndrained\n')
  })
})

describe('a stop while the store is away or slow', () => {
  it('does not wait for a drain that waits for the store', async () => {
    await bench.outbox.insert({ payload: 'a1', line: 'a' })
    await bench.outbox.insert({ payload: 'a2', line: 'a' })
    const gate = new Gate()
    const each = bench.dispatcher(gate.deliver, { url: door.url })
    let isDrained = false
    const drained = each.drain().then(() => {
      isDrained = true
    })
    await gate.untilBegun(1)
    door.shut()
    gate.open()
    await expect.poll(() => bench.errors.length).toBeGreaterThan(1)
    expect(isDrained).toBe(false)
    const stoppedAtMs = performance.now()
    await each.stop()
    expect(performance.now() - stoppedAtMs).toBeLessThan(STOP_PROMISED_MS)
    await drained
  })

  it('gives back what a drain still claims while it is stopped', async () => {
    const blocker = new pg.Client({ connectionString: bench.outbox.url })
    await blocker.connect()
    await bench.outbox.insert({ payload: 'late' })
    const gate = new Gate()
    gate.open()
    const each = bench.dispatcher(gate.deliver)
    await each.drain()
    await bench.outbox.insert({ payload: 'later' })
    await blocker.query('BEGIN; LOCK TABLE outbox_messages IN ACCESS EXCLUSIVE MODE')
    const drained = each.drain()
    const waiting = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%outbox_messages%'`
    await expect.poll(async () => (await bench.outbox.query(waiting)).length).toBeGreaterThan(0)
    const stopped = each.stop()
    await pause(100)
    await blocker.query('COMMIT')
    await blocker.end()
    await Promise.all([stopped, drained])
    expect(gate.begun).toEqual(['late'])
    expect(await bench.count('processed_at IS NULL AND claimed_by IS NULL AND claim_count = 0')).toBe(1)
  })
})

describe('a renewal that fails though the store is there', () => {
  let migration: pg.Client
  beforeEach(async () => {
    migration = new pg.Client({ connectionString: bench.outbox.url })
    await migration.connect()
  })
  afterEach(() => migration.end())

  /** A delivery that lasts until its signal, or the gate, ends it; statements of the dispatcher may take a fifth of a second. */
  async function deliverUnderLock() {
    await bench.outbox.insert({ payload: 'long' })
    const url = `${bench.outbox.url}?options=${encodeURIComponent('-c statement_timeout=200')}`
    const gate = new Gate()
    const ends: string[] = []
    const each = bench.dispatcher(
      async (message, signal) => {
        signal.addEventListener('abort', () => ends.push(String(signal.reason)))
        await gate.deliver(message)
      },
      { url, claimSeconds: 30, deliveryTimeoutSeconds: 3_600, pollIntervalSeconds: 3_600 },
    )
    await each.start()
    await gate.untilBegun(1)
    await migration.query('BEGIN; LOCK TABLE outbox_messages IN ACCESS EXCLUSIVE MODE')
    return { gate, ends }
  }

  const failures = () => bench.said.filter((line) => /could not be renewed/.test(line)).length

  it('loses no claim: it is renewed when the table is free again', async () => {
    const { gate, ends } = await deliverUnderLock()
    bench.clock.advance(12n * SECOND)
    await expect.poll(failures).toBeGreaterThan(0)
    bench.clock.advance(8n * SECOND)
    const before = failures()
    await expect.poll(failures).toBeGreaterThan(before)
    expect(ends).toEqual([])
    await migration.query('COMMIT')
    const until = async () => (await bench.outbox.rows())[0]?.claimed_until
    const claimed = await until()
    await expect
      .poll(() => {
        bench.clock.advance(SECOND / 4n)
        return until()
      })
      .not.toEqual(claimed)
    bench.clock.advance(15n * SECOND)
    expect(ends).toEqual([])
    gate.open()
    await bench.until(DONE, 1)
    expect(gate.begun).toEqual(['long'])
  })

  it('ends a delivery only when its claim is about to end', async () => {
    const { gate, ends } = await deliverUnderLock()
    bench.clock.advance(12n * SECOND)
    await expect.poll(failures).toBeGreaterThan(0)
    bench.clock.advance(17n * SECOND)
    await pause(300)
    expect(ends).toEqual([])
    await expect
      .poll(() => {
        bench.clock.advance(SECOND / 20n)
        return ends
      })
      .toEqual([expect.stringMatching('the claim could not be renewed')])
    await migration.query('COMMIT')
    gate.open()
  })
})

describe('a result that cannot be written', () => {
  beforeEach(async () => {
    // As a server whose disk is full: an outage for who settles, while renewals go through, and are counted.
    await bench.outbox.query('CREATE TABLE renewals (at timestamptz DEFAULT now())')
    await bench.outbox.query(`CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.processed_at IS NOT NULL THEN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END IF;
      IF NEW.claimed_by = OLD.claimed_by THEN INSERT INTO renewals DEFAULT VALUES; END IF;
      RETURN NEW; END $$`)
    await bench.outbox.query(
      'CREATE TRIGGER watch BEFORE UPDATE ON outbox_messages FOR EACH ROW EXECUTE FUNCTION watch()',
    )
  })
  const renewals = async () => (await bench.outbox.query('SELECT 1 FROM renewals')).length

  it('is still ours: its claim is renewed, and nobody delivers it twice', async () => {
    await bench.outbox.insert({ payload: 'kept' })
    const gate = new Gate()
    gate.open()
    await bench.dispatcher(gate.deliver, { claimSeconds: 30 }).start()
    await expect.poll(() => bench.errors.length).toBeGreaterThan(0)
    const other = bench.dispatcher(gate.deliver, { name: 'other' })
    for (let tens = 1; tens <= 6; tens++) {
      bench.clock.advance(11n * SECOND)
      await expect.poll(renewals).toBe(tens)
      await other.drain()
    }
    expect(gate.begun).toEqual(['kept'])
    await bench.outbox.query('DROP TRIGGER watch ON outbox_messages')
    await bench.until(DONE, 1)
    expect(gate.begun).toEqual(['kept'])
  })

  it('is tried, and its claim renewed, in moderation, however long that lasts', async () => {
    await bench.outbox.insert({ payload: 'kept' })
    const gate = new Gate()
    gate.open()
    const each = bench.dispatcher(gate.deliver, {
      ...{ url: door.url, clock: new SystemClock(), claimSeconds: 1, pollIntervalSeconds: 3_600 },
    })
    await each.start()
    await expect.poll(() => bench.errors.length).toBeGreaterThan(0)
    await pause(1_500)
    // A third of a second after the last one at the soonest, and no claim of a second without one.
    expect(await renewals()).toBeGreaterThanOrEqual(2)
    expect(await renewals()).toBeLessThanOrEqual(6)
    // The claim ends while nothing can be reached.
    door.shut()
    const { knocks } = door
    await pause(3_000)
    // Renewals, results, and an ear for notifications.
    expect(door.knocks - knocks).toBeGreaterThan(5)
    expect(door.knocks - knocks).toBeLessThanOrEqual(60)
    await bench.outbox.query('DROP TRIGGER watch ON outbox_messages')
    door.open()
    await bench.until(DONE, 1)
    expect(gate.begun).toEqual(['kept'])
  })
})

describe('a drain beside a dispatcher that is started', () => {
  it('does not take its next poll away', async () => {
    const gate = new Gate()
    gate.open()
    const each = bench.dispatcher(gate.deliver, { pollIntervalSeconds: 5 })
    await each.start()
    // It rests: whoever writes would have to announce it.
    const waiting = async () =>
      (await bench.outbox.query('SELECT waiting FROM outbox_messages_wake'))[0]?.waiting
    await expect.poll(waiting).toBe(true)
    await pause(100)
    await each.drain()
    await bench.outbox.insert({ payload: 'unannounced' })
    await pause(100)
    expect(gate.begun).toEqual([])
    bench.clock.advance(5n * SECOND + 1n)
    await expect.poll(() => gate.begun).toEqual(['unannounced'])
    await bench.until(DONE, 1)
  })
})
