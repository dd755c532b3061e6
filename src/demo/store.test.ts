import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../test/world/stores.ts'
import { ConfigError } from '../core/settings/config-error.ts'
import { Office } from '../office.ts'
import { demoSources } from './config.ts'
import * as demo from './store.ts'
import { makeQueues } from './story/story.ts'

const checkDemoStore = async (store: string) => demo.checkDemoStore(store, await demoSources())

describe.each(stores)('a demo on a store of $name', (kind) => {
  let place: FreshStore

  beforeEach(async () => {
    place = await kind.fresh()
  })

  afterEach(() => place.dispose())

  const inOffice = async (act: (office: Office) => Promise<unknown>): Promise<void> => {
    const office = await Office.open({ store: place.url })
    await act(office)
    await office.close()
  }

  it('takes one without letters and queues, and knows its own again', async () => {
    expect(await checkDemoStore(place.url)).toEqual({ isNew: true })
    await inOffice((office) =>
      makeQueues(office, [{ queueName: 'invoices', leaseTimeout: '1m', expireTimeout: '1h' }]),
    )
    expect(await checkDemoStore(place.url)).toEqual({ isNew: false })
  })

  it('refuses one with queues of others, and says what to do', async () => {
    const settings = { leaseTimeout: '1m', expireTimeout: '1h', requestedPartitions: 1 }
    await inOffice(({ queues }) => queues.create({ queueName: 'invoices', ...settings }))
    const refusal = await checkDemoStore(place.url).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(ConfigError)
    expect(String(refusal)).toMatch(/did not make.*leave --store out.*new/)
  })

  it('refuses one that only delivers webhooks', async () => {
    await inOffice(({ webhooks }) => webhooks.channels.put('orders', { name: null, token: null }, null))
    await expect(checkDemoStore(place.url)).rejects.toThrow(/channels that the demo did not make/)
  })
})

describe('a demo in memory', () => {
  it('needs no look', async () => {
    expect(await checkDemoStore('sqlite::memory:')).toEqual({ isNew: true })
  })
})
