/** Redrives of letters that came from an outbox, in the office's own store and in another database. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { outboxLetterSource } from '../../src/sources/outbox/letters/source.ts'
import { OutboxOffice, PLACES } from '../world/outbox-office.ts'
import { violationsIn } from '../world/verified.ts'
import { SourceDesk } from './source-desk.ts'

/** One of each kind: both stores, and a table that no transaction of the office reaches. */
const HERE_AND_THERE = PLACES.filter(
  ({ office, elsewhere }) => elsewhere === null || office.name === elsewhere.name,
)

const OUTBOX = { engine: 'outbox' } as const

describe.each(HERE_AND_THERE)('a redrive of letters of an outbox $name', (place) => {
  let office: OutboxOffice
  let desk: SourceDesk
  beforeAll(async () => {
    office = await OutboxOffice.open(place)
    const { db, clock } = office.store
    const source = outboxLetterSource(() => office.posts, { dispatch: () => {}, reconcile: () => {} })
    desk = new SourceDesk(db, clock, source)
  })
  afterAll(async () => {
    await desk?.stop()
    await office?.close()
  })
  beforeEach(async () => {
    await office.begin()
    for (const payload of ['1', '2', '3']) await office.table.insert({ payload })
    await office.die()
    office.sent.length = 0
  })

  const sent = () => office.sent.splice(0).map(({ payload }) => Buffer.from(payload).toString())
  const isClean = async () => {
    expect(await violationsIn(office.store.db, { clock: office.store.clock })).toEqual([])
  }

  it('has them dispatched again, and hears what became of them', async () => {
    const done = await desk.run(OUTBOX)
    expect(done).toMatchObject({ state: 'done', counts: { planned: 3, sent: 3, unconfirmed: 3 } })
    office.deliver = async ({ payload }) => {
      if (Buffer.from(payload).toString() === '2') throw new Error('refused again')
    }
    await office.dispatch()
    expect(sent().sort()).toEqual(['1', '2', '3'])
    expect(await desk.counts(done)).toMatchObject({ confirmed: 2, returned: 1, unconfirmed: 0 })
    await isClean()
  })

  it('gives them up, and takes that back', async () => {
    expect(await desk.run(OUTBOX, 'discard')).toMatchObject({
      state: 'done',
      counts: { sent: 3, confirmed: 3 },
    })
    await office.dispatch()
    expect(sent()).toEqual([])
    const ids = (await office.list()).map(({ engine, rowKey }) => ({ engine, rowKey }))
    const { id } = await desk.redrives.plan({
      selection: { by: 'ids', ids },
      ...{ action: 'restore', queue: null, recipe: null, reason: null, actor: 'nell' },
      terms: { rate: null, canary: null, stopRule: null, order: 'key' },
    })
    await desk.redrives.start(id, 'nell')
    await desk.redrives.settle()
    expect(await desk.redrives.read(id)).toMatchObject({ state: 'done', counts: { sent: 3 } })
    expect((await office.list()).map(({ status }) => status)).toEqual(['Pending', 'Pending', 'Pending'])
    await isClean()
  })

  it('pauses when the outbox is not there, and goes on when it is', async () => {
    office.posts.length = 0
    const paused = await desk.run(OUTBOX)
    expect(paused).toMatchObject({ state: 'paused', counts: { sent: 0, failed: 0, remaining: 3 } })
    expect(paused.note).toContain('orders')
    office.posts.push(office.post)
    expect(await desk.resume(paused)).toMatchObject({ state: 'done', counts: { sent: 3 } })
    await office.dispatch()
    expect(sent().sort()).toEqual(['1', '2', '3'])
    await isClean()
  })

  it('leaves out a letter whose message is gone, and sends the others', async () => {
    await office.table.query(`DELETE FROM outbox_messages WHERE id = (SELECT min(id) FROM outbox_messages)`)
    const done = await desk.run(OUTBOX)
    expect(done).toMatchObject({ state: 'done', counts: { sent: 2, failed: 1 } })
    await office.dispatch()
    expect(sent().sort()).toEqual(['2', '3'])
    await isClean()
  })
})
