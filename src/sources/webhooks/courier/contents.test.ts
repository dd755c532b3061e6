import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type StoreKind, stores } from '../../../../test/world/stores.ts'
import { Depot } from '../../../../test/world/webhooks/couriers.ts'
import { type Xid, xid, xidAfter } from '../../../core/xid.ts'
import { Contents } from './contents.ts'

describe.each(stores)('the contents of messages, on $name', (store: StoreKind) => {
  let depot: Depot
  beforeAll(async () => {
    depot = await Depot.open(store)
  })
  afterEach(() => depot.clear())
  afterAll(() => depot.close())

  /** Messages of so many bytes; their ids. */
  const stored = async (count: number, bytes: number): Promise<Xid[]> => {
    const ids: Xid[] = []
    for (let i = 0; i < count; i++) {
      const consumer = await depot.subscriber({ url: 'http://localhost' })
      const [job] = await depot.message([consumer], { payload: Buffer.alloc(bytes, i) })
      // The fixture numbers a message just before its jobs.
      ids.push(xidAfter(job ?? xid(''), -1))
    }
    return ids
  }

  it('come as they were stored, once for each job', async () => {
    const headers = [['X-A', 'é "1"']] as const
    const payload = Buffer.from([0, 1, 255])
    const [job = xid('')] = await depot.message([await depot.subscriber()], {
      ...{ messageId: 'mine', contentType: 'text/plain', payload, headers },
    })
    const id = xidAfter(job, -1)
    const contents = new Contents(depot.db)
    const content = { messageId: 'mine', contentType: 'text/plain', headers }
    const [one, two, gone] = await contents.load([id, id, job])
    expect(one).toMatchObject(content)
    expect(one).toBe(two)
    expect(gone).toBe('gone')
    expect(typeof one === 'object' && Buffer.from(one.payload)).toEqual(payload)
  })

  it('are read as far as there is room, and at least one', async () => {
    const ids = await stored(4, 5_000)
    const contents = new Contents(depot.db, { used: 8_000, kept: 6_500 })
    const first = await contents.load(ids)
    expect(first.filter((each) => each === 'no room')).toHaveLength(2)
    expect(contents.room).toBe(0)
    const [loaded = xid('')] = ids.filter((_, i) => first[i] !== 'no room')
    contents.release(loaded)
    expect(contents.room).toBeGreaterThan(0)
    // One that is here costs no room; another one does.
    expect(await contents.load([loaded])).toMatchObject([{ messageId: expect.any(String) }])
  })

  it('are forgotten when nobody has used them for longest', async () => {
    const ids = await stored(3, 5_000)
    const contents = new Contents(depot.db, { used: 1_000_000, kept: 13_000 })
    for (const id of ids) {
      await contents.load([id])
      contents.release(id)
    }
    expect(contents.bytes).toBe(12_000)
  })
})
