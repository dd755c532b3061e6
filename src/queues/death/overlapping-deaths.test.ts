/** Deaths of one queue in two transactions at once: whichever ends first, letters are in the order of the calls. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import { violationsIn } from '../../../test/world/verified.ts'
import { silentLog } from '../../core/log.ts'
import { newRegisters } from '../../letters/registers.ts'
import { officeRuns } from '../../letters/work.ts'
import { type Integer, sql } from '../../store/database.ts'
import { openDatabase } from '../../store/open.ts'
import { StoreQueues } from '../queues.ts'

/** The store on which cycles overlap. */
const postgres = stores.find(({ name }) => name === 'postgres') ?? expect.fail('there is no PostgreSQL')

/** A second cycle begins when so much has gathered. */
const MANY = 10

const LOCK_ITEMS = sql('test.lockItems', {
  postgres: 'SELECT id FROM bartleby.items WHERE payload = ANY($1::bytea[]) ORDER BY id FOR UPDATE',
  sqlite: '',
})
const LOCK_WAITS = sql('test.deathWaits', {
  postgres: `SELECT count(DISTINCT pid) AS found FROM pg_locks JOIN pg_stat_activity USING (pid)
             WHERE NOT granted AND pg_stat_activity.datname = current_database()`,
  sqlite: '',
})
const IN_ORDER = sql('test.lying', {
  postgres: `SELECT convert_from(payload, 'UTF8') AS payload FROM bartleby.letters WHERE part IS NOT NULL ORDER BY part, shelf, serial`,
  sqlite: '',
})
/** The first that tries to file a letter of the first call loses a race. */
const LOSE_ONE_RACE = `
  CREATE SEQUENCE races;
  CREATE FUNCTION lose_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.payload = 'first-0' AND nextval('races') = 1 THEN
      RAISE EXCEPTION 'lost' USING ERRCODE = '40001';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER lose_one BEFORE INSERT ON bartleby.letters FOR EACH ROW EXECUTE FUNCTION lose_one()`

let place: FreshStore
let store: LetterStore
beforeEach(async () => {
  place = await postgres.fresh()
  store = await LetterStore.open({ ...postgres, fresh: async () => place })
  await store.createQueue('jobs', 1)
  // What they die of is on file: who files it first holds up the others until its commit.
  await store.queues.retry({ queueName: 'jobs', items: await leased('before') })
  const { items } = await store.lease('jobs-dead')
  await store.queues.complete({ queueName: 'jobs-dead', ids: items.map(({ id }) => id) })
})
afterEach(() => store.close())

const payloads = (call: string): string[] => Array.from({ length: MANY }, (_, i) => `${call}-${i}`)

/** The items of a call, leased. */
async function leased(call: string): Promise<readonly { readonly id: string }[]> {
  const { queues } = store
  await queues.produce({ queueName: 'jobs', items: payloads(call).map((payload) => ({ payload })) })
  const { items } = await queues.lease({ queueName: 'jobs', clientId: call, batchSize: MANY })
  return items.map(({ id }) => ({ id }))
}

const lockWaits = async (): Promise<number> => {
  const [row] = await store.db.session('test', (session) => session.rows<{ found: Integer }>(LOCK_WAITS))
  return Number(row?.found)
}

/** What `act` gives, done while the items of a call are locked. */
const whileLocked = <T>(call: string, act: () => Promise<T>): Promise<T> =>
  store.db.transaction('test', async (tx) => {
    await tx.rows(
      LOCK_ITEMS,
      payloads(call).map((text) => Buffer.from(text)),
    )
    return act()
  })

/** Two calls whose items die; the second is over while the first is held up, and then `meanwhile`. */
async function killBoth(meanwhile: () => Promise<void> = async () => {}): Promise<void> {
  const { queues } = store
  const [first, second] = [await leased('first'), await leased('second')]
  const firstOver = await whileLocked('first', async () => {
    const dying = queues.retry({ queueName: 'jobs', items: first })
    await expect.poll(lockWaits).toBe(1)
    await queues.retry({ queueName: 'jobs', items: second })
    await meanwhile()
    return { dying }
  })
  await firstOver.dying
}

async function expectInOrder(): Promise<void> {
  const rows = await store.db.session('test', (session) => session.rows<{ payload: string }>(IN_ORDER))
  expect(rows.map(({ payload }) => payload)).toEqual([...payloads('first'), ...payloads('second')])
  await expectClean()
}

async function expectClean(): Promise<void> {
  expect(await violationsIn(store.db, { clock: store.clock })).toEqual([])
}

