import { afterEach, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { violationsIn } from '../../../test/world/verified.ts'
import { silentLog } from '../../core/log.ts'
import { officeRuns } from '../../letters/work.ts'
import { type Integer, sql } from '../../store/database.ts'
import { StoreQueues } from '../queues.ts'

const LEASED = sql('test.leased', 'SELECT count(*) AS found FROM bartleby.items WHERE leased = 1')
const LOCK_LETTERS = sql('test.lockLetters', {
  postgres: 'SELECT id FROM bartleby.letters FOR UPDATE',
  sqlite: '',
})
const LOCK_WAITS = sql('test.lockWaits', {
  postgres: `SELECT count(DISTINCT pid) AS found FROM pg_locks JOIN pg_stat_activity USING (pid)
             WHERE NOT granted AND pg_stat_activity.datname = current_database()`,
  sqlite: '',
})
/** Leases take their time, completions do not. */
const SLOW_LEASES = `
  CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
  CREATE TRIGGER slowly BEFORE UPDATE ON bartleby.items FOR EACH STATEMENT EXECUTE FUNCTION slowly()`

/** The store on which cycles overlap. */
const postgres = () => stores.find(({ name }) => name === 'postgres') ?? expect.fail('there is no PostgreSQL')

/** Connections of a store under test. */
const POOL_SIZE = 8

/** Cycles are formed at the end of a turn of the event loop. */
const nextTurn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10))

let store: LetterStore
afterEach(() => store.close())

async function expectClean(): Promise<void> {
  expect(await violationsIn(store.db, { clock: store.clock })).toEqual([])
}

/** How many transactions wait for a lock. */
const lockWaits = () => count(LOCK_WAITS)

async function count(statement: typeof LEASED): Promise<number> {
  const [row] = await store.db.session('test', (session) => session.rows<{ found: Integer }>(statement))
  return Number(row?.found)
}

/** A second server on the same store. */
const secondServer = (): StoreQueues =>
  new StoreQueues(store.db, store.clock, silentLog, {
    registers: store.registers,
    runs: officeRuns(store.db, store.clock, silentLog),
    maxPendingRequests: 100,
    dedupeWindowUs: 1n,
  })

describe('a cycle that is rolled back', () => {
  it('leases nothing afterwards, though its lease waited for that of another cycle', async () => {
    store = await LetterStore.open(postgres())
    const { queues, db } = store
    await store.createQueue('jobs')
    await queues.produce({ queueName: 'jobs', items: Array.from({ length: 30 }, () => ({ payload: 'x' })) })
    const first = await queues.lease({ queueName: 'jobs', clientId: 'first', batchSize: 8 })
    const done = first.items.map(({ id }) => id)
    await queues.complete({ queueName: 'jobs', ids: done })
    await db.transaction('test', (tx) => db.script(tx, SLOW_LEASES))

    const slow = queues.lease({ queueName: 'jobs', clientId: 'slow', batchSize: 5 })
    await new Promise((resolve) => setTimeout(resolve, 100))
    // In one cycle, beside the first: what is not leased any more, and a lease that waits for the slow one.
    const late = queues.complete({ queueName: 'jobs', ids: done })
    const next = queues.lease({ queueName: 'jobs', clientId: 'next', batchSize: 5 })
    await expect(late).rejects.toThrow('does not exist')
    const given = [...(await slow).items, ...(await next).items].length

    await db.transaction('test', (tx) => db.script(tx, 'DROP FUNCTION slowly CASCADE'))
    expect(await count(LEASED)).toBe(given)
    await expectClean()
  })
})

describe('cycles that wait for a connection', () => {
  it('do nothing twice and deny nothing that was done, though one began before the other', async () => {
    store = await LetterStore.open(postgres())
    const { queues, db } = store
    await store.createQueue('jobs')
    await queues.produce({ queueName: 'jobs', items: Array.from({ length: 30 }, () => ({ payload: 'x' })) })
    const { items } = await queues.lease({ queueName: 'jobs', clientId: 'first', batchSize: 8 })
    await db.transaction('test', (tx) => db.script(tx, SLOW_LEASES))

    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const holding = Array.from({ length: POOL_SIZE }, () => db.session('test', () => held))
    const slow = queues.lease({ queueName: 'jobs', clientId: 'slow', batchSize: 5 })
    await nextTurn()
    const done = queues.complete({ queueName: 'jobs', ids: items.map(({ id }) => id) })
    const next = queues.lease({ queueName: 'jobs', clientId: 'next', batchSize: 5 })
    await nextTurn()
    release()
    await Promise.all([done, ...holding])
    const given = [...(await slow).items, ...(await next).items].length

    await db.transaction('test', (tx) => db.script(tx, 'DROP FUNCTION slowly CASCADE'))
    expect(await count(LEASED)).toBe(given)
    await expectClean()
  })
})

