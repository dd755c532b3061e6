import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noting } from '../../../test/world/counted-statements.ts'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { isProof } from '../../../test/world/limits.ts'
import { stores } from '../../../test/world/stores.ts'
import { violationsIn } from '../../../test/world/verified.ts'
import { instant, later } from '../../core/clock.ts'
import { sql } from '../../store/database.ts'
import type { LetterSummary } from '../letter.ts'
import { inOffice } from '../work.ts'
import type { FailureReport } from './report.ts'
import { reportAgain } from './report-again.ts'

const MINUTE = 60_000_000n
const RETRY = { edit: null, notes: null, actor: 'nell' }

const lockItem = sql('test.lockItem', 'SELECT id FROM bartleby.items WHERE case_id = $1 FOR UPDATE')
const lockItemAtOnce = sql(
  'test.lockItemAtOnce',
  'SELECT id FROM bartleby.items WHERE case_id = $1 FOR UPDATE NOWAIT',
)
const lockLetterAtOnce = sql(
  'test.lockLetterAtOnce',
  'SELECT id FROM bartleby.letters WHERE id = $1 FOR UPDATE NOWAIT',
)
const readWaiting = sql('test.waitingForMe', {
  postgres: `SELECT pid FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))`,
  sqlite: '',
})

describe.each(stores)('a report about a letter that there is, on $name', (kind) => {
  let store: LetterStore
  let queues = 0
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(async () => {
    await storeIsSound()
    await store.close()
  })

  const freshQueue = async (maxAttempts = 0) => {
    const name = `reported-${queues++}`
    await store.createQueue(name, maxAttempts)
    return name
  }
  /** A first report, as its worker sent it, and the letter that it became. */
  const reported = async (changes: Partial<FailureReport> = {}) => {
    const report = store.report({ dequeueCount: 3, ...changes })
    const { letter, created } = await store.letters.capture(report)
    expect(created).toBe(true)
    store.clock.advance(MINUTE)
    return { report, letter }
  }
  const again = async (report: FailureReport, changes: Partial<FailureReport> = {}) => {
    const { letter, created } = await store.letters.capture({ ...report, ...changes })
    expect(created).toBe(false)
    return letter
  }
  const file = (letter: LetterSummary) => store.letters.get(letter)
  const operations = async (letter: LetterSummary) =>
    (await file(letter)).history.map(({ operation, letterVersion }) => `${operation} ${letterVersion}`)
  /** Nothing about the letter, its queue or the books is other than it was. */
  const changesNothing = async (letter: LetterSummary, act: () => Promise<unknown>) => {
    const before = await file(letter)
    await act()
    expect(await file(letter)).toEqual(before)
  }
  const storeIsSound = async () => {
    expect(await violationsIn(store.db, { clock: store.clock })).toEqual([])
  }
  /** The whole store is verified once at the end, and in a proof after each test. */
  const booksAreRight = async () => {
    const { counted, real } = await store.statuses()
    expect(counted).toEqual(real)
    if (isProof) await storeIsSound()
  }
  const retried = async (letter: LetterSummary) => {
    const receipt = await store.letters.retry(letter, RETRY)
    store.clock.advance(MINUTE)
    return receipt
  }
  const NEWER = (report: FailureReport) => ({
    lastFailureAt: later(report.lastFailureAt ?? store.clock.now(), MINUTE),
    errorMessage: 'the lock is jammed',
  })

  describe('that repeats what is on file', () => {
    it('answers with the letter and changes nothing', async () => {
      const { report, letter } = await reported()
      await changesNothing(letter, async () =>
        // What else the reporter says does not make it another failure.
        expect(await again(report, { dequeueCount: 9, correlationId: 'other' })).toEqual(letter),
      )
      await booksAreRight()
    })

    it('is known by its count of deliveries when it names no time', async () => {
      const { report, letter } = await reported({ lastFailureAt: null, firstFailureAt: null })
      await changesNothing(letter, () => again(report))
      expect(await again(report, { dequeueCount: 4 })).toMatchObject({ dequeueCount: 4 })
      expect(await operations(letter)).toEqual(['capture 2', 'capture 1'])
    })

    it('changes nothing when it arrives after the letter was sent back, and leaves it to be confirmed', async () => {
      const originalQueue = await freshQueue()
      for (const lastFailureAt of [store.clock.now(), null]) {
        const { report, letter } = await reported({ originalQueue, lastFailureAt })
        await retried(letter)
        await changesNothing(letter, () => again(report))
        const { partition, items } = await store.lease(originalQueue)
        await store.queues.complete({ queueName: originalQueue, partition, ids: items.map(({ id }) => id) })
        expect((await file(letter)).letter).toMatchObject({
          status: 'Resolved',
          confirmedAt: store.clock.now(),
        })
      }
      await booksAreRight()
    })

    it('changes nothing when newer failures were reported meanwhile', async () => {
      const { report, letter } = await reported({ errorStack: 'at unlock' })
      const second = { ...report, ...NEWER(report), dequeueCount: 4 }
      await again(second)
      await again(report, { lastFailureAt: null, dequeueCount: 5 })
      await changesNothing(letter, async () => {
        await again(report)
        await again(second)
        await again(report, { lastFailureAt: null, dequeueCount: 5 })
        await again(second, { lastFailureAt: null })
      })
      await booksAreRight()
    })
  })

  describe('that tells of a new failure', () => {
    it('adds an attempt to a pending letter, with the new error on top', async () => {
      const { report, letter } = await reported()
      const after = await again(report, { ...NEWER(report), dequeueCount: 4, errorClass: 'LockError' })
      expect(after).toMatchObject({
        rowKey: letter.rowKey,
        status: 'Pending',
        errorClass: 'LockError',
        errorMessage: 'the lock is jammed',
        dequeueCount: 4,
        firstFailureAt: letter.firstFailureAt,
        lastFailureAt: later(letter.lastFailureAt, MINUTE),
      })
      expect(after.signature).not.toBe(letter.signature)
      const { failures } = await file(letter)
      expect(failures.map(({ number, errorMessage }) => ({ number, errorMessage }))).toEqual([
        { number: 1, errorMessage: 'the key is gone' },
        { number: 2, errorMessage: 'the lock is jammed' },
      ])
      expect(await operations(letter)).toEqual(['capture 2', 'capture 1'])
      await booksAreRight()
    })

    it('is one by its time alone, its error alone, or its count alone when it names no time', async () => {
      const { report, letter } = await reported()
      await again(report, { lastFailureAt: store.clock.now() })
      await again(report, { errorMessage: 'other' })
      await again(report, { lastFailureAt: null, dequeueCount: 8 })
      expect((await file(letter)).failures).toHaveLength(4)
    })

    it('goes on from a count that grows, and adds one that begins anew', async () => {
      const { report } = await reported({ dequeueCount: 3 })
      const count = async (dequeueCount: number) => {
        store.clock.advance(MINUTE)
        return (await again(report, { lastFailureAt: store.clock.now(), dequeueCount })).dequeueCount
      }
      expect(await count(5)).toBe(5)
      expect(await count(2)).toBe(7)
      expect(await count(3)).toBe(8)
      expect(await count(2_147_483_647)).toBe(2_147_483_647)
      expect(await count(1)).toBe(2_147_483_647)
      await booksAreRight()
    })

    it('reopens a letter that was sent back, which is never confirmed then', async () => {
      const originalQueue = await freshQueue()
      const { report, letter } = await reported({ originalQueue })
      await retried(letter)
      const { partition, items } = await store.lease(originalQueue)
      const after = await again(report, { ...NEWER(report), dequeueCount: 1 })
      expect(after).toMatchObject({ status: 'Pending', dequeueCount: 4, resolution: null, notes: null })
      await booksAreRight()
      await store.queues.complete({ queueName: originalQueue, partition, ids: items.map(({ id }) => id) })
      expect((await file(letter)).letter).toMatchObject({ status: 'Pending', confirmedAt: null })
      expect(await operations(letter)).toEqual(['reopen 3', 'retry 2', 'capture 1'])
      await booksAreRight()
      await retried(letter)
      expect((await store.lease(originalQueue)).items).toHaveLength(1)
      await booksAreRight()
    })

    it('takes the item of the retry out of its queue, when nobody works on it', async () => {
      const originalQueue = await freshQueue()
      const { report, letter } = await reported({ originalQueue })
      await retried(letter)
      expect(await again(report, NEWER(report))).toMatchObject({ status: 'Pending' })
      expect(await store.queues.listItems({ queueName: originalQueue, partition: 0 })).toEqual([])
      await booksAreRight()
    })

    it('reopens it also when its item was completed first', async () => {
      const originalQueue = await freshQueue()
      const { report, letter } = await reported({ originalQueue })
      await retried(letter)
      const { partition, items } = await store.lease(originalQueue)
      await store.queues.complete({ queueName: originalQueue, partition, ids: items.map(({ id }) => id) })
      expect(await again(report, NEWER(report))).toMatchObject({ status: 'Pending', confirmedAt: null })
      await booksAreRight()
    })

    it('reopens a letter that was discarded or expired', async () => {
      for (const status of ['Resolved', 'Expired'] as const) {
        const { report, letter } = await reported()
        await store.letters.change(letter, { status, notes: 'given up', actor: 'nell' })
        await changesNothing(letter, () => again(report))
        expect(await again(report, NEWER(report))).toMatchObject({
          status: 'Pending',
          resolvedAt: null,
          resolvedBy: null,
          resolution: null,
          notes: null,
        })
        expect((await operations(letter))[0]).toBe('reopen 3')
      }
      await booksAreRight()
    })

    it('is new by our time of receipt, whatever the clock of its reporter says', async () => {
      const originalQueue = await freshQueue()
      const { report, letter } = await reported({ originalQueue })
      await retried(letter)
      const lastFailureAt = instant(1_500_000_000_000_000n)
      expect(await again(report, { lastFailureAt })).toMatchObject({
        status: 'Pending',
        lastFailureAt,
        firstFailureAt: lastFailureAt,
      })
      await booksAreRight()
    })

    it('keeps payload and edit as they are', async () => {
      const originalQueue = await freshQueue()
      const { report, letter } = await reported({ originalQueue, payload: Buffer.from('wrong') })
      await store.letters.retry(letter, { ...RETRY, edit: { payload: Buffer.from('right') } })
      await again(report, { ...NEWER(report), payload: Buffer.from('right') })
      const { letter: after } = await file(letter)
      expect(Buffer.from(after.payload).toString()).toBe('wrong')
      expect(Buffer.from(after.editedPayload ?? []).toString()).toBe('right')
      await booksAreRight()
    })
  })

  describe('of an import', () => {
    it('is new only when its failure is later than the last on file', async () => {
      const originalQueue = await freshQueue()
      const sourceId = `import:hmac:${originalQueue}`
      const { report, letter } = await reported({ sourceId, originalQueue })
      await retried(letter)
      const earlier = later(report.lastFailureAt ?? store.clock.now(), -MINUTE)
      await changesNothing(letter, async () => {
        await again(report, { errorMessage: 'other' })
        await again(report, { lastFailureAt: earlier, errorMessage: 'older' })
      })
      const after = await again(report, { ...NEWER(report), dequeueCount: 5 })
      expect(after).toMatchObject({ status: 'Pending', dequeueCount: 5, errorMessage: 'the lock is jammed' })
      await booksAreRight()
    })
  })

  describe('many at once', () => {
    it('file a failure once, however often it is reported, and every other one too', async () => {
      const originalQueue = await freshQueue()
      const { report, letter } = await reported({ originalQueue })
      await retried(letter)
      const at = store.clock.now()
      const failures = Array.from({ length: 40 }, (_, i) => ({
        ...report,
        lastFailureAt: later(at, BigInt(i % 8)),
      }))
      const answers = await Promise.all(failures.map((each) => store.letters.capture(each)))
      expect(answers.every(({ created, letter: { status } }) => !created && status === 'Pending')).toBe(true)
      expect((await file(letter)).failures).toHaveLength(9)
      expect((await operations(letter)).toSorted()).toEqual(
        ['capture 1', 'retry 2', 'reopen 3', ...[4, 5, 6, 7, 8, 9, 10].map((n) => `capture ${n}`)].toSorted(),
      )
      await booksAreRight()
    })

    it('agree with a worker that completes the item in the same moment', async () => {
      const originalQueue = await freshQueue()
      for (let round = 0; round < 10; round++) {
        const { report, letter } = await reported({ originalQueue })
        await retried(letter)
        const { partition, items } = await store.lease(originalQueue)
        await Promise.all([
          again(report, NEWER(report)),
          store.queues.complete({ queueName: originalQueue, partition, ids: items.map(({ id }) => id) }),
        ])
        expect((await file(letter)).letter).toMatchObject({ status: 'Pending', confirmedAt: null })
      }
      await booksAreRight()
    })

    it('agree with a worker that lets the item die in the same moment', async () => {
      const queueName = await freshQueue(1)
      const die = async () => {
        const { partition, items } = await store.lease(queueName)
        await store.queues.retry({ queueName, partition, items: items.map(({ id }) => ({ id, dead: true })) })
      }
      for (let round = 0; round < 25; round++) {
        const { report, letter } = await reported({ originalQueue: queueName })
        await retried(letter)
        // From here on it lies in the dead queue.
        await die()
        await retried(letter)
        const { partition, items } = await store.lease(queueName)
        const dead = items.map(({ id }) => ({ id, dead: true }))
        await Promise.all([
          again(report, NEWER(report)),
          store.queues.retry({ queueName, partition, items: dead }),
        ])
        expect((await file(letter)).letter.status).toBe('Pending')
      }
      await booksAreRight()
    })

    it('take the items of all their letters out of the way at once', async () => {
      const originalQueue = await freshQueue()
      const known = []
      for (let i = 0; i < 6; i++) known.push(await reported({ originalQueue }))
      for (const { letter } of known) await retried(letter)
      // Half of them are being worked on.
      await store.queues.lease({
        queueName: originalQueue,
        clientId: 'consumer',
        batchSize: 3,
        requestTimeout: '1s',
      })
      const asked: string[] = []
      const desk = { registers: store.registers, sourceOf: () => store.queues.letterSource('http') }
      const reports = known.map(({ report, letter: { id } }) => ({
        id,
        report: { ...report, ...NEWER(report) },
      }))
      await inOffice(store.db, store.clock, 'test', (work) => reportAgain(noting(work, asked), desk, reports))
      expect(asked.filter((name) => name === 'items.waitForCases')).toHaveLength(1)
      for (const { letter } of known) expect((await file(letter)).letter.status).toBe('Pending')
      await booksAreRight()
    })

    it.runIf(kind.name === 'postgres')(
      'lock items as cycles do, whatever the order of their letters',
      async () => {
        const originalQueue = await freshQueue()
        const [older, newer] = [await reported({ originalQueue }), await reported({ originalQueue })]
        // The item of the newer letter is the first of the queue.
        await retried(newer.letter)
        await retried(older.letter)
        const { reporting } = await store.db.transaction('test', async (tx) => {
          await tx.rows(lockItem, newer.letter.id)
          const failed = [older, newer].map(({ report }) => ({ ...report, ...NEWER(report) }))
          const reporting = store.letters.captureOnce(null, failed, (results) => ({
            status: 200,
            body: results.length,
          }))
          await expect.poll(() => tx.rows(readWaiting)).toHaveLength(1)
          // Who waits for the first item has none behind it.
          expect(await tx.rows(lockItemAtOnce, older.letter.id)).toHaveLength(1)
          return { reporting }
        })
        expect((await reporting).body).toBe(2)
        await booksAreRight()
      },
    )

    it.runIf(kind.name === 'postgres')('never wait for each other in a circle', async () => {
      const queueName = await freshQueue(1)
      const { letter } = await reported({ originalQueue: queueName })
      await retried(letter)
      const { partition, items } = await store.lease(queueName)
      const reporter = await store.db.transaction('test', async (tx) => {
        await tx.rows(lockItem, letter.id)
        const dying = store.queues.retry({
          queueName,
          partition,
          items: items.map(({ id }) => ({ id, dead: true })),
        })
        await expect.poll(() => tx.rows(readWaiting)).toHaveLength(1)
        // Nobody who waits for the item has the letter.
        expect(await tx.rows(lockLetterAtOnce, letter.id)).toHaveLength(1)
        return { dying }
      })
      await reporter.dying
      await booksAreRight()
    })
  })

  it('fails as a whole where the failure before it cannot be kept', async () => {
    const place = await kind.fresh()
    const full = await LetterStore.open({ ...kind, fresh: async () => place })
    const report = full.report()
    const { letter } = await full.letters.capture(report)
    const before = await full.letters.get(letter)
    await place.refuseWrites('letter_attempts')
    await expect(full.letters.capture({ ...report, ...NEWER(report) })).rejects.toThrow('no space left')
    expect(await full.letters.get(letter)).toEqual(before)
    await full.close()
  })

  describe('that lies in a dead queue', () => {
    /** A letter of an engine whose item died in its queue. */
    const lying = async () => {
      const queue = await freshQueue(1)
      await store.queues.produce({ queueName: queue, items: [{ payload: 'rotate' }], requestTimeout: '1m' })
      const { partition, items } = await store.lease(queue)
      await store.queues.retry({
        queueName: queue,
        partition,
        items: items.map(({ id }) => ({ id, dead: true })),
      })
      const [letter] = (await store.letters.list({ originalQueue: queue })).items
      if (letter === undefined) throw new Error('the item did not become a letter')
      const report = store.report({ engine: letter.engine, sourceId: letter.sourceId, dequeueCount: 1 })
      return { deadQueue: `${queue}-dead`, letter, report }
    }

    it('stays where it lies, also in the hands of a consumer', async () => {
      const { deadQueue, letter, report } = await lying()
      const { partition, items } = await store.lease(deadQueue)
      const { position } = (await file(letter)).letter
      await again(report)
      expect((await file(letter)).letter.position).toEqual(position)
      await store.queues.complete({ queueName: deadQueue, partition, ids: items.map(({ id }) => id) })
      expect((await file(letter)).letter.status).toBe('Resolved')
      await booksAreRight()
    })

    it('lies there again when it is reopened', async () => {
      const { deadQueue, letter, report } = await lying()
      await store.letters.change(letter, { status: 'Expired', notes: null, actor: 'nell' })
      await again(report)
      expect((await store.lease(deadQueue)).items).toHaveLength(1)
      await booksAreRight()
    })
  })
})
