import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RedriveOffice } from '../../../test/world/redrive-office.ts'
import { stores } from '../../../test/world/stores.ts'
import { type Database, sql, type Transaction } from '../../store/database.ts'
import { openDatabase } from '../../store/open.ts'
import { redriveNumber } from '../redrive.ts'
import { holdLane, holdLanes, readLanes } from './lanes.ts'
import { lockRedrive } from './rows.ts'

const readTimeout = sql('test.idleTimeout', {
  postgres: `SELECT current_setting('idle_in_transaction_session_timeout') AS timeout`,
  sqlite: '',
})

describe.each(stores.filter(({ name }) => name === 'postgres'))(
  'a server on $name that stands still',
  (kind) => {
    let desk: RedriveOffice
    let db: Database
    beforeAll(async () => {
      desk = await RedriveOffice.open(kind)
      db = openDatabase(desk.place.url, { poolSize: 1 })
    })
    afterAll(async () => {
      await db?.close()
      await desk?.close()
    })

    it('loses what it has locked of a redrive before another takes it up', async () => {
      await desk.createQueue('orders')
      await desk.dead('orders', ['a'])
      const { id } = await desk.plan()
      const [lane] = await db.session('test.lanes', (session) => readLanes(session, [redriveNumber(1)]))
      if (lane === undefined) throw new Error('the plan has no lane')
      const locks = {
        lane: (tx: Transaction) => holdLane(tx, lane),
        lanes: (tx: Transaction) => holdLanes(tx, lane.redrive),
        redrive: (tx: Transaction) => lockRedrive(tx, id),
      }
      for (const [name, lock] of Object.entries(locks)) {
        const during = await db.transaction('test.hold', async (tx) => {
          await lock(tx)
          return tx.rows(readTimeout)
        })
        expect(during, name).toEqual([{ timeout: '3s' }])
      }
      expect(await db.session('test.after', (session) => session.rows(readTimeout))).toEqual([
        { timeout: '0' },
      ])
    })
  },
)
