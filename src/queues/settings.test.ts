import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bareStores, type FreshStore } from '../../test/world/stores.ts'
import { MIGRATIONS } from '../migrations.ts'
import { Office } from '../office.ts'
import { type Database, sql } from '../store/database.ts'
import { migrate } from '../store/migrations.ts'
import { openDatabase } from '../store/open.ts'
import { deathMigration } from './schema.ts'

const insert = sql(
  'test.olderQueue',
  `INSERT INTO bartleby.queues (id, name, namespace, created_at, updated_at, lease_timeout_ns, expire_timeout_ns,
     max_attempts, requested_partitions, dead_queue) VALUES ($1, $2, '_system', 0, 0, 60000000000, 60000000000, 0, 1, $3)`,
)

const insertPartition = sql(
  'test.olderPartition',
  'INSERT INTO bartleby.partitions (part, queue_id, number, id_prefix) VALUES ($1, $1, 0, $2)',
)

describe.each(bareStores)('a store of an older version on $name', (kind) => {
  let store: FreshStore
  let told: { details: object; message: string }[]

  const nothing = () => {}
  const log = {
    debug: nothing,
    info: nothing,
    warn: (details: object, message: string) => void told.push({ details, message }),
    error: nothing,
  }

  beforeEach(async () => {
    store = await kind.fresh()
    told = []
    const db: Database = openDatabase(store.url, { poolSize: 1 })
    await migrate(
      db,
      MIGRATIONS.filter(({ number }) => number < deathMigration.number),
    )
    await db.transaction('test', async (tx) => {
      await tx.run(insert, 101, 'ticks', null)
      await tx.run(insert, 102, 'orders', 'orders-dead')
      await tx.run(insert, 103, 'orders-dead', null)
      for (const id of [101, 102, 103]) await tx.run(insertPartition, id, `older${id}`)
    })
    await db.close()
  })
  afterEach(() => store.dispose())

  const onceOpen = async <T>(work: (office: Office) => Promise<T>, logged: boolean): Promise<T> => {
    const office = await Office.open({ store: store.url, ...(logged && { log }) })
    try {
      return await work(office)
    } finally {
      await office.close()
    }
  }

  it('names its queues without a dead queue at the first start with a log, and never again', async () => {
    await onceOpen(async () => {}, false)
    await onceOpen(async (office) => {
      expect((await office.queues.list()).map(({ onDeath }) => onDeath)).toEqual([
        'letter',
        'letter',
        'letter',
      ])
    }, true)
    expect(told).toEqual([
      {
        details: { queues: ['orders-dead', 'ticks'] },
        message: expect.stringContaining('bartleby queues update NAME --on-death delete'),
      },
    ])
    await onceOpen((office) => office.queues.update({ queueName: 'ticks', onDeath: 'delete' }), true)
    await onceOpen(async (office) => {
      expect(await office.queues.info('ticks')).toMatchObject({ onDeath: 'delete' })
      await office.queues.create({
        queueName: 'fresh',
        leaseTimeout: '1m',
        expireTimeout: '1h',
        requestedPartitions: 1,
      })
    }, true)
    await onceOpen(async () => {}, true)
    expect(told).toHaveLength(1)
  })
})
