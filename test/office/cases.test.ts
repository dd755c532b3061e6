/**
 * What becomes of letters, of the cases of live items and of the books beside them, at the places where queue calls and
 * acts of the office meet.
 */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { History } from '../../src/history/history.ts'
import type { Letter, LetterId } from '../../src/letters/letter.ts'
import { readLetterById } from '../../src/letters/lists/detail.ts'
import { fileLetters } from '../../src/letters/lists/texts.ts'
import { EngineDirectory } from '../../src/queues/engines/engine-directory.ts'
import type { FailedRun, Run } from '../../src/queues/queue.ts'
import { type Integer, sql } from '../../src/store/database.ts'
import { settle } from '../world/letter-acts.ts'
import { LetterStore } from '../world/letter-store.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { retain } from '../world/retain.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

const ATTEMPTS = sql('test.attempts', 'SELECT count(*) AS rows FROM bartleby.letter_attempts')
const TO_FILE = sql(
  'test.toFile',
  'SELECT sum(last_letter - first_letter + 1) AS letters FROM bartleby.letters_to_file',
)
const IDS = sql('test.letterIds', 'SELECT id FROM bartleby.letters ORDER BY id')
const PUSH_IDS = sql('test.pushLetterIds', {
  postgres: `SELECT setval('bartleby.letter_ids', 1000000)`,
  sqlite: `UPDATE serials SET last = 1000000 WHERE name = 'letters'`,
})

const LOCK_LETTERS = sql('test.lockAllLetters', {
  postgres: 'SELECT id FROM bartleby.letters FOR UPDATE',
  sqlite: '',
})
const LOCK_WAITS = sql('test.waitingForLocks', {
  postgres: `SELECT count(DISTINCT pid) AS found FROM pg_locks JOIN pg_stat_activity USING (pid)
             WHERE NOT granted AND pg_stat_activity.datname = current_database()`,
  sqlite: '',
})
const DEADLOCKS = sql('test.deadlocks', {
  postgres: 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  sqlite: '',
})
const TOUCH = sql('test.touch', 'UPDATE bartleby.letters SET version = version')

const run: Run = {
  engine: 'hmac',
  operation: 'rotate',
  instanceId: 'publisher',
  correlationId: 'one-for-all',
  actor: 'worker',
  durationMs: 1,
  input: null,
  output: null,
}
const failed: FailedRun = { ...run, errorClass: 'Error', errorMessage: 'no key', errorStack: null }

let store: LetterStore
afterEach(() => store.close())

const count = async (statement: typeof ATTEMPTS): Promise<number> => {
  const [row] = await store.db.session('test', (session) =>
    session.rows<Record<string, Integer | null>>(statement),
  )
  return Number(Object.values(row ?? {})[0] ?? 0)
}

async function letters(): Promise<Letter[]> {
  return store.db.session('test', async (session) => {
    const all: Letter[] = []
    for (const { id } of await session.rows<{ id: Integer }>(IDS)) {
      // A number that the store gave for a letter.
      const letter = await readLetterById(session, BigInt(id) as LetterId)
      if (letter !== null) all.push(letter)
    }
    return all
  })
}

async function onlyLetter(): Promise<Letter> {
  const all = await letters()
  expect(all).toHaveLength(1)
  return all[0] ?? expect.fail('there is no letter')
}

async function expectClean(): Promise<void> {
  expect(await violationsIn(store.db, { clock: store.clock })).toEqual([])
}

/** Items that a worker failed on once, and that wait for their next attempt. */
async function failOnce(queueName: string, items: number): Promise<void> {
  await store.queues.produce({
    queueName,
    items: Array.from({ length: items }, (_, n) => ({ payload: `item ${n}` })),
  })
  const { items: leased } = await store.lease(queueName)
  await store.queues.retry({ queueName, items: leased.map(({ id }) => ({ id, run: failed })) })
}

/** A letter of the queue, in its dead queue. */
async function die(queueName: string, items = 1): Promise<void> {
  await store.queues.produce({
    queueName,
    items: Array.from({ length: items }, (_, n) => ({ payload: `item ${n}` })),
  })
  const leased = await store.lease(queueName)
  await store.queues.retry({ queueName, items: leased.items.map(({ id }) => ({ id, dead: true })) })
}

const sendBack = async (letter: Letter): Promise<void> => {
  await store.letters.retry(letter, { edit: null, notes: null, actor: 'operator' })
}

const kinds = stores.map((kind) => reused(kind))

