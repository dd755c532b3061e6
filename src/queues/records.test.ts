import { describe, expect, it } from 'vitest'
import { stores } from '../../test/world/stores.ts'
import { Office } from '../office.ts'
import type { Session } from '../store/database.ts'
import { openDatabase } from '../store/open.ts'
import { readQueue } from './records.ts'

describe.each(stores)('a queue on $name', (kind) => {
  it('is gone when it is deleted between its row and its partitions', async () => {
    const place = await kind.fresh()
    const office = await Office.open({ store: place.url })
    const db = openDatabase(place.url, { poolSize: 1 })
    try {
      const settings = { leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 }
      await office.queues.create({ queueName: 'orders', ...settings })
      const found = await db.session('test', async (session) => {
        const overtaken: Pick<Session, 'dialect' | 'rows'> = {
          dialect: session.dialect,
          async rows(statement, ...values) {
            const rows = await session.rows(statement, ...values)
            if (values[0] === 'orders') await office.queues.delete({ queueName: 'orders' })
            // The same rows, in the words of the interface.
            return rows as never
          },
        }
        // Nothing else of a session is asked for.
        return readQueue(overtaken as Session, 'orders')
      })
      expect(found).toBeNull()
    } finally {
      await db.close()
      await office.close()
      await place.dispose()
    }
  })
})
