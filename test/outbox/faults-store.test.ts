/** Stores and tables in trouble: the dispatcher says so, waits, and goes on by itself; nothing is lost or stuck. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { outboxSchema } from '../../src/sources/outbox/table/schema.ts'
import { type Door, doorTo } from '../world/proxy.ts'
import { reused } from '../world/reused-store.ts'
import { freshPostgres, stores } from '../world/stores.ts'
import { FaultBench, Gate, SECOND, textOf } from './faults-bench.ts'

/** Nobody is held, and everything has arrived. */
const DONE = 'processed_at IS NOT NULL AND claimed_by IS NULL AND claimed_until IS NULL'

const kinds = stores.map((kind) => reused(kind))

describe.each(kinds)('an outbox on $name', (kind) => {
  let bench: FaultBench
  beforeEach(async () => {
    bench = await FaultBench.open(kind)
  })
  afterEach(() => bench.close())

  it('that lacks columns is refused with their names', async () => {
    await bench.outbox.query('DROP TABLE outbox_messages')
    await bench.outbox.query('CREATE TABLE outbox_messages (id integer, tenant_id text, payload text)')
    await expect(bench.dispatcher(async () => {}).start()).rejects.toMatchObject({
      code: 'outbox_columns_missing',
      message: expect.stringMatching(/event_type.*idempotency_key.*claim_count/),
    })
    await bench.outbox.query('DROP TABLE outbox_messages')
    await expect(bench.dispatcher(async () => {}).start()).rejects.toMatchObject({
      code: 'outbox_table_missing',
    })
  })

  it('that is dropped and made anew is served again', async () => {
    const gate = new Gate()
    gate.open()
    const each = bench.dispatcher(gate.deliver)
    await each.start()
    await bench.outbox.insert({ payload: 'before' })
    each.wake()
    await bench.until(DONE, 1)
    await bench.outbox.query('DROP TABLE outbox_messages')
    each.wake()
    await expect.poll(() => bench.errors.length).toBeGreaterThan(0)
    const statements = outboxSchema(kind.name).split(/;\n/)
    for (const statement of statements) if (statement.trim() !== '') await bench.outbox.query(statement)
    await bench.outbox.insert({ payload: 'after' })
    each.wake()
    await bench.until(DONE, 1)
    expect(gate.begun).toEqual(['before', 'after'])
  })

  it('that takes no writes for a while gets everything when it does', async () => {
    const gate = new Gate()
    await bench.outbox.insert({ payload: 'a1', line: 'a' })
    await bench.outbox.insert({ payload: 'a2', line: 'a' })
    await bench.outbox.insert({ payload: 'b' })
    const each = bench.dispatcher(gate.deliver, { concurrency: 2 })
    await each.start()
    await gate.untilBegun(2)
    await bench.store.refuseWrites()
    // Delivered, and not written down.
    gate.open()
    await expect.poll(() => bench.errors.length).toBeGreaterThan(1)
    expect(await bench.count(DONE)).toBe(0)
    await bench.store.acceptWrites()
    await bench.outbox.insert({ payload: 'c' })
    each.wake()
    await bench.until(DONE, 4)
    expect(gate.begun.toSorted()).toEqual(['a1', 'a2', 'b', 'c'])
  })

  it('that refuses what came of one message settles all others', async () => {
    const stubborn = await bench.outbox.insert({ payload: 'stubborn' })
    const refuse = `WHEN (NEW.id = ${stubborn} AND NEW.processed_at IS NOT NULL)`
    if (kind.name === 'postgres') {
      await bench.outbox.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`)
      await bench.outbox.query(`CREATE TRIGGER refuse BEFORE UPDATE ON outbox_messages FOR EACH ROW ${refuse}
        EXECUTE FUNCTION refuse()`)
    } else
      await bench.outbox.query(`CREATE TRIGGER refuse BEFORE UPDATE ON outbox_messages ${refuse}
        BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
    await bench.fill(50)
    const each = bench.dispatcher(async () => {})
    await each.start()
    await bench.until(DONE, 50)
    await bench.outbox.insert({ payload: 'afterwards' })
    each.wake()
    await bench.until(DONE, 51)
    expect((await bench.outbox.row(stubborn)).processed_at).toBeNull()
    expect(bench.errors.join()).toMatch(/not this one/)
  })

  it('whose dead message has one before it that goes out again still holds back those behind', async () => {
    for (const payload of ['1', '2', '3']) await bench.outbox.insert({ payload, line: 'a' })
    await bench.outbox.query(
      `UPDATE outbox_messages SET dead_at = ${kind.name === 'postgres' ? 'now()' : '1'} WHERE payload = $1`,
      Buffer.from('2'),
    )
    const gate = new Gate()
    gate.open()
    const each = bench.dispatcher(gate.deliver)
    await each.drain()
    await each.drain()
    expect(gate.begun).toEqual(['1'])
  })

  it('is not read into memory, however long it is: two batches are held at most', async () => {
    await bench.fill(1_000, (n) => `CASE WHEN ${n} % 2 = 0 THEN 'line-' || (${n} % 60) END`)
    const held: number[] = []
    const each = bench.dispatcher(
      async ({ id }) => {
        if (Number(id) % 20 === 0) held.push(await bench.count('claimed_by IS NOT NULL'))
      },
      { batchSize: 20, concurrency: 4 },
    )
    await each.start()
    await bench.until(DONE, 1_000)
    expect(held).toHaveLength(50)
    expect(Math.max(...held)).toBeLessThanOrEqual(40)
    expect(Math.max(...held)).toBeGreaterThan(10)
  })
})

describe('an outbox of others on postgres', () => {
  it('that keeps short errors only gets them cut, and nothing stays unsettled', async () => {
    const bench = await FaultBench.open({ name: 'postgres', fresh: freshPostgres })
    try {
      await bench.outbox.query('ALTER TABLE outbox_messages ALTER COLUMN error TYPE varchar(20)')
      const id = await bench.outbox.insert()
      await bench
        .dispatcher(async () => {
          throw new Error('x'.repeat(500))
        })
        .drain()
      expect(await bench.outbox.row(id)).toMatchObject({
        retry_count: 1,
        claimed_by: null,
        error: `Error: ${'x'.repeat(13)}`,
      })
    } finally {
      await bench.close()
    }
  })
})

describe('a PostgreSQL that goes away under a dispatcher', () => {
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

  it('is waited for: everything arrives, nothing stays claimed, no line stands still', async () => {
    await bench.fill(600, (n) => `CASE WHEN ${n} % 3 = 0 THEN 'line-' || (${n} % 30) END`)
    const orders = new Map<string, number[]>()
    const each = bench.dispatcher(
      async ({ id, orderingKey, retryCount }) => {
        await pause(2)
        if (Number(id) % 50 === 0 && retryCount === 0) throw new Error('not now')
        if (orderingKey === null) return
        orders.set(orderingKey, [...(orders.get(orderingKey) ?? []), Number(id)])
      },
      { url: door.url, batchSize: 30, concurrency: 4, baseRetryDelaySeconds: 1, pollIntervalSeconds: 1 },
    )
    await each.start()
    for (let cuts = 0; cuts < 6; cuts++) {
      await pause(150)
      door.shut()
      await pause(50 * cuts)
      door.open()
      bench.clock.advance(3n * SECOND)
    }
    await expect
      .poll(
        async () => {
          bench.clock.advance(5n * SECOND)
          return bench.count(DONE)
        },
        { interval: 100 },
      )
      .toBe(600)
    expect(bench.errors.length).toBeGreaterThan(0)
    for (const ids of orders.values()) {
      const firsts = [...new Set(ids)]
      expect(firsts).toEqual(firsts.toSorted((a, b) => a - b))
    }
    expect(await bench.count('retry_count > 1 OR dead_at IS NOT NULL')).toBe(0)
  })

  it('only from one of two dispatchers makes no delivery go on twice', async () => {
    for (const payload of ['a', 'b', 'c', 'd']) await bench.outbox.insert({ payload })
    const underway = new Map<string, number>()
    const doubles: string[] = []
    const receive = async (text: string, signal: AbortSignal, endless: boolean) => {
      underway.set(text, (underway.get(text) ?? 0) + 1)
      if ((underway.get(text) ?? 0) > 1) doubles.push(text)
      try {
        if (!endless) return
        const { promise, reject } = Promise.withResolvers<never>()
        signal.addEventListener('abort', () => reject(signal.reason))
        await promise
      } finally {
        underway.set(text, (underway.get(text) ?? 0) - 1)
      }
    }
    const begun: string[] = []
    // Two at a time: two of the four wait in its hands, and must not be begun after the claim has lapsed.
    const cutOff = bench.dispatcher(
      async (message, signal) => {
        begun.push(textOf(message))
        await receive(textOf(message), signal, true)
      },
      { url: door.url, concurrency: 2, claimSeconds: 12, deliveryTimeoutSeconds: 600, name: 'cut-off' },
    )
    await cutOff.start()
    await expect.poll(() => begun.length).toBe(2)
    door.shut()
    const other = bench.dispatcher(async (message, signal) => receive(textOf(message), signal, false))
    for (let looks = 0; looks < 30; looks++) {
      bench.clock.advance(SECOND / 2n)
      await pause(10)
      await other.drain()
    }
    expect(doubles).toEqual([])
    expect(begun).toHaveLength(2)
    await bench.until(DONE, 4)
    door.open()
  })
})
