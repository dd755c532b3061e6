/** The client against a real server: every call, and a consumer from start to stop. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../../test/world/server.ts'
import { DeadLetterError, QueueClient, textOf } from './index.ts'

let server: RunningServer
let client: QueueClient
let count = 0

beforeAll(async () => {
  server = await startServer({ store: 'sqlite::memory:', testApi: false })
  client = new QueueClient({ url: server.url })
})

afterAll(() => server.stop())

/** A queue that no other test uses. */
async function newQueue(settings: { deadQueue?: string; maxAttempts?: number } = {}): Promise<string> {
  const queueName = `q${++count}`
  await client.create({
    queueName,
    leaseTimeout: '1m',
    expireTimeout: '1h',
    requestedPartitions: 1,
    ...settings,
  })
  return queueName
}

const lease = (queueName: string, batchSize = 10) =>
  client.lease({ queueName, clientId: 'c', batchSize, requestTimeout: '1s' })

describe('queues', () => {
  it('are created, listed, changed and deleted', async () => {
    const queueName = await newQueue()
    await client.update({ queueName, maxAttempts: 7, leaseTimeout: '2m' })
    const queue = await client.info(queueName)
    expect(queue).toMatchObject({ leaseTimeout: '2m0s', expireTimeout: '1h0m0s', maxAttempts: 7 })
    expect(queue.updatedAt.getTime()).toBeGreaterThanOrEqual(queue.createdAt.getTime())
    expect(await client.list({ pivot: queueName, limit: 1 })).toEqual([queue])
    await client.reload(queueName)
    await client.delete({ queueName })
    await expect(client.info(queueName)).rejects.toMatchObject({ code: 'queue_unknown', status: 400 })
  })
})

describe('items', () => {
  it('keep their payload byte for byte from produce to lease', async () => {
    const queueName = await newQueue()
    const payload = Uint8Array.from({ length: 256 }, (_, index) => index)
    await client.produce({
      queueName,
      items: [{ payload, kind: 'k', reference: 'r', encoding: 'e' }, { payload: 'é' }],
    })
    const { items, partition } = await lease(queueName)
    expect(items[0]).toMatchObject({ payload, kind: 'k', reference: 'r', encoding: 'e', attempts: 1 })
    expect(textOf(items[1]?.payload ?? payload)).toBe('é')

    await client.complete({ queueName, partition, ids: items.map(({ id }) => id) })
    const gone = client.complete({ queueName, ids: items.map(({ id }) => id) })
    await expect(gone).rejects.toMatchObject({ code: 'item_unknown' })
  })

  it('are produced once per dedupe key, scheduled, extended, retried and counted', async () => {
    const queueName = await newQueue()
    const enqueueAt = new Date('2100-01-01T00:00:00Z')
    const first = await client.produceWithIds({ queueName, items: [{ dedupeKey: 'a' }] })
    const second = await client.produceWithIds({ queueName, items: [{ dedupeKey: 'a' }, { enqueueAt }] })
    expect(second.items.map(({ outcome }) => outcome)).toEqual(['existed', 'scheduled'])
    expect(second.items[0]?.id).toBe(first.items[0]?.id)
    expect(await client.listScheduled({ queueName })).toHaveLength(1)

    const { items } = await lease(queueName)
    const ids = items.map(({ id }) => id)
    const deadline = await client.extend({ queueName, ids, leaseTimeout: '30m' })
    expect(deadline.getTime()).toBeGreaterThan(items[0]?.leaseDeadline.getTime() ?? Number.NaN)
    expect(await client.stats(queueName)).toMatchObject({
      partitions: [{ total: 1, totalLeased: 1, scheduled: 1 }],
    })
    await client.retry({ queueName, items: ids.map((id) => ({ id })) })
    await expect(client.extend({ queueName, ids })).rejects.toMatchObject({ status: 400 })

    await client.clear({ queueName, queue: true, scheduled: true })
    await expect(lease(queueName).catch((error) => error.code)).resolves.toBe('lease_timed_out')
  })

  it('are imported, listed and deleted as they are stored', async () => {
    const queueName = await newQueue()
    const expireDeadline = new Date('2100-01-01T00:00:00.123Z')
    const items = [{ sourceId: 's', payload: 'x', attempts: 4, expireDeadline }, { sourceId: 's' }]
    const outcomes = await client.importItems({ queueName, items })
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['imported', 'existed'])
    const [stored] = await client.listItems({ queueName })
    expect(stored).toMatchObject({
      sourceId: 's',
      attempts: 4,
      expireDeadline,
      leaseDeadline: null,
      isLeased: false,
    })
    await client.deleteItems({ queueName, ids: [stored?.id ?? ''] })
    expect(await client.listItems({ queueName })).toEqual([])
  })

  it('tell where and why they died', async () => {
    const deadQueue = await newQueue()
    const queueName = await newQueue({ deadQueue })
    await client.produce({ queueName, items: [{ payload: 'x' }] })
    const { items } = await lease(queueName)
    const why = { errorClass: 'NotAnOrder', errorMessage: 'there is no order 7' }
    await client.retry({ queueName, items: items.map(({ id }) => ({ id, dead: true, ...why })) })
    expect(await client.peek({ queueName: deadQueue })).toMatchObject([
      { sourceId: items[0]?.id, death: { queueName, partition: 0, reason: 'rejected', attempts: 1 } },
    ])
  })
})

describe('a consumer', () => {
  it('works through a queue: completes, retries and buries', async () => {
    const deadQueue = await newQueue()
    const queueName = await newQueue({ deadQueue, maxAttempts: 3 })
    const payloads = Array.from({ length: 250 }, (_, index) => String(index))
    await client.produce({ queueName, items: payloads.map((payload) => ({ payload })) })

    const deliveries = new Map<string, number>()
    const { promise: allSeen, resolve } = Promise.withResolvers<void>()
    const consumer = client.consume(
      queueName,
      (item) => {
        const name = textOf(item.payload) ?? ''
        deliveries.set(name, (deliveries.get(name) ?? 0) + 1)
        if (deliveries.size === payloads.length && deliveries.get('7') === 2) resolve()
        if (name === '7' && item.attempts === 1) throw new Error('once more')
        if (name === '13') throw new DeadLetterError('unlucky')
      },
      { concurrency: 25, retryDelayMs: () => 0, onError: () => {} },
    )
    await allSeen
    await consumer.stop()

    expect(deliveries.get('7')).toBe(2)
    expect([...deliveries.values()].reduce((sum, n) => sum + n)).toBe(251)
    expect(await client.stats(queueName)).toMatchObject({ partitions: [{ total: 0, scheduled: 0 }] })
    const dead = await client.peek({ queueName: deadQueue })
    expect(dead.map(({ payload }) => textOf(payload))).toEqual(['13'])
  })

  it('gives back what it has not begun when it is stopped', async () => {
    const queueName = await newQueue()
    await client.produce({ queueName, items: Array.from({ length: 5 }, () => ({ payload: 'x' })) })
    const started = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const consumer = client.consume(
      queueName,
      async () => {
        started.resolve()
        await gate.promise
      },
      { concurrency: 1, prefetch: 4 },
    )
    await started.promise
    const stopped = consumer.stop()
    gate.resolve()
    await stopped
    expect(await client.stats(queueName)).toMatchObject({ partitions: [{ total: 4, totalLeased: 0 }] })
  })
})