describe.each(kinds)('the case of a live item on $name', (kind) => {
  it.each([
    [
      'deleted',
      async () => {
        const items = await store.queues.listItems({ queueName: 'jobs' })
        await store.queues.deleteItems({ queueName: 'jobs', ids: items.map(({ id }) => id) })
      },
    ],
    ['cleared', () => store.queues.clear({ queueName: 'jobs', queue: true })],
    ['removed with its queue', () => store.queues.delete({ queueName: 'jobs' })],
  ])('is closed when the item is %s', async (_, remove) => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs')
    await failOnce('jobs', 3)
    expect(await count(ATTEMPTS)).toBe(3)
    await remove()
    // Rows of deleted queues are removed by a run.
    await vi.waitFor(async () => expect(await count(ATTEMPTS)).toBe(0), { timeout: PATIENCE_MS })
    await expectClean()
  })

  it('keeps the failures of a letter whose item is deleted', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs', 9)
    await die('jobs')
    await sendBack(await onlyLetter())
    const { items } = await store.lease('jobs')
    await store.queues.retry({ queueName: 'jobs', items: items.map(({ id }) => ({ id, run: failed })) })
    await store.queues.clear({ queueName: 'jobs', queue: true })
    // That failure, and the one it was captured with: the removal of the item stands on the letter.
    expect(await count(ATTEMPTS)).toBe(2)
    expect(await onlyLetter()).toMatchObject({ status: 'Pending', errorClass: 'Cleared' })
    await expectClean()
  })

  it('counts the deliveries of an item that is taken back', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs', 9)
    await die('jobs')
    await sendBack(await onlyLetter())
    for (let delivery = 0; delivery < 2; delivery++) {
      const { items } = await store.lease('jobs')
      await store.queues.retry({ queueName: 'jobs', items: items.map(({ id }) => ({ id, run: failed })) })
    }
    const restored = await store.letters.change(await onlyLetter(), {
      status: 'Pending',
      notes: null,
      actor: 'operator',
    })
    expect(restored.dequeueCount).toBe(3)
    expect((await onlyLetter()).dequeueCount).toBe(3)
    await expectClean()
  })

  it('takes any text that an operator gives', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs', 9)
    await die('jobs')
    const odd = 'a\0b \ud800 c'
    await store.letters.retry(await onlyLetter(), { edit: null, notes: odd, actor: odd })
    expect((await onlyLetter()).notes).toBe('a\ufffdb \ufffd c')
    await expectClean()
  })

  it('takes any text that a worker fails with', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs', 9)
    const odd = 'a\0b \ud800 c'
    const worst: FailedRun = {
      ...failed,
      errorClass: odd,
      errorMessage: odd + 'x'.repeat(1_000_000),
      errorStack: odd,
      actor: odd,
      correlationId: odd,
      instanceId: odd,
    }
    await store.queues.produce({ queueName: 'jobs', items: [{ payload: 'x' }] })
    for (const dead of [false, true, true]) {
      const { items } = await store.lease('jobs')
      await store.queues.retry({
        queueName: 'jobs',
        items: items.map(({ id }) => ({ id, dead, run: worst })),
      })
      if (dead) await sendBack(await onlyLetter())
    }
    const { items } = await store.lease('jobs')
    const runs = new Map(
      items.map(({ id }) => [id, { ...run, correlationId: odd, actor: odd, instanceId: odd }]),
    )
    await store.queues.complete({ queueName: 'jobs', ids: items.map(({ id }) => id), runs })
    expect((await onlyLetter()).confirmedAt).not.toBeNull()
    await expectClean()
  })
})

describe.each(kinds)('history on $name', (kind) => {
  it('gives letters of one correlation id different keys when they die at once, and again', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs', 9)
    await store.queues.produce({
      queueName: 'jobs',
      items: [{ payload: '1' }, { payload: '2' }, { payload: '3' }],
    })
    for (let round = 0; round < 2; round++) {
      const { items } = await store.lease('jobs')
      await store.queues.retry({
        queueName: 'jobs',
        items: items.map(({ id }, n) => ({
          id,
          dead: true,
          run: { ...failed, instanceId: `instance-${n}` },
        })),
      })
      for (const letter of await letters()) await sendBack(letter)
    }
    const { items } = await new History(
      store.db,
      store.clock,
      new EngineDirectory({ context: 'publisher' }),
    ).list({ correlationId: failed.correlationId })
    const keys = items.map(({ rowKey }) => rowKey)
    expect(keys).toHaveLength(12)
    expect(keys).toEqual([...new Set(keys)].sort().reverse())
    await expectClean()
  })

  it('has every run of a worker on a dead queue', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs', 9)
    await die('jobs', 3)
    const { items } = await store.lease('jobs-dead')
    const [done, again, rejected] = items.map(({ id }) => id)
    const queueName = 'jobs-dead'
    await store.queues.complete({ queueName, ids: [done ?? ''], runs: new Map([[done ?? '', run]]) })
    await store.queues.retry({
      queueName,
      items: [
        { id: again ?? '', run: failed },
        { id: rejected ?? '', run: failed, dead: true },
      ],
    })
    const rows = await store.history()
    expect(rows.filter(({ operation }) => operation === 'rotate')).toHaveLength(3)
    // What completed it is also the record of its resolution; a failure is not.
    const acts = rows.filter(({ letter_version }) => Number(letter_version) === 2)
    expect(acts.map(({ operation }) => operation)).toEqual(['rotate', 'discard'])
    expect((await letters()).map(({ status, resolution }) => [status, resolution])).toEqual([
      ['Resolved', 'complete'],
      ['Pending', null],
      ['Resolved', 'discard'],
    ])
    // One that fails here and lives on was a failure of that worker, not of the item.
    expect(await count(ATTEMPTS)).toBe(0)
    await expectClean()
  })
})

