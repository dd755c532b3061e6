import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Application, type AppTransaction, adapterFor } from '../../../../test/world/application.ts'
import { freshPostgres, type StoreKind } from '../../../../test/world/stores.ts'
import { readLayout } from '../table/layout.ts'
import type { NewMessage } from '../table/message.ts'
import { outboxSchema } from '../table/schema.ts'
import { createKey } from './keys.ts'
import { createOutbox } from './writer.ts'

const POSTGRES: StoreKind = { name: 'postgres', fresh: freshPostgres }
const KEY = createKey('shop', 'order', '17', 'placed')
const MESSAGE = { tenantId: 'shop', eventType: 'OrderPlaced', payload: { id: 17 } } satisfies NewMessage

describe('an outbox on PostgreSQL', () => {
  let app: Application
  beforeAll(async () => {
    app = await Application.open(POSTGRES, outboxSchema('postgres'))
  })
  beforeEach(() => app.script('DELETE FROM outbox_messages'))
  afterAll(() => app.close())
  const outbox = createOutbox({ adapter: adapterFor(POSTGRES) })

  it('takes one round trip for a message, two for a double, and one for a thousand', async () => {
    const tx = await app.begin()
    await outbox.add(tx, MESSAGE)
    let trips = 0
    const counting: AppTransaction = {
      ...tx,
      run: (sql, parameters) => {
        trips++
        return tx.run(sql, parameters)
      },
    }
    const tripsOf = async (work: () => Promise<unknown>) => {
      trips = 0
      await work()
      return trips
    }
    expect(await tripsOf(() => outbox.add(counting, MESSAGE))).toBe(1)
    expect(await tripsOf(() => outbox.add(counting, { ...MESSAGE, key: KEY }))).toBe(1)
    expect(await tripsOf(() => outbox.add(counting, { ...MESSAGE, key: KEY }))).toBe(2)
    expect(await tripsOf(() => outbox.addMany(counting, Array(1_000).fill(MESSAGE)))).toBe(1)
    await tx.rollback()
  })

  it('wakes the dispatchers that wait, when it commits, and no others', async () => {
    const ear = new pg.Client({ connectionString: app.url })
    await ear.connect()
    const { channel } = await readLayout('postgres', {}, (sql, parameters) => app.rows(sql, ...parameters))
    await ear.query(`LISTEN ${channel}`)
    let heard = 0
    ear.on('notification', () => heard++)
    const adding = async (work: (tx: AppTransaction) => Promise<unknown>) => {
      heard = 0
      await app.transaction(work)
      // What was sent before this answer was heard before it.
      await ear.query('SELECT 1')
      return heard
    }
    await app.script('UPDATE outbox_messages_wake SET waiting = true')
    expect(await adding((tx) => outbox.add(tx, MESSAGE))).toBe(1)
    expect(await adding((tx) => outbox.add(tx, { ...MESSAGE, key: KEY }))).toBe(1)
    expect(await adding((tx) => outbox.add(tx, { ...MESSAGE, key: KEY }))).toBe(0)
    expect(await adding((tx) => outbox.addMany(tx, Array(50).fill(MESSAGE)))).toBe(1)
    await app.script('UPDATE outbox_messages_wake SET waiting = false')
    expect(await adding((tx) => outbox.add(tx, MESSAGE))).toBe(0)
    await ear.end()
  })

  it('makes a transaction of a stricter level start over when it meets a newer double', async () => {
    const strict = await app.begin('ISOLATION LEVEL REPEATABLE READ')
    await strict.run('SELECT 1 AS one FROM outbox_messages', [])
    await app.transaction((tx) => outbox.add(tx, { ...MESSAGE, key: KEY }))
    await expect(outbox.add(strict, { ...MESSAGE, key: KEY })).rejects.toMatchObject({ code: '40001' })
    await strict.rollback()
    const again = await app.begin('ISOLATION LEVEL REPEATABLE READ')
    expect(await outbox.add(again, { ...MESSAGE, key: KEY })).toMatchObject({ alreadyExisted: true })
    await again.commit()
  })

  it('waits for the first of two transactions, and takes its place when that rolls back', async () => {
    const first = await app.begin()
    const second = await app.begin()
    await outbox.add(first, { ...MESSAGE, key: KEY })
    const waiting = outbox.add(second, { ...MESSAGE, key: KEY, payload: 'second' })
    await first.rollback()
    expect(await waiting).toMatchObject({ alreadyExisted: false })
    await second.commit()
    expect(await app.rows('SELECT id FROM outbox_messages')).toHaveLength(1)
  })

  it('looks keys up by their indexes, however many there are', async () => {
    await app.script(`INSERT INTO outbox_messages_keys SELECT 'shop', gen_random_uuid(), '1', 'x', 0 FROM generate_series(1, 20000);
      INSERT INTO outbox_messages (tenant_id, event_type, payload) SELECT 'shop', 'e', 'x' FROM generate_series(1, 20000);
      ANALYZE outbox_messages_keys; ANALYZE outbox_messages`)
    const tx = await app.begin()
    const plans: string[] = []
    const explaining: AppTransaction = {
      ...tx,
      run: async (sql, parameters) => {
        if (sql.includes('outbox_messages'))
          for (const row of await tx.run(`EXPLAIN ${sql}`, parameters)) plans.push(String(row['QUERY PLAN']))
        return await tx.run(sql, parameters)
      },
    }
    for (let times = 0; times < 2; times++) {
      await outbox.add(explaining, { ...MESSAGE, key: KEY })
      await outbox.addMany(
        explaining,
        Array.from({ length: 20 }, (_, at) => ({ ...MESSAGE, key: createKey('shop', 'x', at, 'y') })),
      )
    }
    await tx.rollback()
    expect(plans.filter((line) => /Seq Scan on outbox_messages(_keys)?\b(?!_wake)/.test(line))).toEqual([])
    expect(plans.some((line) => line.includes('outbox_messages_keys_pkey'))).toBe(true)
    await app.script('TRUNCATE outbox_messages, outbox_messages_keys')
  })
})
