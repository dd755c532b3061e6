import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LetterStore } from '../../test/world/letter-store.ts'
import { stores } from '../../test/world/stores.ts'
import type { BartlebyError } from '../core/errors.ts'
import { sql } from '../store/database.ts'
import type { LetterSummary } from './letter.ts'
import type { FailureReport } from './reports/report.ts'

const DAY = 86_400_000_000n
const RETRY = { edit: null, notes: null, actor: 'nell' }

const MOVE_DRAWER = sql(
  'test.moveDrawer',
  'UPDATE bartleby.letters SET drawer = (SELECT drawer FROM bartleby.letters WHERE id = $2) WHERE id = $1',
)
const WAITING = sql(
  'test.lockWaiters',
  `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
)

const edit = (text: string) => ({ ...RETRY, edit: { payload: Buffer.from(text) } })

describe.each(stores)('letters on $name', (kind) => {
  let store: LetterStore
  let queues = 0
  beforeAll(async () => {
    store = await LetterStore.open(kind)
  })
  afterAll(() => store?.close())

  const freshQueue = async (maxAttempts = 0) => {
    const name = `queue-${queues++}`
    await store.createQueue(name, maxAttempts)
    return name
  }
  const capture = async (changes: Partial<FailureReport> = {}) =>
    (await store.letters.capture(store.report(changes))).letter
  const codeOf = (act: Promise<unknown>): Promise<string> =>
    act.then(
      () => 'done',
      (error: BartlebyError) => error.code ?? String(error),
    )
  const textsIn = async (queueName: string) =>
    (await store.queues.listItems({ queueName, partition: 0 })).map((item) =>
      Buffer.from(item.payload).toString(),
    )
  const detail = (letter: LetterSummary) => store.letters.get(letter)
  /** A letter that lies in the dead queue of a new queue. */
  const deadLetter = async () => {
    const queue = await freshQueue(1)
    await store.queues.produce({ queueName: queue, items: [{ payload: 'rotate' }], requestTimeout: '1m' })
    const { partition, items } = await store.lease(queue)
    await store.queues.retry({
      queueName: queue,
      partition,
      items: items.map(({ id }) => ({ id, dead: true })),
    })
    const { items: found } = await store.letters.list({ engine: 'queues', originalQueue: queue })
    const [letter] = found
    if (letter === undefined) throw new Error('the item did not become a letter')
    return { queue, deadQueue: `${queue}-dead`, letter }
  }
  const booksAreRight = async () => {
    const { counted, real } = await store.statuses()
    expect(counted).toEqual(real)
  }

  describe('a retry', () => {
    it('sends the bytes back and resolves the letter, in one history row', async () => {
      const queue = await freshQueue()
      const payload = Buffer.of(0, 255, 10, 128)
      const letter = await capture({ originalQueue: queue, payload })
      const receipt = await store.letters.retry(letter, RETRY)
      expect(receipt.queue).toBe(queue)
      const { items } = await store.lease(queue)
      expect(items.map(({ id }) => id)).toEqual([receipt.messageId])
      expect(Buffer.from(items[0]?.payload ?? []).equals(payload)).toBe(true)
      const { letter: after, history } = await detail(letter)
      expect(after).toMatchObject({
        status: 'Resolved',
        resolution: 'retry',
        notes: 'Retried',
        resolvedBy: 'nell',
        resolvedAt: store.clock.now(),
        confirmedAt: null,
        sentAs: receipt.messageId,
        sentTo: queue,
        version: 2,
      })
      expect(history.map(({ operation, actor, notes }) => ({ operation, actor, notes }))).toEqual([
        { operation: 'retry', actor: 'nell', notes: 'Retried' },
        { operation: 'capture', actor: 'tester', notes: null },
      ])
      await booksAreRight()
    })

    it('has one effect for a hundred calls at once', async () => {
      const queue = await freshQueue()
      const letter = await capture({ originalQueue: queue })
      const codes = await Promise.all(
        Array.from({ length: 100 }, () => codeOf(store.letters.retry(letter, RETRY))),
      )
      expect(codes.filter((code) => code === 'done')).toHaveLength(1)
      expect(codes.filter((code) => code === 'letter_status_wrong')).toHaveLength(99)
      expect(await textsIn(queue)).toHaveLength(1)
      await booksAreRight()
    })

    it('sends what the operator made of it, keeps the original, and sends the edit again the next time', async () => {
      const queue = await freshQueue()
      const letter = await capture({ originalQueue: queue, payload: Buffer.from('wrong') })
      await store.letters.retry(letter, { ...edit('right'), notes: 'typo' })
      expect(await textsIn(queue)).toEqual(['right'])
      const { letter: after } = await detail(letter)
      expect(Buffer.from(after.payload).toString()).toBe('wrong')
      expect(Buffer.from(after.editedPayload ?? []).toString()).toBe('right')
      expect(after.notes).toBe('typo')
      await store.letters.change(letter, { status: 'Pending', notes: null, actor: 'nell' })
      await store.letters.retry(letter, RETRY)
      expect(await textsIn(queue)).toEqual(['right'])
    })

    // On SQLite nobody can wait for a lock: there is one writer.
    it.runIf(kind.name === 'postgres')('finds a letter that changes its drawer while it waits', async () => {
      const queue = await freshQueue()
      const letter = await capture({ originalQueue: queue })
      const other = await capture({ originalQueue: queue, errorClass: 'AnotherError' })
      const retried = await store.db.transaction('test', async (tx) => {
        await tx.run(MOVE_DRAWER, letter.id, other.id)
        const waiting = store.letters.retry(letter, RETRY)
        await expect
          .poll(() => store.db.session('test', (session) => session.rows(WAITING)), { interval: 5 })
          .toHaveLength(1)
        return { waiting }
      })
      expect((await retried.waiting).queue).toBe(queue)
    })

    it('may send nothing at all', async () => {
      const queue = await freshQueue()
      const letter = await capture({ originalQueue: queue })
      await store.letters.retry(letter, edit(''))
      expect(await textsIn(queue)).toEqual([''])
    })

    it('is refused, and changes nothing, when there is no queue or it is gone', async () => {
      const nowhere = await capture({ engine: 'update-publisher', originalQueue: null })
      const gone = await capture({ originalQueue: 'gone' })
      expect(await codeOf(store.letters.retry(nowhere, RETRY))).toBe('letter_without_queue')
      expect(await codeOf(store.letters.retry(gone, RETRY))).toBe('letter_queue_gone')
      for (const letter of [nowhere, gone]) {
        expect((await detail(letter)).letter).toMatchObject({ status: 'Pending', version: 1 })
      }
    })

    it('is refused for an unknown engine and an unknown letter', async () => {
      expect(await codeOf(store.letters.retry({ engine: 'nope', rowKey: 'a' }, RETRY))).toBe('engine_unknown')
      for (const rowKey of ['a', 'a-20270115T080000000000Z', 'a\0-20270115T080000000000Z', '']) {
        expect(await codeOf(store.letters.retry({ engine: 'hmac', rowKey }, RETRY))).toBe('letter_unknown')
      }
    })

    it('takes the letter out of its dead queue', async () => {
      const { queue, deadQueue, letter } = await deadLetter()
      expect(await textsIn(deadQueue)).toEqual(['rotate'])
      await store.letters.retry(letter, RETRY)
      expect(await textsIn(deadQueue)).toEqual([])
      expect(await textsIn(queue)).toEqual(['rotate'])
      const [stats] = await store.queues.stats(deadQueue).then(({ partitions }) => partitions)
      expect(stats?.total).toBe(0)
    })

    it('is refused while a consumer of the dead queue holds the letter', async () => {
      const { deadQueue, letter } = await deadLetter()
      await store.lease(deadQueue)
      expect(await codeOf(store.letters.retry(letter, RETRY))).toBe('letter_leased')
      expect(
        await codeOf(store.letters.change(letter, { status: 'Expired', notes: null, actor: 'nell' })),
      ).toBe('letter_leased')
    })

    it('is confirmed when its item completes', async () => {
      const queue = await freshQueue()
      const letter = await capture({ originalQueue: queue })
      await store.letters.retry(letter, RETRY)
      const { partition, items } = await store.lease(queue)
      await store.queues.complete({ queueName: queue, partition, ids: items.map(({ id }) => id) })
      const { letter: after } = await detail(letter)
      expect(after).toMatchObject({ status: 'Resolved', confirmedAt: store.clock.now() })
    })

    it('reopens the same letter when its item dies again', async () => {
      const { queue, deadQueue, letter } = await deadLetter()
      await store.letters.retry(letter, RETRY)
      const { partition, items } = await store.lease(queue)
      await store.queues.retry({
        queueName: queue,
        partition,
        items: items.map(({ id }) => ({ id, dead: true })),
      })
      const { letter: after, failures } = await detail(letter)
      expect(after).toMatchObject({ status: 'Pending', dequeueCount: 2, resolvedAt: null, resolution: null })
      expect(failures).toHaveLength(2)
      expect(await textsIn(deadQueue)).toEqual(['rotate'])
      await booksAreRight()
    })
  })

  describe('a dry run', () => {
    it('tells exactly what would be sent and writes nothing', async () => {
      const queue = await freshQueue()
      const letter = await capture({ originalQueue: queue, payload: Buffer.of(255) })
      const before = [await detail(letter), await store.history()]
      const { outgoing, edited } = await store.letters.preview(letter, null)
      expect(outgoing).toMatchObject({ queue, correlationId: letter.correlationId })
      expect(Buffer.from(outgoing.payload).equals(Buffer.of(255))).toBe(true)
      expect(edited).toBe(false)
      expect(await store.letters.preview(letter, { payload: Buffer.from('x') })).toMatchObject({
        edited: true,
        outgoing: { payload: Buffer.from('x') },
      })
      expect([await detail(letter), await store.history()]).toEqual(before)
      expect(await textsIn(queue)).toEqual([])
    })

    it('is refused where the retry would be', async () => {
      const gone = await capture({ originalQueue: 'gone' })
      expect(await codeOf(store.letters.preview(gone, null))).toBe('letter_queue_gone')
      await store.letters.change(gone, { status: 'Expired', notes: null, actor: 'nell' })
      expect(await codeOf(store.letters.preview(gone, null))).toBe('letter_status_wrong')
    })
  })

  describe('a change of status', () => {
    const change = (letter: LetterSummary, status: LetterSummary['status'], notes: string | null = null) =>
      store.letters.change(letter, { status, notes, actor: 'nell' })

    it('discards with notes, and takes the letter out of its dead queue', async () => {
      const { deadQueue, letter } = await deadLetter()
      const after = await change(letter, 'Resolved', 'a test message')
      expect(after).toMatchObject({
        status: 'Resolved',
        resolution: 'discard',
        notes: 'a test message',
        resolvedBy: 'nell',
      })
      expect((await detail(letter)).letter).toMatchObject(after)
      expect(await textsIn(deadQueue)).toEqual([])
    })

    it('discards without notes, of which blank ones are none', async () => {
      for (const notes of [null, ' \n'])
        expect(await change(await capture(), 'Resolved', notes)).toMatchObject({
          status: 'Resolved',
          notes: null,
        })
    })

    it('expires, and an expired letter has no time of resolution', async () => {
      const letter = await capture()
      expect(await change(letter, 'Expired', 'too old')).toMatchObject({
        status: 'Expired',
        resolution: 'expire',
        resolvedAt: null,
        resolvedBy: 'nell',
        notes: 'too old',
      })
    })

    it('restores from both, into the dead queue, with a history that keeps everything', async () => {
      const { deadQueue, letter } = await deadLetter()
      await change(letter, 'Resolved', 'a mistake')
      const restored = await change(letter, 'Pending', 'still needed')
      expect(restored).toMatchObject({
        status: 'Pending',
        resolution: null,
        resolvedAt: null,
        resolvedBy: null,
        notes: null,
      })
      expect(await textsIn(deadQueue)).toEqual(['rotate'])
      await change(letter, 'Expired')
      await change(letter, 'Pending')
      expect(await textsIn(deadQueue)).toEqual(['rotate'])
      const { letter: after, history } = await detail(letter)
      expect(after.version).toBe(5)
      expect(history.map(({ operation, notes, letterVersion }) => [operation, notes, letterVersion])).toEqual(
        [
          ['restore', null, 5],
          ['expire', null, 4],
          ['restore', 'still needed', 3],
          ['discard', 'a mistake', 2],
          ['capture', null, 1],
        ],
      )
      await booksAreRight()
    })

    it('takes the item of a retry back before it restores', async () => {
      const { queue, deadQueue, letter } = await deadLetter()
      await store.letters.retry(letter, RETRY)
      await change(letter, 'Pending')
      expect(await textsIn(queue)).toEqual([])
      expect(await textsIn(deadQueue)).toEqual(['rotate'])
      expect((await detail(letter)).letter).toMatchObject({ status: 'Pending', sentAs: null, sentTo: null })
    })

    it('does not restore while the item of the retry is being worked on', async () => {
      const { queue, letter } = await deadLetter()
      await store.letters.retry(letter, RETRY)
      await store.lease(queue)
      expect(await codeOf(change(letter, 'Pending'))).toBe('letter_in_flight')
      expect((await detail(letter)).letter.status).toBe('Resolved')
    })

    it('restores what was confirmed', async () => {
      const queue = await freshQueue()
      const letter = await capture({ originalQueue: queue })
      await store.letters.retry(letter, RETRY)
      const { partition, items } = await store.lease(queue)
      await store.queues.complete({ queueName: queue, partition, ids: items.map(({ id }) => id) })
      expect(await change(letter, 'Pending')).toMatchObject({ status: 'Pending', confirmedAt: null })
    })

    it('refuses every other transition and names the status', async () => {
      const pending = await capture()
      const resolved = await capture()
      const expired = await capture()
      await change(resolved, 'Resolved', 'done')
      await change(expired, 'Expired')
      const refusals = [
        [
          pending,
          'Pending',
          'cannot be restored; it is Pending, and only Resolved or Expired letters can be',
        ],
        [resolved, 'Resolved', 'cannot be discarded; it is Resolved, and only Pending letters can be'],
        [resolved, 'Expired', 'cannot be expired; it is Resolved'],
        [expired, 'Expired', 'cannot be expired; it is Expired'],
        [expired, 'Resolved', 'cannot be discarded; it is Expired'],
      ] as const
      for (const [letter, status, message] of refusals) {
        await expect(change(letter, status, 'again')).rejects.toThrow(`letter ${message}`)
      }
      await expect(store.letters.retry(resolved, RETRY)).rejects.toThrow(
        'letter cannot be retried; it is Resolved, and only Pending letters can be',
      )
    })

    it('happens once when many ask for it at once', async () => {
      const letter = await capture()
      const codes = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          codeOf(i % 2 === 0 ? change(letter, 'Expired') : change(letter, 'Resolved', 'done')),
        ),
      )
      expect(codes.filter((code) => code === 'done')).toHaveLength(1)
      await booksAreRight()
    })
  })

  describe('bulk expiry', () => {
    it('empties dead queues, but leaves what a consumer holds', async () => {
      const free = await deadLetter()
      const held = await deadLetter()
      store.clock.advance(2n * DAY)
      await store.lease(held.deadQueue)
      const expired = await store.letters.expireOlder({ olderThanDays: 1, engine: 'queues', actor: 'nell' })
      expect(expired).toBeGreaterThan(0)
      expect((await detail(free.letter)).letter).toMatchObject({
        status: 'Expired',
        resolution: 'expire',
        position: null,
      })
      expect((await detail(held.letter)).letter.status).toBe('Pending')
      expect(await textsIn(free.deadQueue)).toEqual([])
      const [stats] = await store.queues.stats(free.deadQueue).then(({ partitions }) => partitions)
      expect(stats?.total).toBe(0)
      await booksAreRight()
    })

    it('finds nothing that is older than time itself', async () => {
      const request = { olderThanDays: Number.MAX_SAFE_INTEGER, engine: null, actor: 'nell' }
      expect(await store.letters.expireOlder(request)).toBe(0)
    })

    it('refuses an unknown engine', async () => {
      const request = { olderThanDays: 1, engine: 'nope', actor: 'nell' }
      expect(await codeOf(store.letters.expireOlder(request))).toBe('engine_unknown')
    })
  })

  describe('a capture', () => {
    it('gives the first letter again for a known source id, also to many at once', async () => {
      const report = store.report()
      const results = await Promise.all(Array.from({ length: 20 }, () => store.letters.capture(report)))
      expect(results.filter(({ created }) => created)).toHaveLength(1)
      expect(new Set(results.map(({ letter }) => letter.rowKey)).size).toBe(1)
      await booksAreRight()
    })

    it('gives every letter of an instance a row key of its own, also at the same moment', async () => {
      const reports = Array.from({ length: 10 }, () => store.report({ instanceId: 'publisher' }))
      const results = await Promise.all(reports.map((report) => store.letters.capture(report)))
      expect(new Set(results.map(({ letter }) => letter.rowKey)).size).toBe(10)
    })
  })
})
