import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { codeOf, OUTBOX_NAME, OutboxOffice, PLACES } from '../../../../test/world/outbox-office.ts'
import { retain } from '../../../../test/world/retain.ts'
import { violationsIn } from '../../../../test/world/verified.ts'
import { PermanentError } from '../../../core/thrown.ts'

const DAY = 86_400_000_000n
describe.each(PLACES)('dead messages of an outbox $name', (place) => {
  let office: OutboxOffice
  beforeAll(async () => {
    office = await OutboxOffice.open(place)
  })
  afterAll(async () => {
    expect(await violationsIn(office.store.db, { clock: office.store.clock })).toEqual([])
    await office.close()
  })
  beforeEach(() => office.begin())

  const texts = () => office.sent.splice(0).map(({ payload }) => Buffer.from(payload).toString())
  const isTrue = (value: unknown) => value === true || value === 1

  describe('become letters', () => {
    it('with everything that is known of them', async () => {
      const payload = Buffer.of(0, 255, 10, 128)
      const key = 'ba73d97a-5b6f-e712-ae41-f39ca66495e4'
      const id = await office.table.insert({
        tenant: 'acme',
        type: 'order.created',
        payload,
        key,
        line: '42',
      })
      await office.table.query(`UPDATE outbox_messages SET headers = '{"trace":"7"}', correlation_id = 'c-1'`)
      await office.die(new RangeError('no such host: 7'))
      const { letter, failures, history } = await office.letter()
      expect(letter).toMatchObject({
        engine: 'outbox',
        source: 'outbox',
        sourceId: `${OUTBOX_NAME}/${id}`,
        originalQueue: OUTBOX_NAME,
        instanceId: 'acme',
        correlationId: 'c-1',
        kind: 'order.created',
        reference: key,
        reason: 'attempts',
        errorClass: 'RangeError',
        errorMessage: 'no such host: 7',
        failedBy: OUTBOX_NAME,
        dequeueCount: 1,
        status: 'Pending',
        version: 1,
        lastFailureAt: office.store.clock.now(),
        firstFailureAt: office.store.clock.now(),
      })
      expect(Buffer.from(letter.payload).equals(payload)).toBe(true)
      expect(JSON.parse(Buffer.from(letter.headers ?? []).toString())).toEqual({
        eventType: 'order.created',
        tenantId: 'acme',
        idempotencyKey: key,
        orderingKey: '42',
        headers: { trace: '7' },
      })
      expect(letter.itemCreatedAt).toBeGreaterThan(1_700_000_000_000_000n)
      expect(failures).toHaveLength(1)
      expect(history.map(({ operation }) => operation)).toEqual(['capture'])
      const row = await office.table.row(id)
      expect(BigInt(String(row.letter_id))).toBe(letter.id)
      expect(isTrue(row.letter_due)).toBe(false)
    })

    it('once, however often the office is told', async () => {
      await office.table.insert()
      await office.die()
      await office.reconcile()
      await office.markAgain()
      await office.reconcile()
      await office.markAgain(true)
      await office.reconcile()
      expect(await office.acts()).toEqual(['capture'])
      const [row] = await office.table.rows()
      expect(BigInt(String(row?.letter_id))).toBe((await office.letter()).letter.id)
    })

    it('with the reason that they died of', async () => {
      const causes = [
        'PermanentError: 410 Gone',
        'PoisonMessage: it ends us',
        'Thrown string: oh',
        'Oops',
        null,
      ]
      for (const cause of causes) {
        await office.table.insert()
        await office.table.query(
          'UPDATE outbox_messages SET dead_at = created_at, letter_due = true, error = $1 WHERE dead_at IS NULL',
          cause,
        )
      }
      await office.reconcile()
      const letters = (await office.list()).toSorted((a, b) => Number(a.id - b.id))
      expect(
        letters.map(({ reason, errorClass, errorMessage }) => [reason, errorClass, errorMessage]),
      ).toEqual([
        ['rejected', 'PermanentError', '410 Gone'],
        ['failed', 'PoisonMessage', 'it ends us'],
        ['attempts', 'Thrown string', 'oh'],
        ['attempts', 'Error', 'Oops'],
        ['attempts', 'Error', 'its outbox kept no error'],
      ])
    })

    it('in many batches, those of one tenant under keys of their own', async () => {
      const big = Buffer.alloc(2_000_000, 'x')
      for (const payload of [big, big, big]) await office.table.insert({ payload })
      for (let i = 0; i < 210; i++) await office.table.insert({ payload: `${i}` })
      await office.table.query(
        `UPDATE outbox_messages SET dead_at = created_at, letter_due = true, error = 'Error: no'`,
      )
      expect(await office.reconcile()).toBe(213)
      expect(await office.countLetters()).toBe(213)
      expect(await office.reconcile()).toBe(0)
    })

    it('once, when two clerks tell at the same time', async () => {
      for (let i = 0; i < 210; i++) await office.table.insert({ payload: `${i}` })
      await office.table.query(
        `UPDATE outbox_messages SET dead_at = created_at, letter_due = true, error = 'Error: no'`,
      )
      await office.secondClerk((other) => Promise.all([office.reconcile(), other()]))
      expect(await office.countLetters()).toBe(210)
      expect(await office.historyOfAll()).toEqual(Array(210).fill('capture'))
      expect(await office.reconcile()).toBe(0)
    })

    it('also when another message has their id by now', async () => {
      const id = await office.table.insert({ payload: 'old' })
      await office.die()
      const { letter: old } = await office.letter()
      await office.table.query('DELETE FROM outbox_messages')
      await office.table.insert({ payload: 'new' })
      if (office.table.dialect === 'postgres')
        await office.table.query('ALTER TABLE outbox_messages ALTER COLUMN id SET GENERATED BY DEFAULT')
      await office.table.query('UPDATE outbox_messages SET id = $1', Number(id))
      await office.die()
      const letters = await office.list()
      expect(letters.map(({ sourceId }) => sourceId).toSorted()).toEqual([
        old.sourceId,
        expect.stringContaining(`${old.sourceId}/`),
      ])
      const retry = { edit: null, notes: null, actor: 'nell' }
      expect(await codeOf(office.letters.retry(old, retry))).toBe('letter_row_gone')
      const fresh = letters.find(({ sourceId }) => sourceId !== old.sourceId)
      if (fresh === undefined) throw new Error('there is no second letter')
      texts()
      expect((await office.letters.retry(fresh, retry)).messageId).toBe(id)
      await office.dispatch()
      expect(texts()).toEqual(['new'])
    })
  })

  describe('that are retried', () => {
    it('start over, and confirm the letter when they arrive', async () => {
      const id = await office.table.insert({ payload: 'hello' })
      await office.die()
      texts()
      expect(await office.retry()).toEqual({ messageId: id, queue: OUTBOX_NAME })
      expect(office.woken).toBe(1)
      expect(await office.table.row(id)).toMatchObject({
        dead_at: null,
        processed_at: null,
        error: null,
        retry_count: 0,
      })
      expect((await office.letter()).letter).toMatchObject({
        status: 'Resolved',
        resolution: 'retry',
        confirmedAt: null,
      })
      await office.dispatch()
      expect(texts()).toEqual(['hello'])
      expect((await office.letter()).letter).toMatchObject({
        status: 'Resolved',
        confirmedAt: office.store.clock.now(),
        sentAs: id,
        sentTo: OUTBOX_NAME,
      })
      await office.markAgain()
      await office.reconcile()
      expect(await office.acts()).toEqual(['capture', 'retry', 'confirm'])
    })

    it('reopen the same letter when they die again', async () => {
      await office.table.insert()
      await office.die()
      await office.retry()
      office.store.clock.advance(5_000_000n)
      await office.die(new PermanentError('410 Gone'))
      const { letter, failures } = await office.letter()
      expect(letter).toMatchObject({
        status: 'Pending',
        reason: 'rejected',
        errorClass: 'PermanentError',
        errorMessage: '410 Gone',
        dequeueCount: 2,
        lastFailureAt: office.store.clock.now(),
        resolvedAt: null,
      })
      expect(failures.map(({ errorClass }) => errorClass)).toEqual(['Error', 'PermanentError'])
      await office.markAgain()
      await office.reconcile()
      expect(await office.acts()).toEqual(['capture', 'retry', 'reopen'])
    })

    it('go out as the operator made them, and keep that; the letter keeps the original', async () => {
      await office.table.insert({ payload: 'wrong' })
      await office.die()
      texts()
      await office.retry('right')
      await office.die()
      expect(texts()).toEqual(['right'])
      const { letter } = await office.letter()
      expect(Buffer.from(letter.payload).toString()).toBe('wrong')
      await office.retry()
      await office.dispatch()
      expect(texts()).toEqual(['right'])
    })

    it('are shown by a dry run, which writes nothing', async () => {
      await office.table.insert({ payload: 'hello' })
      await office.die()
      const { letter } = await office.letter()
      const before = await office.table.rows()
      const { outgoing } = await office.letters.preview(letter, null)
      expect(outgoing).toMatchObject({ queue: OUTBOX_NAME, letterId: letter.id, kind: 'created' })
      expect(Buffer.from(outgoing.payload).toString()).toBe('hello')
      expect(await office.table.rows()).toEqual(before)
      expect((await office.letter()).letter).toMatchObject({ status: 'Pending', version: 1 })
    })

    it('hold those behind them until they arrive', async () => {
      for (const payload of ['1', '2', '3']) await office.table.insert({ payload, line: 'a' })
      await office.die()
      expect(texts()).toEqual(['1'])
      await office.retry()
      await office.dispatch()
      expect(texts()).toEqual(['1', '2', '3'])
    })

    it('have one effect for many calls at once', async () => {
      await office.table.insert()
      await office.die()
      const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(office.retry())))
      expect(codes.filter((code) => code === 'done')).toHaveLength(1)
      texts()
      await office.dispatch()
      expect(texts()).toHaveLength(1)
    })

    it('are refused when their row is gone; the letter can be discarded', async () => {
      await office.table.insert()
      await office.die()
      await office.table.query('DELETE FROM outbox_messages')
      expect(await codeOf(office.retry())).toBe('letter_row_gone')
      expect((await office.letter()).letter).toMatchObject({ status: 'Pending', version: 1 })
      await office.change('Resolved')
      await office.change('Pending')
      await office.change('Expired')
      expect(await office.acts()).toEqual(['capture', 'discard', 'restore', 'expire'])
    })

    it('are unknown when somebody took their row away: nothing but an operator reopens the letter', async () => {
      await office.table.insert()
      await office.die()
      await office.retry()
      await office.table.query('DELETE FROM outbox_messages')
      await office.dispatch()
      office.store.clock.advance(86_400_000_000n)
      await office.dispatch()
      expect((await office.letter()).letter).toMatchObject({ resolution: 'retry', confirmedAt: null })
      expect(await office.acts()).toEqual(['capture', 'retry'])
      await office.change('Pending')
      expect((await office.letter()).letter.status).toBe('Pending')
    })

    it('are refused when this server does not know their outbox; the letter can be discarded', async () => {
      await office.table.insert()
      await office.die()
      office.posts.length = 0
      expect(await codeOf(office.retry())).toBe('letter_outbox_unknown')
      await office.change('Resolved')
      expect((await office.letter()).letter.status).toBe('Resolved')
    })

    it('have a new letter when they die again and the old one was removed', async () => {
      await office.table.insert()
      await office.die()
      const { letter: old } = await office.letter()
      await office.retry()
      office.store.clock.advance(100n * DAY)
      await retain(office.store, { retentionDays: 90 })
      expect(await office.countLetters()).toBe(0)
      await office.die()
      const { letter } = await office.letter()
      expect(letter.id).not.toBe(old.id)
      expect(letter).toMatchObject({ status: 'Pending', sourceId: old.sourceId, version: 1 })
      await office.retry()
      await office.dispatch()
      expect(await office.acts()).toEqual(['capture', 'retry', 'confirm'])
    })

    it('can be sent once more when the letter is restored after they arrived', async () => {
      await office.table.insert()
      await office.die()
      await office.retry()
      await office.dispatch()
      await office.change('Pending')
      await office.reconcile()
      texts()
      await office.retry()
      await office.dispatch()
      expect(texts()).toHaveLength(1)
      expect(await office.acts()).toEqual(['capture', 'retry', 'confirm', 'restore', 'retry', 'confirm'])
    })
  })

  describe('that nobody wants any more', () => {
    it('let go of those behind them when they are discarded, and hold them again when restored', async () => {
      for (const payload of ['1', '2']) await office.table.insert({ payload, line: 'a' })
      await office.die()
      await office.change('Resolved')
      await office.reconcile()
      expect(office.woken).toBe(1)
      texts()
      await office.dispatch()
      expect(texts()).toEqual(['2'])
      const [first] = await office.table.rows()
      expect(first?.dead_at).not.toBeNull()
      expect(first?.processed_at).not.toBeNull()
      expect(first?.error).toBe('Error: connection refused')

      await office.change('Pending')
      await office.table.insert({ payload: '3', line: 'a' })
      await office.dispatch()
      expect(texts()).toEqual([])
      await office.retry()
      await office.dispatch()
      expect(texts()).toEqual(['1', '3'])
      expect(await office.acts()).toEqual(['capture', 'discard', 'restore', 'retry', 'confirm'])
    })

    it('let go of those behind them when many expire', async () => {
      for (let i = 0; i < 300; i++) {
        await office.table.insert({ payload: 'dies', line: `${i}` })
        await office.table.insert({ payload: 'waits', line: `${i}` })
      }
      await office.die()
      expect(texts()).toHaveLength(300)
      office.store.clock.advance(40n * DAY)
      const expiry = { olderThanDays: 30, engine: null, actor: 'nell' }
      expect(await office.letters.expireOlder(expiry)).toBe(300)
      await office.reconcile()
      await office.dispatch()
      expect(new Set(texts())).toEqual(new Set(['waits']))
      const rows = await office.table.rows()
      expect(rows.filter(({ processed_at }) => processed_at === null)).toEqual([])
      expect(rows.filter(({ letter_due }) => isTrue(letter_due))).toEqual([])
    })
  })

  describe('whose retry is taken back', () => {
    it('are dead again, unless somebody has them', async () => {
      const id = await office.table.insert()
      await office.die()
      await office.retry()
      await office.change('Pending')
      await office.reconcile()
      texts()
      await office.dispatch()
      expect(texts()).toEqual([])
      expect((await office.table.row(id)).dead_at).not.toBeNull()
      expect((await office.letter()).letter).toMatchObject({ status: 'Pending', dequeueCount: 1 })

      await office.retry()
      let code = ''
      office.deliver = async () => {
        code = await codeOf(office.change('Pending'))
      }
      await office.dispatch()
      expect(code).toBe('letter_in_flight')
      expect(await office.acts()).toEqual(['capture', 'retry', 'restore', 'retry', 'confirm'])
    })

    it('are complete when they had arrived before the office was told', async () => {
      await office.table.insert()
      await office.die()
      await office.retry()
      await office.deliverOnly()
      await office.change('Pending')
      await office.reconcile()
      expect((await office.letter()).letter).toMatchObject({ status: 'Resolved', resolution: 'complete' })
      expect(await office.acts()).toEqual(['capture', 'retry', 'restore', 'complete'])
    })
  })
})