describe('deaths that overlap', () => {
  it('do not wait for each other, and their letters lie in the order of the calls', async () => {
    await killBoth()
    await expectInOrder()
  })

  it('keep that order when the first of them is run again', async () => {
    await store.db.transaction('test', (tx) => store.db.script(tx, LOSE_ONE_RACE))
    await killBoth()
    await expectInOrder()
  })

  it('are leased from the dead queue in that order', async () => {
    let early: Promise<readonly string[]> = Promise.resolve([])
    const lease = async (clientId: string): Promise<readonly string[]> => {
      const asked = { queueName: 'jobs-dead', clientId, batchSize: MANY }
      return (await store.queues.lease(asked)).items.map(({ payload }) => Buffer.from(payload).toString())
    }
    await killBoth(async () => {
      early = lease('early')
    })
    expect(await early).toEqual(payloads('first'))
    expect(await lease('late')).toEqual(payloads('second'))
  })

  it('are leased in that order also from a dead queue that was configured while they overlapped', async () => {
    const { queues } = store
    const settings = { leaseTimeout: '1m', expireTimeout: '240h', requestedPartitions: 1 }
    const kill = (items: readonly { readonly id: string }[]) => queues.retry({ queueName: 'jobs', items })
    const calls = [
      await leased('held'),
      await leased('beside'),
      await leased('first'),
      await leased('second'),
    ]
    const [held = [], beside = [], first = [], second = []] = calls
    const { firstOver, early } = await whileLocked('first', async () => {
      const { heldOver, firstOver } = await whileLocked('held', async () => {
        const heldOver = kill(held)
        await expect.poll(lockWaits).toBe(1)
        await kill(beside)
        await queues.create({ ...settings, queueName: 'other-dead' })
        await queues.update({ ...settings, queueName: 'jobs', deadQueue: 'other-dead', maxAttempts: 1 })
        const firstOver = kill(first)
        await expect.poll(lockWaits).toBe(2)
        return { heldOver, firstOver }
      })
      await heldOver
      await kill(second)
      const early = queues.lease({ queueName: 'other-dead', clientId: 'early', batchSize: MANY })
      await new Promise((resolve) => setTimeout(resolve, 200))
      return { firstOver, early }
    })
    await firstOver
    const given = (await early).items.map(({ payload }) => Buffer.from(payload).toString())
    expect(given).toEqual(payloads('first'))
  })

  it('wait for each other while somebody waits for letters', async () => {
    const { queues } = store
    const waiting = queues.lease({ queueName: 'jobs-dead', clientId: 'one', batchSize: 2 * MANY })
    const calls = [await leased('first'), await leased('second')]
    await Promise.all(calls.map((items) => queues.retry({ queueName: 'jobs', items })))
    const [given] = (await waiting).items
    expect(Buffer.from(given?.payload ?? []).toString()).toBe('first-0')
    await expectInOrder()
  })

  it('of the same items, which failed before, in two partitions: none waits with a lock for the turn of another', async () => {
    const { queues } = store
    const settings = { queueName: 'twins', leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 2 }
    await queues.create({ ...settings, deadQueue: 'jobs-dead', maxAttempts: 2 })
    for (const call of ['first', 'second'])
      await queues.produce({ queueName: 'twins', items: payloads(call).map((payload) => ({ payload })) })
    const leaseBoth = async () => {
      const lease = { queueName: 'twins', clientId: 'one', batchSize: MANY }
      const batches = [await queues.lease(lease), await queues.lease(lease)]
      return batches.map(({ partition, items }) => ({
        ...{ queueName: 'twins', partition },
        items: items.map(({ id }) => ({ id, errorClass: 'Jammed' })),
      }))
    }
    for (const call of await leaseBoth()) await queues.retry(call)
    const calls = (await leaseBoth()).sort((a, b) => a.partition - b.partition)
    const [one = expect.fail(), two = expect.fail()] = calls
    const answers = await whileLocked('first', async () => {
      const both = [queues.retry(one), queues.retry(two)]
      await expect.poll(lockWaits).toBe(1)
      const again = queues.retry(two)
      const settled = Promise.allSettled([...both, again])
      await new Promise((resolve) => setTimeout(resolve, 100))
      return { settled }
    })
    const refused = (await answers.settled).flatMap((answer) =>
      answer.status === 'rejected' ? String(answer.reason) : [],
    )
    expect(refused).toEqual([expect.stringMatching('does not exist')])
    await expectClean()
  })

  it('go back to their queue where its settings allow more attempts by then', async () => {
    const { queues } = store
    const items = await leased('first')
    const settings = { leaseTimeout: '1m', expireTimeout: '240h', requestedPartitions: 1 }
    const changed = queues.update({ ...settings, queueName: 'jobs', deadQueue: 'jobs-dead', maxAttempts: 2 })
    await Promise.all([queues.retry({ queueName: 'jobs', items }), changed])
    const [{ total: live = 0 } = {}] = (await queues.stats('jobs')).partitions
    const [{ total: dead = 0 } = {}] = (await queues.stats('jobs-dead')).partitions
    expect(live + dead).toBe(MANY)
  })
})

describe('deaths of a server with a single connection', () => {
  it('wait for their turn without it: the cycle before may need it to end its own', async () => {
    const { clock, queues: other } = store
    const db = openDatabase(place.url, { poolSize: 1 })
    const runs = officeRuns(db, clock, silentLog)
    const parts = { registers: newRegisters(), runs, maxPendingRequests: 1_000, dedupeWindowUs: 1n }
    const queues = new StoreQueues(db, clock, silentLog, parts)
    try {
      const settings = { leaseTimeout: '1m', expireTimeout: '240h', requestedPartitions: 1 }
      const tasks = { ...settings, queueName: 'tasks', deadQueue: 'jobs-dead' }
      await other.create({ ...tasks, maxAttempts: 3 })
      const items = [...payloads('lives'), ...payloads('dies')].map((payload) => ({ payload }))
      await queues.produce({ queueName: 'tasks', items })
      const leased = await queues.lease({ queueName: 'tasks', clientId: 'one', batchSize: 2 * MANY })
      const ids = leased.items.map(({ id }) => ({ id }))
      // Changed elsewhere: the first cycle has to read the settings anew, and is still before the second.
      await other.update({ ...tasks, maxAttempts: 4 })
      const living = queues.retry({ queueName: 'tasks', items: ids.slice(0, MANY) })
      await nextTurn()
      await nextTurn()
      const dying = ids.slice(MANY).map(({ id }) => ({ id, dead: true }))
      await Promise.all([living, queues.retry({ queueName: 'tasks', items: dying })])
    } finally {
      await queues.stop()
      await runs.stop()
      await db.close()
    }
    await expectClean()
  })
})
