import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { codeOf, OutboxOffice, PLACES } from '../../../../test/world/outbox-office.ts'
import { violationsIn } from '../../../../test/world/verified.ts'
import { inOffice } from '../../../letters/work.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { openDatabase } from '../../../store/open.ts'
import { onDatabase } from '../sql/table.ts'
import { readLayout } from '../table/layout.ts'

// In the same store there is one transaction, and nothing of it stays.
const apart = PLACES.filter(({ elsewhere }) => elsewhere !== null)

describe.each(apart)('when something fails between an office and an outbox $name', (place) => {
  let office: OutboxOffice
  beforeAll(async () => {
    office = await OutboxOffice.open(place)
  })
  afterAll(() => office?.close())
  beforeEach(() => office.begin())
  afterEach(async () => {
    expect(await violationsIn(office.store.db, { clock: office.store.clock })).toEqual([])
  })

  const texts = () => office.sent.splice(0).map(({ payload }) => Buffer.from(payload).toString())
  /** Runs an act whose transaction fails at its very end, as in a crash of the office. */
  const crashing = (act: Parameters<typeof inOffice>[3]) =>
    expect(
      inOffice(office.store.db, office.store.clock, 'test.crash', async (work) => {
        await act(work)
        throw new Error('the office is gone')
      }),
    ).rejects.toThrow('the office is gone')
  const retry = { edit: null, notes: null, actor: 'nell' }

  it('nothing changes while the outbox does not answer', async () => {
    await office.table.insert()
    await office.die()
    await office.refuseWrites()
    expect(await codeOf(office.retry())).toBe('letter_outbox_away')
    expect(await codeOf(office.change('Resolved'))).toBe('letter_outbox_away')
    expect((await office.letter()).letter).toMatchObject({ status: 'Pending', version: 1 })
    await office.acceptWrites()
    await office.retry()
    await office.refuseWrites()
    expect(await codeOf(office.change('Pending'))).toBe('letter_outbox_away')
    await office.acceptWrites()
    await office.dispatch()
    expect(await office.acts()).toEqual(['capture', 'retry', 'confirm'])
  })

  it('nothing changes while its database cannot be reached', async () => {
    await office.table.insert()
    await office.die()
    const db = openDatabase('postgres://nobody@127.0.0.1:1/nothing', { poolSize: 1 })
    const layout = () => readLayout('postgres', {}, onDatabase(db))
    office.posts.splice(0, 1, { ...office.post, db, layout })
    expect(await codeOf(office.retry())).toBe('letter_outbox_away')
    expect(await codeOf(office.change('Expired'))).toBe('letter_outbox_away')
    await expect(office.reconcile()).rejects.toBeInstanceOf(StoreUnavailable)
    await db.close()
    expect(await office.acts()).toEqual(['capture'])
  })

  it('a letter whose sending was not written down is complete when the message arrives', async () => {
    await office.table.insert()
    await office.die()
    const { letter } = await office.letter()
    await crashing((work) => office.letters.retryIn(work, letter, retry))
    await office.dispatch()
    await office.markAgain()
    await office.reconcile()
    expect((await office.letter()).letter).toMatchObject({ status: 'Resolved', resolution: 'complete' })
    expect(await office.acts()).toEqual(['capture', 'complete'])
  })

  it('and stays pending when it dies again', async () => {
    await office.table.insert()
    await office.die()
    const { letter } = await office.letter()
    await crashing((work) => office.letters.retryIn(work, letter, retry))
    await office.die()
    expect(await office.acts()).toEqual(['capture'])
    await office.retry()
    await office.dispatch()
    expect(await office.acts()).toEqual(['capture', 'retry', 'confirm'])
  })

  it('a retry that is repeated sends once, also when the message has arrived meanwhile', async () => {
    await office.table.insert()
    await office.die()
    const { letter } = await office.letter()
    await crashing((work) => office.letters.retryIn(work, letter, retry))
    texts()
    await office.deliverOnly()
    await office.retry()
    await office.dispatch()
    expect(texts()).toHaveLength(1)
    expect(await office.acts()).toEqual(['capture', 'retry', 'confirm'])
  })

  it('a row whose letter was not discarded after all is dead again', async () => {
    for (const payload of ['1', '2']) await office.table.insert({ payload, line: 'a' })
    await office.die()
    const { letter } = await office.letter()
    const discard = { status: 'Resolved', notes: 'because', actor: 'nell' } as const
    await crashing((work) => office.letters.changeIn(work, letter, discard))
    await office.reconcile()
    await office.reconcile()
    texts()
    await office.dispatch()
    expect(texts()).toEqual([])
    expect(await office.acts()).toEqual(['capture'])
    await office.retry()
    await office.dispatch()
    expect(texts()).toEqual(['1', '2'])
  })

  it('a letter whose retry was taken back, and that does not know it, is pending', async () => {
    await office.table.insert()
    await office.die()
    await office.retry()
    const { letter } = await office.letter()
    const restore = { status: 'Pending', notes: null, actor: 'nell' } as const
    await crashing((work) => office.letters.changeIn(work, letter, restore))
    await office.reconcile()
    expect((await office.letter()).letter.status).toBe('Pending')
    expect(await office.acts()).toEqual(['capture', 'retry', 'reopen'])
  })
})
