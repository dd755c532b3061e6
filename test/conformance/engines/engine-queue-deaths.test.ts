/** Messages that die in an engine's queue without its worker: through the queue API, by expiry, by a lease that ends. */
import { expect, it } from 'vitest'
import { minutes, ms } from '../../world/time.ts'
import { base64, type Desk, idsOf, type Listed, offices, only, unique } from './bed.ts'

const QUEUE = 'ledger-queue'

/** The engine's queue, made once; the tests of a store share it. */
async function ledgerQueue(desk: Desk, settings: Record<string, string | number> = {}): Promise<string> {
  const { status } = await desk.queues.call('/v1/queues.create', {
    queue_name: QUEUE,
    lease_timeout: '1m',
    expire_timeout: '24h',
    requested_partitions: 1,
  })
  expect([200, 400]).toContain(status)
  await desk.queues.ok('/v1/queues.update', { queue_name: QUEUE, ...settings })
  return QUEUE
}

/** Lets a message die by a retry with `dead`; gives its letter and the id it died with. */
async function death(desk: Desk, payload: string, queue = QUEUE): Promise<{ letter: Listed; id: string }> {
  await desk.queues.produceItems(queue, [{ bytes: base64(payload) }])
  const { id } = only((await desk.queues.lease(queue)).items)
  await desk.queues.retry(queue, [{ id, dead: true }])
  return { letter: await letterOf(desk, id), id }
}

async function letterOf(desk: Desk, id: string): Promise<Listed> {
  const letters = await desk.walk({ engine: 'ledger' })
  const details = await Promise.all(letters.map((letter) => desk.letter(letter)))
  return only(details.filter((letter) => (letter as unknown as { sourceId: string }).sourceId.endsWith(id)))
}

offices('a message that dies in the queue of an engine', (desk) => {
  it('is a letter of the engine, with the instance and the correlation that it names', async () => {
    await ledgerQueue(desk)
    const correlationId = unique('c')
    const { letter, id } = await death(desk, JSON.stringify({ instanceId: 'eu-1', correlationId }))
    expect(letter).toMatchObject({
      engine: 'ledger',
      source: 'engines',
      originalQueue: QUEUE,
      instanceId: 'eu-1',
      correlationId,
      status: 'Pending',
      dequeueCount: 1,
      sourceId: `item-${id}`,
    })
    expect(letter.rowKey.startsWith('eu-1-')).toBe(true)
    expect(await desk.acts(letter)).toEqual(['capture'])
    expect(only((await desk.history({ correlationId })).items)).toMatchObject({
      engine: 'ledger',
      operation: 'capture',
      status: 'Succeeded',
      instanceId: 'eu-1',
    })
    expect(await desk.walk({ originalQueue: QUEUE, engine: 'queues' })).toEqual([])
  })

  it.each([
    ['no JSON', 'not json'],
    ['a list', '["instanceId","correlationId"]'],
    ['members that are no texts', '{"instanceId":7,"correlationId":{"a":1}}'],
    ['members deeper down', '{"data":{"instanceId":"eu-1","correlationId":"c"}}'],
    ['empty members', '{"instanceId":"","correlationId":""}'],
    ['more than 64 KiB', JSON.stringify({ instanceId: 'eu-1', correlationId: 'c', pad: 'x'.repeat(65_536) })],
  ])('is named by its source id when it is %s', async (_, payload) => {
    await ledgerQueue(desk)
    const { letter, id } = await death(desk, payload)
    const name = `item-${id}`
    expect(letter).toMatchObject({ engine: 'ledger', instanceId: name, correlationId: name })
    expect((await desk.letter(letter)).originalMessage).toBe(payload)
    expect(await desk.acts(letter)).toEqual(['capture'])
  })

  it('by a lease that ends too, several at once and of one instance', async () => {
    await ledgerQueue(desk, { max_attempts: 1 })
    const instanceId = unique('i')
    const texts = ['a', 'b', 'c'].map((n) => JSON.stringify({ instanceId, n }))
    await desk.queues.produce(QUEUE, ...texts)
    await desk.queues.lease(QUEUE, 3)
    await desk.clock.advance(minutes(1) + ms(11))
    const letters = await desk.walk({ engine: 'ledger', instanceId })
    expect(letters).toHaveLength(3)
    expect(new Set(letters.map(({ rowKey }) => rowKey)).size).toBe(3)
    await ledgerQueue(desk, { max_attempts: 0 })
  })

  it('goes back, reopens the same letter and is confirmed', async () => {
    await ledgerQueue(desk)
    const { letter } = await death(desk, JSON.stringify({ instanceId: unique('i') }))
    expect(await desk.retry(letter)).toMatchObject({ queue: QUEUE })
    const { id } = only((await desk.queues.lease(QUEUE)).items)
    await desk.queues.retry(QUEUE, [{ id, dead: true }])
    expect((await desk.letter(letter)).status).toBe('Pending')
    await desk.retry(letter)
    await desk.queues.complete(QUEUE, idsOf((await desk.queues.lease(QUEUE)).items))
    expect(await desk.acts(letter)).toEqual(['capture', 'retry', 'reopen', 'retry', 'confirm'])
  })

  it('is not swallowed by a letter that a reporter filed under the id of the item', async () => {
    await ledgerQueue(desk)
    await desk.queues.produce(QUEUE, '{"n":1}')
    const { id } = only((await desk.queues.lease(QUEUE)).items)
    const reported = await desk.capture({ engine: 'ledger', sourceId: id })
    await desk.queues.retry(QUEUE, [{ id, dead: true }])
    const letters = (await desk.walk({ engine: 'ledger' })) as (Listed & { sourceId: string })[]
    const mine = letters.filter(({ sourceId }) => sourceId.endsWith(id))
    expect(mine.map(({ sourceId }) => sourceId).sort()).toEqual([id, `item-${id}`].sort())
    expect(mine.map(({ rowKey }) => rowKey)).toContain(reported.rowKey)
  })

  it('has a source id of a form that no reporter may use', async () => {
    await ledgerQueue(desk)
    const { id } = await death(desk, 'x')
    const body = { engine: 'ledger', originalMessage: 'y', errorMessage: 'it failed', sourceId: `item-${id}` }
    await desk.refuses('POST', '/api/dlq', { body }, 400, 'sourceId', 'item-')
  })

  it('lies in the dead queue under the id that it had, where there is one', async () => {
    const dead = await desk.queues.queue()
    await ledgerQueue(desk, { dead_queue: dead })
    const { letter, id } = await death(desk, '{"instanceId":"eu-2"}')
    expect(only(await desk.queues.items(dead))).toMatchObject({ source_id: id })
    expect(letter).toMatchObject({ engine: 'ledger' })
    const items = [{ source_id: id, payload: base64('twin') }]
    await desk.queues.ok('/v1/storage/items.import', { queue_name: dead, items })
    expect(await desk.queues.items(dead)).toHaveLength(1)
    await ledgerQueue(desk)
  })
})