describe.each(kinds)('search on $name', (kind) => {
  it('is told of a new letter and an old one that died again, not of all between them', async () => {
    store = await LetterStore.open(kind)
    await store.createQueue('jobs', 9)
    await die('jobs')
    await sendBack(await onlyLetter())
    await store.db.session('test', (session) => session.rows(PUSH_IDS))
    await die('jobs', 1)
    expect(await letters()).toHaveLength(2)
    expect(await count(TO_FILE)).toBeLessThan(100)
  })
})

describe.each(kinds)('a letter that retention removed on $name', (kind) => {
  const DAYS = 90
  const forget = async () => {
    store.clock.advance(BigInt(DAYS + 1) * 86_400_000_000n)
    expect((await retain(store, { retentionDays: DAYS })).letters).toBe(1)
  }

  it('is a new letter when the item of its retry dies after all', async () => {
    store = await LetterStore.open(kind)
    const settings = { leaseTimeout: '1m', expireTimeout: '8760h', requestedPartitions: 1 }
    await store.queues.create({ ...settings, queueName: 'jobs-dead' })
    await store.queues.create({ ...settings, queueName: 'jobs', deadQueue: 'jobs-dead' })
    await die('jobs')
    const before = await onlyLetter()
    await sendBack(before)
    await forget()
    const { items } = await store.lease('jobs')
    await store.queues.retry({ queueName: 'jobs', items: items.map(({ id }) => ({ id, dead: true })) })
    const after = await onlyLetter()
    expect(after).toMatchObject({ status: 'Pending', version: 1 })
    expect(after.rowKey).not.toBe(before.rowKey)
    await expectClean()
    await sendBack(after)
    await expectClean()
  })

  it('is not missed when the item of its retry completes', async () => {
    store = await LetterStore.open(kind)
    const settings = { leaseTimeout: '1m', expireTimeout: '8760h', requestedPartitions: 1 }
    await store.queues.create({ ...settings, queueName: 'jobs-dead' })
    await store.queues.create({ ...settings, queueName: 'jobs', deadQueue: 'jobs-dead' })
    await die('jobs')
    await sendBack(await onlyLetter())
    const first = await store.lease('jobs')
    await store.queues.retry({ queueName: 'jobs', items: first.items.map(({ id }) => ({ id, run: failed })) })
    await forget()
    const { items } = await store.lease('jobs')
    await store.queues.retry({ queueName: 'jobs', items: items.map(({ id }) => ({ id, run: failed })) })
    const again = await store.lease('jobs')
    await store.queues.complete({ queueName: 'jobs', ids: again.items.map(({ id }) => id) })
    expect(await letters()).toEqual([])
    expect(await count(ATTEMPTS)).toBe(0)
    await expectClean()
  })
})

describe('a letter whose item is completed just now', () => {
  it('cannot be restored, and neither call waits for the other', async () => {
    store = await LetterStore.open(kinds.find(({ name }) => name === 'postgres') ?? expect.fail('none'))
    await store.createQueue('jobs', 9)
    await die('jobs')
    await sendBack(await onlyLetter())
    const letter = await onlyLetter()
    const { items } = await store.lease('jobs')
    // Both want the letter, in this order, when it is let go; the item is the completion's already.
    const [restored, completed] = await store.db.transaction('test', async (tx) => {
      await tx.rows(LOCK_LETTERS)
      const restoring = store.letters.change(letter, { status: 'Pending', notes: null, actor: 'operator' })
      const restored = expect(restoring).rejects.toMatchObject({ code: 'letter_in_flight' })
      await expect.poll(() => count(LOCK_WAITS)).toBe(1)
      const completed = store.queues.complete({ queueName: 'jobs', ids: items.map(({ id }) => id) })
      await expect.poll(() => count(LOCK_WAITS)).toBe(2)
      return [restored, completed] as const
    })
    await restored
    await completed
    expect(await count(DEADLOCKS)).toBe(0)
    expect((await onlyLetter()).confirmedAt).not.toBeNull()
    await expectClean()
  })
})

describe.each(kinds)('letters that can be searched on $name', (kind) => {
  it('are removed when their time is over, and everything else works on', async () => {
    store = await LetterStore.open(kind)
    const ids = await store.captureMany(3)
    await fileLetters(store.db, 100)
    for (const id of ids) await settle(store, id, 'Resolved')
    store.clock.advance(91n * 86_400_000_000n)
    expect(await retain(store, { retentionDays: 90 })).toMatchObject({ letters: 3 })
    expect(await store.db.transaction('test', (tx) => tx.run(TOUCH))).toBe(0)
    await expectClean()
  })
})
