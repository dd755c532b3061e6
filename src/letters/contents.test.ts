import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RedriveOffice } from '../../test/world/redrive-office.ts'
import { stores } from '../../test/world/stores.ts'
import type { Database } from '../store/database.ts'
import { openDatabase } from '../store/open.ts'
import { contentPortions } from './contents.ts'
import { type LetterId, letterId } from './letter.ts'

const MEGABYTE = 1_048_576

describe.each(stores)('contents of letters on $name', (kind) => {
  let desk: RedriveOffice
  let db: Database
  beforeAll(async () => {
    desk = await RedriveOffice.open(kind)
    db = openDatabase(desk.place.url, { poolSize: 2 })
  })
  afterAll(async () => {
    await db?.close()
    await desk?.close()
  })

  it('are read in portions that fit into memory, one that is larger alone', async () => {
    await desk.createQueue('orders')
    const ids: LetterId[] = []
    for (const megabytes of [3, 4, 2, 0, 9, 0, 1]) {
      const payload = Buffer.alloc(megabytes * MEGABYTE)
      const rowKey = await desk.reported('orders', { payload })
      const { letter } = await desk.office.letters.get({ engine: 'hmac', rowKey })
      ids.push(letter.id)
    }
    const portions = await db.session('test.portions', (session) =>
      contentPortions(session, [...ids, letterId(999_999)]),
    )
    const places = portions.map((portion) => portion.map((id) => ids.indexOf(id)))
    expect(places).toEqual([[0, 1], [2, 3], [4], [5, 6, -1]])
  })
})
