/** Workers of engines that nobody defined. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { reportOf } from '../../../test/world/report.ts'
import { type FreshStore, type StoreKind, stores } from '../../../test/world/stores.ts'
import { Office } from '../../office.ts'

describe.each(stores)('an open engine on $name', (kind: StoreKind) => {
  let store: FreshStore
  let office: Office
  const others: Office[] = []

  beforeEach(async () => {
    store = await kind.fresh()
    office = await Office.open({ store: store.url })
  })

  afterEach(async () => {
    for (const each of [office, ...others.splice(0)]) await each.close()
    await store.dispose()
  })

  const engineNames = async (of: Office) => (await of.engines.known()).map(({ name, queue }) => [name, queue])

  it('works on the queue of its name, and its failures are its own letters', async () => {
    const engine = office.engine({
      name: 'mail',
      operation: 'send',
      maxAttempts: 1,
      handler: () => {
        throw new Error('no such mailbox')
      },
    })
    await engine.start()
    await office.queues.produce({ queueName: 'mail', items: [{ payload: '{"to":"nell"}' }] })
    await expect
      .poll(async () => (await office.letters.numbers.counts({ engine: 'mail' }).catch(() => null))?.totals)
      .toEqual({ Pending: 1, Resolved: 0, Expired: 0 })
    const { items } = await office.letters.list({ engine: 'mail' })
    expect(items).toMatchObject([{ engine: 'mail', originalQueue: 'mail', errorMessage: 'no such mailbox' }])
    const { items: runs } = await office.history.list({ engine: 'mail', operation: 'send' })
    expect(runs).toMatchObject([{ operation: 'send', status: 'Failed' }])
  })

  it('is known to every office on the store as soon as its worker has started', async () => {
    await office.engine({ name: 'mail', queue: 'outgoing', operation: 'send', handler: () => null }).start()
    const other = await Office.open({ store: store.url })
    others.push(other)
    expect((await engineNames(other))[0]).toEqual(['mail', 'outgoing'])
    expect((await other.letters.list({ engine: 'mail' })).items).toEqual([])
    // A report that names no queue is for the engine's own.
    const report = reportOf(1, other.clock.now(), { engine: 'mail', originalQueue: null })
    expect((await other.letters.capture(report)).letter).toMatchObject({ originalQueue: 'outgoing' })
    await expect(other.letters.list({ engine: 'male' })).rejects.toMatchObject({ code: 'engine_unknown' })
  })

  it('may have any name that is valid: its letters are discarded, restored and retried as others are', async () => {
    await office.queues.create({
      queueName: 'plain',
      leaseTimeout: '1h',
      expireTimeout: '24h',
      requestedPartitions: 1,
    })
    const report = reportOf(1, office.clock.now(), { engine: 'constructor', originalQueue: 'plain' })
    const { letter } = await office.letters.capture(report)
    const how = { notes: null, actor: 'nell' }
    await office.letters.change(letter, { status: 'Resolved', ...how })
    await office.letters.change(letter, { status: 'Pending', ...how })
    await office.letters.retry(letter, { edit: null, ...how })
    const { history } = await office.letters.get(letter)
    const told = history.map(({ operation }) => operation).sort()
    expect(told).toEqual(['capture', 'discard', 'restore', 'retry'])
  })
})
