import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { formatHttpDate } from '../../../core/timestamp.ts'
import { JOB } from '../webhook.ts'
import { readDeadCounts } from './dead-counts.ts'

describe.each(stores)('dead jobs on $name', (store) => {
  let books: WebhookWorld
  beforeAll(async () => {
    books = await WebhookWorld.open(store)
  })
  afterAll(() => books?.close())

  const read = (ends = false) => books.db.snapshot('test', (session) => readDeadCounts(session, { ends }))
  /** Of one channel, by consumer. */
  const told = async (channelId: string) =>
    (await read())
      .filter((count) => count.channelId === channelId)
      .map(({ consumerId, deadCount }) => [consumerId, deadCount])

  it('are told of consumers from their first one on, and at 0 when none is left', async () => {
    const channel = await books.channel('first')
    const consumer = await books.consumer(channel, { consumerId: 'billing' })
    const [dead, other] = [await books.one(consumer), await books.one(consumer)]
    expect(await told('first')).toEqual([])
    await books.die([dead])
    await books.die([other], { errorMessage: 'another error, and so another drawer' })
    expect(await told('first')).toEqual([['billing', 2]])
    await books.jobs.erase(consumer, dead)
    expect(await told('first')).toEqual([['billing', 1]])
    await books.jobs.erase(consumer, other)
    expect(await told('first')).toEqual([['billing', 0]])
  })

  it('have the names of today, and the order of their ids by bytes, whatever characters those have', async () => {
    const ids = ['b', 'B', 'é/%', 'a b', '\u{1F600}', '～', '"\\{}']
    for (const id of ids) {
      const channel = await books.channel(id, `channel ${id}`)
      // The same id of a consumer on every channel.
      const consumer = await books.consumer(channel, { consumerId: 'k/%é', name: 'before' })
      await books.deadJobs(consumer, 1)
      const renamed = { name: 'after', token: null, callbackUrl: consumer.callbackUrl, type: null }
      await books.consumers.put(channel, 'k/%é', renamed, formatHttpDate(consumer.updatedAt))
    }
    const counts = (await read()).filter(({ channelId }) => ids.includes(channelId))
    expect(counts.map(({ channelId }) => channelId)).toEqual([
      '"\\{}',
      'B',
      'a b',
      'b',
      'é/%',
      '～',
      '\u{1F600}',
    ])
    for (const count of counts) {
      expect(count).toMatchObject({
        consumerId: 'k/%é',
        consumerName: 'after',
        channelName: `channel ${count.channelId}`,
        deadCount: 1,
      })
    }
  })

  it('vanish with their consumer, and are not those of one that comes after it', async () => {
    const channel = await books.channel('gone')
    const consumer = await books.consumer(channel, { consumerId: 'billing' })
    const [dead = ''] = await books.deadJobs(consumer, 1)
    await books.jobs.erase(consumer, dead)
    expect(await told('gone')).toEqual([['billing', 0]])
    await books.consumers.delete(channel, 'billing', formatHttpDate(consumer.updatedAt))
    expect(await told('gone')).toEqual([])
    books.pass(1)
    const successor = await books.consumer(channel, { consumerId: 'billing' })
    expect(await told('gone')).toEqual([])
    await books.deadJobs(successor, 1)
    expect(await told('gone')).toEqual([['billing', 1]])
  })

  it('tell since when they are dead, when asked', async () => {
    const channel = await books.channel('since')
    const consumer = await books.consumer(channel, { consumerId: 'billing' })
    const [first, second, third] = (await books.send([consumer], 3)).flat()
    if (first === undefined || second === undefined || third === undefined) throw new Error('no job')
    const start = books.clock.now()
    await books.die([first])
    books.pass(5)
    await books.die([second])
    books.pass(5)
    await books.move([third], JOB.delivered)
    const ofChannel = async (ends: boolean) =>
      (await read(ends)).filter(({ channelId }) => channelId === 'since')
    expect(await ofChannel(true)).toMatchObject([{ oldestAt: start, newestAt: start + 5_000_000n }])
    expect(await ofChannel(false)).toMatchObject([{ oldestAt: null, newestAt: null }])
  })
})
