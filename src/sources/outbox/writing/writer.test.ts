import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Application, type AppTransaction, adapterFor } from '../../../../test/world/application.ts'
import { stores } from '../../../../test/world/stores.ts'
import { systemNow } from '../../../../test/world/time.ts'
import { instant } from '../../../core/clock.ts'
import type { Log } from '../../../core/log.ts'
import { TestClock } from '../../../core/test-clock.ts'
import { OutboxMeter } from '../served/meter.ts'
import type { NewMessage } from '../table/message.ts'
import { outboxSchema } from '../table/schema.ts'
import { createKey } from './keys.ts'
import { createOutbox, type Outbox } from './writer.ts'

const KEY = createKey('shop', 'order', '17', 'placed')
const MESSAGE = { tenantId: 'shop', eventType: 'OrderPlaced', payload: { id: 17 } } satisfies NewMessage
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

describe.each(stores)('an outbox on $name', (kind) => {
  let app: Application
  let outbox: Outbox<AppTransaction>
  let meter: OutboxMeter
  let lines: string[]

  beforeAll(async () => {
    app = await Application.open(
      kind,
      `${outboxSchema(kind.name)} CREATE TABLE orders (id TEXT PRIMARY KEY, total INTEGER NOT NULL);`,
    )
  })
  afterAll(() => app.close())

  beforeEach(async () => {
    await app.script('DELETE FROM outbox_messages; DELETE FROM outbox_messages_keys; DELETE FROM orders')
    meter = new OutboxMeter(new TestClock())
    lines = []
    const say = (_details: object, line: string) => void lines.push(line)
    const log: Log = { debug: say, info: say, warn: say, error: say }
    outbox = createOutbox({ adapter: adapterFor(kind), log, meter })
  })

  const committed = () => app.rows('SELECT * FROM outbox_messages ORDER BY created_at, id')
  const add = (message: NewMessage) => app.transaction((tx) => outbox.add(tx, message))
  const addMany = (messages: readonly NewMessage[]) => app.transaction((tx) => outbox.addMany(tx, messages))
  const text = (bytes: unknown) => Buffer.from(bytes as Uint8Array).toString()

  describe('adding a message', () => {
    it('gives a key to one that has none, and nothing else that was not asked for', async () => {
      const added = await add(MESSAGE)
      expect(added).toEqual({
        id: expect.stringMatching(/^\d+$/),
        idempotencyKey: expect.stringMatching(UUID),
        alreadyExisted: false,
      })
      const [row] = await committed()
      expect(row).toMatchObject({
        tenant_id: 'shop',
        event_type: 'OrderPlaced',
        idempotency_key: added.idempotencyKey,
        retry_count: 0,
        processed_at: null,
        dead_at: null,
        error: null,
        next_attempt_at: null,
        claimed_by: null,
        ordering_key: null,
        headers: null,
        correlation_id: null,
      })
      expect(String(row?.id)).toBe(added.id)
      expect(text(row?.payload)).toBe('{"id":17}')
    })

    it('gives a key to one whose key is the empty Guid of .NET, each time another one', async () => {
      const empty = { ...MESSAGE, key: '00000000-0000-0000-0000-000000000000' }
      const [one, ...others] = await addMany([empty, empty, MESSAGE])
      const all = [one, ...others, await add(empty)]
      expect(all.map((added) => added?.alreadyExisted)).toEqual([false, false, false, false])
      const keys = new Set((await committed()).map((row) => row.idempotency_key))
      expect(keys).toEqual(new Set(all.map((added) => added?.idempotencyKey)))
      expect([keys.size, keys.has(empty.key)]).toEqual([4, false])
    })

    it('keeps everything that was asked for', async () => {
      await add({
        ...MESSAGE,
        key: KEY.toUpperCase(),
        orderingKey: 'order-17',
        headers: { trace: 'ä"\\' },
        correlationId: 'c-1',
      })
      const [row] = await committed()
      expect(row).toMatchObject({ idempotency_key: KEY, ordering_key: 'order-17', correlation_id: 'c-1' })
      const { headers } = row ?? {}
      expect(typeof headers === 'string' ? JSON.parse(headers) : headers).toEqual({ trace: 'ä"\\' })
    })

    it.each([
      ['bytes as they are', new Uint8Array([0, 255, 128]), [0, 255, 128]],
      ['no bytes', new Uint8Array(0), []],
      ['a part of a buffer', new Uint8Array([1, 2, 3, 4]).subarray(1, 3), [2, 3]],
      ['numbers of more bytes', new Uint16Array([258]), [2, 1]],
      ['an ArrayBuffer', new Uint8Array([7]).buffer, [7]],
      ['a text as it is', 'no "JSON" \u0000 ä', [...Buffer.from('no "JSON" \u0000 ä')]],
      ['null as JSON', null, [...Buffer.from('null')]],
      ['a number as JSON', 1.5, [...Buffer.from('1.5')]],
      ['a list as JSON', ['ä'], [...Buffer.from('["ä"]')]],
    ])('keeps %s', async (_, payload, bytes) => {
      await add({ ...MESSAGE, payload })
      await addMany([
        { ...MESSAGE, payload },
        { ...MESSAGE, payload },
      ])
      for (const row of await committed()) expect([...(row.payload as Uint8Array)]).toEqual(bytes)
    })

    it('takes the time of the database, or that of a clock', async () => {
      const before = systemNow() - 1_000_000n
      await add(MESSAGE)
      const clock = new TestClock()
      clock.freeze(instant(1_700_000_000_123_456n))
      const timed = createOutbox({ adapter: adapterFor(kind), clock })
      await app.transaction((tx) => timed.add(tx, MESSAGE))
      await app.transaction((tx) => timed.add(tx, { ...MESSAGE, key: KEY }))
      const micros =
        kind.name === 'postgres' ? '(extract(epoch FROM created_at) * 1000000)::bigint::text' : 'created_at'
      const rows = await app.rows(`SELECT CAST(${micros} AS TEXT) AS at FROM outbox_messages ORDER BY id`)
      const [first, ...others] = rows.map(({ at }) => BigInt(String(at)))
      expect(first).toBeGreaterThan(before)
      expect(others).toEqual([1_700_000_000_123_456n, 1_700_000_000_123_456n])
    })

    it('is part of the transaction: a rollback takes it away, a commit brings both', async () => {
      const tx = await app.begin()
      await tx.run(`INSERT INTO orders (id, total) VALUES ('17', 5)`, [])
      await outbox.add(tx, { ...MESSAGE, key: KEY })
      await outbox.addMany(tx, [MESSAGE, MESSAGE, MESSAGE])
      await tx.rollback()
      expect(await committed()).toEqual([])
      expect(await add({ ...MESSAGE, key: KEY })).toMatchObject({ alreadyExisted: false })
      expect(await committed()).toHaveLength(1)
    })

    it('shows nothing before the commit', async () => {
      const tx = await app.begin()
      await outbox.add(tx, MESSAGE)
      expect(await committed()).toEqual([])
      await tx.commit()
      expect(await committed()).toHaveLength(1)
    })
  })

  describe('a key that the tenant has already', () => {
    it('is a success that gives the message that stands', async () => {
      const first = await add({ ...MESSAGE, key: KEY })
      const again = await add({ ...MESSAGE, key: KEY })
      expect(again).toEqual({ id: first.id, idempotencyKey: KEY, alreadyExisted: true })
      expect(await committed()).toHaveLength(1)
      expect(lines).toEqual([`OUTBOX_WORKER_DUPLICATE tenant=shop key=${KEY}`])
      expect(meter.snapshot()).toMatchObject({ duplicates: 1, conflicts: 0 })
    })

    it('leaves the transaction as it was', async () => {
      await add({ ...MESSAGE, key: KEY })
      await app.transaction(async (tx) => {
        await tx.run(`INSERT INTO orders (id, total) VALUES ('17', 5)`, [])
        await outbox.add(tx, { ...MESSAGE, key: KEY })
        await outbox.addMany(tx, [
          { ...MESSAGE, key: KEY },
          { ...MESSAGE, key: KEY },
        ])
        await tx.run(`INSERT INTO orders (id, total) VALUES ('18', 5)`, [])
      })
      expect(await app.rows('SELECT id FROM orders ORDER BY id')).toEqual([{ id: '17' }, { id: '18' }])
      expect(await committed()).toHaveLength(1)
    })

    it('is found within the transaction that added it', async () => {
      await app.transaction(async (tx) => {
        const first = await outbox.add(tx, { ...MESSAGE, key: KEY })
        expect(await outbox.add(tx, { ...MESSAGE, key: KEY })).toMatchObject({
          id: first.id,
          alreadyExisted: true,
        })
      })
    })

    it('is another message under another tenant', async () => {
      const first = await add({ ...MESSAGE, key: KEY })
      const other = await add({ ...MESSAGE, tenantId: 'market', key: KEY })
      expect(other).toMatchObject({ idempotencyKey: KEY, alreadyExisted: false })
      expect(other.id).not.toBe(first.id)
      expect(await committed()).toHaveLength(2)
    })

    it('is a conflict when the payload differs, and the first message stands', async () => {
      const first = await add({ ...MESSAGE, key: KEY })
      const other = await add({ ...MESSAGE, key: KEY, payload: { id: 18 } })
      expect(other).toEqual({ id: first.id, idempotencyKey: KEY, alreadyExisted: true, conflict: true })
      const [row] = await committed()
      expect(text(row?.payload)).toBe('{"id":17}')
      expect(lines).toEqual([
        `OUTBOX_WORKER_DUPLICATE tenant=shop key=${KEY}`,
        'a message was added again with another payload; the first one stands',
      ])
      expect(meter.snapshot()).toMatchObject({ duplicates: 1, conflicts: 1 })
    })

    it('is known after its row was purged', async () => {
      await add({ ...MESSAGE, key: KEY })
      await app.rows(
        `INSERT INTO outbox_messages_keys (tenant_id, idempotency_key, message_id, payload_sha256, recorded_at)
         SELECT tenant_id, idempotency_key, id, $1, 0 FROM outbox_messages`,
        createHash('sha256').update('{"id":17}').digest(),
      )
      const [row] = await committed()
      await app.rows('DELETE FROM outbox_messages')
      const id = String(row?.id)
      expect(await add({ ...MESSAGE, key: KEY })).toEqual({ id, idempotencyKey: KEY, alreadyExisted: true })
      expect(await add({ ...MESSAGE, key: KEY, payload: 'other' })).toMatchObject({ id, conflict: true })
      const [first, second, third] = await addMany([
        { ...MESSAGE, key: KEY },
        { ...MESSAGE, tenantId: 'market', key: KEY },
        MESSAGE,
      ])
      expect(first).toEqual({ id, idempotencyKey: KEY, alreadyExisted: true })
      expect(second?.alreadyExisted).toBe(false)
      expect(third?.alreadyExisted).toBe(false)
      expect(await committed()).toHaveLength(2)
    })
  })

  describe('16 transactions that add one key at once', () => {
    const messages = Array.from({ length: 16 }, () => ({ ...MESSAGE, key: KEY }))

    it('make one row, and all succeed', async () => {
      const added = await Promise.all(messages.map(add))
      expect(await committed()).toHaveLength(1)
      expect(new Set(added.map(({ id }) => id)).size).toBe(1)
      expect(added.filter(({ alreadyExisted }) => !alreadyExisted)).toHaveLength(1)
      expect(added.some(({ conflict }) => conflict)).toBe(false)
      expect(meter.snapshot().duplicates).toBe(15)
    })

    it('make one row when some of them roll back', async () => {
      const answers = await Promise.all(
        messages.map(async (message, at) => {
          const tx = await app.begin()
          const added = await outbox.add(tx, message)
          if (at % 2 === 0) await tx.rollback()
          else await tx.commit()
          return { added, stays: at % 2 === 1 }
        }),
      )
      const [row] = await committed()
      expect(await committed()).toHaveLength(1)
      const lasting = answers.filter(({ stays }) => stays)
      expect(lasting.map(({ added }) => added.id)).toEqual(lasting.map(() => String(row?.id)))
      expect(lasting.filter(({ added }) => !added.alreadyExisted)).toHaveLength(1)
    })

    it('make no row when all of them roll back', async () => {
      await Promise.all(
        messages.map(async (message) => {
          const tx = await app.begin()
          await outbox.add(tx, message)
          await tx.rollback()
        }),
      )
      expect(await committed()).toEqual([])
    })

    it('never wait for each other in a circle, whatever order their messages have', async () => {
      const keys = Array.from({ length: 60 }, (_, at) => createKey('shop', 'order', at, 'placed'))
      const answers = await Promise.all(
        messages.map((_, at) => {
          const mine = at % 2 === 0 ? keys : keys.toReversed()
          return addMany(mine.map((key) => ({ ...MESSAGE, key })))
        }),
      )
      expect(await committed()).toHaveLength(60)
      expect(answers.flat().filter(({ alreadyExisted }) => !alreadyExisted)).toHaveLength(60)
    })
  })

  describe('adding many messages', () => {
    it('answers in their order, and adds nothing when there are none', async () => {
      expect(await addMany([])).toEqual([])
      const numbers = Array.from({ length: 2_345 }, (_, at) => at)
      const added = await addMany(numbers.map((at) => ({ ...MESSAGE, payload: String(at) })))
      const rows = await committed()
      expect(rows.map(({ payload }) => Number(text(payload)))).toEqual(numbers)
      expect(added).toEqual(
        rows.map(({ id, idempotency_key }) => ({
          id: String(id),
          idempotencyKey: idempotency_key,
          alreadyExisted: false,
        })),
      )
    })

    it('is created in their order, also with keys of their own', async () => {
      const numbers = Array.from({ length: 2_100 }, (_, at) => at)
      const added = await addMany(
        numbers.map((at) => ({ ...MESSAGE, payload: String(at), key: createKey('shop', 'x', at, 'y') })),
      )
      await add({ ...MESSAGE, payload: '2100' })
      const rows = await app.rows('SELECT * FROM outbox_messages ORDER BY created_at, id')
      expect(rows.map(({ payload }) => Number(text(payload)))).toEqual([...numbers, 2_100])
      expect(added.map(({ id }) => id)).toEqual(rows.slice(0, -1).map(({ id }) => String(id)))
    })

    it('finds doubles among them and among those that were there', async () => {
      const key = (at: number) => createKey('shop', 'order', at, 'placed')
      const there = await add({ ...MESSAGE, key: key(1), payload: 'there' })
      const added = await addMany([
        { ...MESSAGE, key: key(2), payload: 'a' },
        { ...MESSAGE, key: key(1), payload: 'there' },
        { ...MESSAGE, key: key(2), payload: 'a' },
        { ...MESSAGE, payload: 'random' },
        { ...MESSAGE, key: key(2), payload: 'b' },
        { ...MESSAGE, key: key(2), tenantId: 'market', payload: 'a' },
      ])
      expect(added.map(({ alreadyExisted, conflict }) => [alreadyExisted, conflict])).toEqual([
        [false, undefined],
        [true, undefined],
        [true, undefined],
        [false, undefined],
        [true, true],
        [false, undefined],
      ])
      expect(added[1]?.id).toBe(there.id)
      expect(added[2]?.id).toBe(added[0]?.id)
      expect(await committed()).toHaveLength(4)
      expect(meter.snapshot()).toMatchObject({ duplicates: 3, conflicts: 1 })
    })

    it('keeps everything that was asked for', async () => {
      const message = {
        ...MESSAGE,
        orderingKey: 'o"\\,{}',
        headers: { trace: 'ä"\\\n' },
        correlationId: "c'1",
      }
      await addMany([message, { ...message, key: KEY }, MESSAGE])
      const rows = await committed()
      for (const row of rows.slice(0, 2)) {
        expect(row).toMatchObject({ ordering_key: 'o"\\,{}', correlation_id: "c'1", retry_count: 0 })
        const { headers } = row
        expect(typeof headers === 'string' ? JSON.parse(headers) : headers).toEqual(message.headers)
      }
      expect(rows[2]).toMatchObject({ ordering_key: null, headers: null, correlation_id: null })
    })

    // A client of pg runs one statement after the other; here other calls come between those of one.
    it.runIf(kind.name === 'sqlite')('gives the right ids when two calls share a connection', async () => {
      await app.transaction(async (tx) => {
        const answers = await Promise.all([
          outbox.addMany(tx, Array(500).fill(MESSAGE)),
          outbox.addMany(tx, Array(520).fill(MESSAGE)),
          outbox.add(tx, MESSAGE),
        ])
        const rows = await tx.run(
          'SELECT CAST(id AS TEXT) AS id, CAST(idempotency_key AS TEXT) AS key FROM outbox_messages',
          [],
        )
        const ids = new Map(rows.map(({ key, id }) => [key, id]))
        for (const { idempotencyKey, id } of answers.flat()) expect(ids.get(idempotencyKey)).toBe(id)
        expect(ids.size).toBe(1_021)
      })
    })

    it('carries payloads that are large', async () => {
      const large = Buffer.alloc(5_000_000, 'x')
      const added = await addMany([
        { ...MESSAGE, payload: large, key: KEY },
        MESSAGE,
        { ...MESSAGE, payload: large },
      ])
      expect(added.every(({ alreadyExisted }) => !alreadyExisted)).toBe(true)
      const rows = await app.rows(
        'SELECT length(payload) AS size FROM outbox_messages ORDER BY created_at, id',
      )
      expect(rows.map(({ size }) => Number(size))).toEqual([5_000_000, 9, 5_000_000])
    })
  })

  describe('a table that is no outbox', () => {
    it('is named, and is looked at again the next time', async () => {
      const other = createOutbox({ adapter: adapterFor(kind), table: 'letters_out' })
      await expect(app.transaction((tx) => other.add(tx, MESSAGE))).rejects.toMatchObject({
        code: 'outbox_table_missing',
      })
      await app.script('CREATE TABLE letters_out (id INTEGER)')
      await expect(app.transaction((tx) => other.add(tx, MESSAGE))).rejects.toThrow(
        /it lacks tenant_id, event_type/,
      )
      await app.script(`DROP TABLE letters_out; ${outboxSchema(kind.name, { table: 'letters_out' })}`)
      expect(await app.transaction((tx) => other.add(tx, MESSAGE))).toMatchObject({ alreadyExisted: false })
    })
  })
})
