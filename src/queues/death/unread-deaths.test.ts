/** Items that die, or are completed, without having been read, and are not as most items are. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LetterStore } from '../../../test/world/letter-store.ts'
import { stores } from '../../../test/world/stores.ts'
import { violationsIn } from '../../../test/world/verified.ts'
import { later } from '../../core/clock.ts'

const HOUR_US = 3_600_000_000n
const RELAPSES = 4

describe.each(stores)('on $name', (kind) => {
  let store: LetterStore
  beforeEach(async () => {
    store = await LetterStore.open(kind)
  })
  afterEach(() => store.close())

  const expectClean = async (): Promise<void> => {
    expect(await violationsIn(store.db, { clock: store.clock })).toEqual([])
  }
  const kill = (items: readonly { readonly id: string }[]): Promise<void> =>
    store.queues.retry({ queueName: 'jobs', items: items.map(({ id }) => ({ id, dead: true })) })

  /** How often transactions of cycles were run, those included that were rolled back. */
  const runsOf = async (act: () => Promise<void>): Promise<number> => {
    const transactions = vi.spyOn(store.db, 'transaction')
    let runs = 0
    transactions.mockImplementation((verb, work, options) => {
      const counted: typeof work = (tx) => {
        if (verb === 'queue.cycle') runs++
        return work(tx)
      }
      return Object.getPrototypeOf(store.db).transaction.call(store.db, verb, counted, options)
    })
    await act()
    transactions.mockRestore()
    return runs
  }

  it('an imported item that is leased and was never delivered goes back to the tail', async () => {
    await store.createQueue('jobs', 1)
    const [imported] = await store.queues.importItems({
      queueName: 'jobs',
      items: [{ isLeased: true, payload: Buffer.from('x') }],
    })
    const id = imported?.outcome === 'imported' ? imported.item.id : expect.fail('it was not imported')
    await store.queues.retry({ queueName: 'jobs', items: [{ id }] })
    expect((await store.statuses()).real).toEqual([0, 0, 0])
    await expectClean()
  })

  it('an imported item that was never leased, with a deadline, expires without its deadline being counted', async () => {
    await store.createQueue('jobs', 1)
    const leaseDeadline = later(store.clock.now(), HOUR_US)
    const expireDeadline = later(store.clock.now(), 1_000n)
    const item = { isLeased: false, leaseDeadline, expireDeadline, payload: Buffer.from('x') }
    await store.queues.importItems({ queueName: 'jobs', items: [item, { payload: Buffer.from('y') }] })
    store.clock.advance(HOUR_US)
    await store.queues.settle()
    expect((await store.statuses()).real).toEqual([1, 0, 0])
    await expectClean()
  })

  it('an imported item that is leased, without a deadline, can be completed', async () => {
    await store.createQueue('jobs')
    const [outcome] = await store.queues.importItems({ queueName: 'jobs', items: [{ isLeased: true }] })
    const id = outcome?.outcome === 'imported' ? outcome.item.id : expect.fail('nothing was imported')
    await store.queues.complete({ queueName: 'jobs', ids: [id] })
    await expectClean()
  })

  it('sent-back items that die again one after the other make one cycle wrong, not all', async () => {
    await store.createQueue('jobs', 1)
    const payloads = Array.from({ length: RELAPSES }, (_, i) => ({ payload: `${i}` }))
    await store.queues.produce({ queueName: 'jobs', items: payloads })
    await kill((await store.lease('jobs')).items)
    const { items: letters } = await store.letters.list({ engine: 'queues', originalQueue: 'jobs' })
    for (const letter of letters)
      await store.letters.retry(letter, { edit: null, notes: null, actor: 'nell' })
    const { items } = await store.lease('jobs')
    expect(items).toHaveLength(RELAPSES)

    const runs = await runsOf(async () => {
      for (const item of items) await kill([item])
    })
    expect(runs).toBe(RELAPSES + 1)
    expect((await store.statuses()).real).toEqual([RELAPSES, 0, 0])
    await expectClean()
  })

  it('items that failed before make one completion wrong, not every second one', async () => {
    await store.createQueue('jobs', 9)
    const payloads = Array.from({ length: 2 * RELAPSES }, (_, i) => ({ payload: `${i}` }))
    await store.queues.produce({ queueName: 'jobs', items: payloads.slice(RELAPSES) })
    const failed = (await store.lease('jobs')).items
    await store.queues.retry({
      queueName: 'jobs',
      items: failed.map(({ id }) => ({ id, errorClass: 'Jammed', errorMessage: 'no key' })),
    })
    await store.queues.produce({ queueName: 'jobs', items: payloads.slice(0, RELAPSES) })
    const { items } = await store.lease('jobs')
    const [old, fresh] = [items.slice(0, RELAPSES), items.slice(RELAPSES)]
    const runs = await runsOf(async () => {
      for (const [i, { id }] of old.entries())
        for (const ids of [[id], [fresh[i]?.id ?? '']])
          await store.queues.complete({ queueName: 'jobs', ids })
    })
    // SQLite has no way that could be wrong.
    expect(runs).toBe(kind.name === 'sqlite' ? 2 * RELAPSES : 2 * RELAPSES + 1)
    await expectClean()
  })

  it('an id that does not exist is named, also where the dead queue is missing', async () => {
    await store.createQueue('jobs', 1)
    await store.queues.produce({ queueName: 'jobs', items: [{ payload: 'x' }] })
    const { items } = await store.lease('jobs')
    await store.queues.complete({ queueName: 'jobs', ids: items.map(({ id }) => id) })
    await store.queues.delete({ queueName: 'jobs-dead', force: true })
    await expect(kill(items)).rejects.toThrow('does not exist')
    await expectClean()
  })
})