describe.each(stores)('a server that does not know yet that a queue holds letters, on $name', (kind) => {
  it('completes a letter that was leased elsewhere', async () => {
    store = await LetterStore.open(kind)
    const { queues } = store
    const settings = { leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 }
    await queues.create({ ...settings, queueName: 'late' })
    const other = secondServer()
    try {
      // It has the queue in mind as it is now.
      await other.produce({ queueName: 'late', items: [{ payload: 'x' }] })
      await queues.create({ ...settings, queueName: 'jobs', deadQueue: 'late' })
      await queues.produce({ queueName: 'jobs', items: [{ payload: 'y' }] })
      const dying = await store.lease('jobs')
      await queues.retry({ queueName: 'jobs', items: dying.items.map(({ id }) => ({ id, dead: true })) })
      const leased = await store.lease('late')
      expect(leased.items).toHaveLength(2)
      await other.complete({ queueName: 'late', ids: leased.items.map(({ id }) => id) })
      expect((await store.statuses()).real).toEqual([0, 1, 0])
      await expectClean()
    } finally {
      await other.stop()
    }
  })
})

describe.each(stores)('a server whose queue was changed by another one, on $name', (kind) => {
  it('leases, produces and completes by the new settings, and loses nothing', async () => {
    store = await LetterStore.open(kind)
    const { queues } = store
    const settings = { queueName: 'jobs', expireTimeout: '1h', requestedPartitions: 1 }
    await queues.create({ ...settings, leaseTimeout: '1m' })
    const other = secondServer()
    try {
      await other.produce({ queueName: 'jobs', items: [{ payload: 'one' }] })
      const [first] = (await other.lease({ queueName: 'jobs', clientId: 'c', batchSize: 5 })).items
      await queues.update({ ...settings, leaseTimeout: '10m' })
      // In one cycle.
      const leasing = other.lease({ queueName: 'jobs', clientId: 'c', batchSize: 5 })
      const producing = other.produce({ queueName: 'jobs', items: [{ payload: 'two' }] })
      const completing = other.complete({ queueName: 'jobs', ids: [first?.id ?? ''] })
      await Promise.all([producing, completing])
      const { items } = await leasing
      expect(items.map(({ payload }) => Buffer.from(payload).toString())).toEqual(['two'])
      expect((items[0]?.leaseDeadline ?? 0n) - store.clock.now()).toBe(600_000_000n)
      await other.complete({ queueName: 'jobs', ids: items.map(({ id }) => id) })
      const { partitions } = await queues.stats('jobs')
      expect(partitions).toMatchObject([{ total: 0, totalLeased: 0 }])
      await expectClean()
    } finally {
      await other.stop()
    }
  })
})

describe.each(stores)('a server that may let a hundred requests wait, on $name', (kind) => {
  it('takes three hundred that come at once, because one cycle has room for all of them', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs')
    const server = secondServer()
    try {
      const calls = Array.from({ length: 300 }, () =>
        server.produce({ queueName: 'jobs', items: [{ payload: 'x' }] }),
      )
      await Promise.all(calls)
      const { items } = await server.lease({ queueName: 'jobs', clientId: 'c', batchSize: 1_000 })
      expect(items).toHaveLength(300)
      await Promise.all(items.map(({ id }) => server.complete({ queueName: 'jobs', ids: [id] })))
      await expectClean()
    } finally {
      await server.stop()
    }
  })
})

describe('a letter in its dead queue', () => {
  it('leaves the books right when its lease is extended just before it is given back', async () => {
    store = await LetterStore.open(postgres())
    const { queues, db } = store
    const queueName = 'jobs-dead'
    await store.createQueue('jobs', 9)
    await queues.produce({ queueName: 'jobs', items: [{ payload: 'x' }] })
    const dying = await store.lease('jobs')
    await queues.retry({ queueName: 'jobs', items: dying.items.map(({ id }) => ({ id, dead: true })) })
    const [leased] = (await store.lease(queueName)).items
    const id = leased?.id ?? expect.fail('the letter was not leased')
    const other = secondServer()
    try {
      // Both want the letter, in this order, when it is let go.
      const both = await db.transaction('test', async (tx) => {
        await tx.rows(LOCK_LETTERS)
        const extended = other.extend({ queueName, ids: [id], leaseTimeout: '10m' })
        await expect.poll(lockWaits).toBe(1)
        const back = queues.retry({ queueName, items: [{ id }] })
        await expect.poll(lockWaits).toBe(2)
        return [extended, back]
      })
      await Promise.allSettled(both)
      await expectClean()
    } finally {
      await other.stop()
    }
  })
})
