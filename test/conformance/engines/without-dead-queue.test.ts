/** Deaths in queues that have no dead queue: each is a letter that lies nowhere, unless the queue says otherwise. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { QueueInfoSchema } from '../../../src/queues/wire/queues_pb.ts'
import { hours, minutes, ms, us } from '../../world/time.ts'
import { type Desk, idsOf, type Listed, offices, only, unique } from './bed.ts'

type Settings = Record<string, string | number>

/** Lets the one item of a queue with `max_attempts: 1` die; gives the id it died with. */
type Die = (desk: Desk, queue: string) => Promise<string>

const DEATHS: [name: string, die: Die, reason: string, attempts: number][] = [
  [
    'a lease that ends',
    async (desk, queue) => {
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.clock.advance(minutes(1) + ms(11))
      return id
    },
    'AttemptsExhausted',
    1,
  ],
  [
    'a retry at the last attempt',
    async (desk, queue) => {
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.queues.retry(queue, [{ id }])
      return id
    },
    'AttemptsExhausted',
    1,
  ],
  [
    'a retry with dead',
    async (desk, queue) => {
      const { id } = only((await desk.queues.lease(queue)).items)
      await desk.queues.retry(queue, [{ id, dead: true }])
      return id
    },
    'Rejected',
    1,
  ],
  [
    'expiry',
    async (desk, queue) => {
      const { id } = only(await desk.queues.items(queue))
      await desk.clock.advance(hours(24) + us(1))
      return id
    },
    'Expired',
    0,
  ],
]

const lettersOf = (desk: Desk, queue: string): Promise<Listed[]> => desk.walk({ originalQueue: queue })

async function queueWith(desk: Desk, text: string, settings: Settings = {}): Promise<string> {
  const queue = await desk.queues.queue({ max_attempts: 1, ...settings })
  await desk.queues.produce(queue, text)
  return queue
}

const overview = async (desk: Desk, queue: string): Promise<Record<string, unknown>> => {
  const { items } = await desk.ok<{ items: { name: string }[] }>('GET', '/api/queues', {
    query: { limit: 100 },
  })
  return only(items.filter(({ name }) => name === queue))
}

offices('an item that dies without a dead queue', (desk) => {
  it.each(DEATHS)('by %s is gone from the queue and a letter', async (_, die, errorClass, attempts) => {
    const queue = await queueWith(desk, 'content')
    const id = await die(desk, queue)
    expect(await desk.queues.items(queue)).toEqual([])
    expect(await desk.queues.scheduled(queue)).toEqual([])
    const letter = only(await lettersOf(desk, queue))
    expect(letter).toMatchObject({ engine: 'queues', status: 'Pending', dequeueCount: attempts })
    expect(letter.rowKey.startsWith(`${id}-`)).toBe(true)
    expect(await desk.letter(letter)).toMatchObject({
      originalMessage: 'content',
      errorClass,
      deadQueue: null,
      originalQueue: queue,
    })
    expect(await desk.acts(letter)).toEqual(['capture'])
    expect(await overview(desk, queue)).toMatchObject({ ready: 0, dead: 0, letters: 1 })
  })

  it('goes back to its queue, dies again as the same letter, and is confirmed when it completes', async () => {
    const queue = await queueWith(desk, 'x')
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    const letter = only(await lettersOf(desk, queue))
    expect(await desk.retry(letter)).toMatchObject({ queue })
    const again = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id: again.id, dead: true }])
    expect(only(await lettersOf(desk, queue))).toMatchObject({ rowKey: letter.rowKey, status: 'Pending' })
    await desk.retry(letter)
    await desk.queues.complete(queue, idsOf((await desk.queues.lease(queue)).items))
    expect((await desk.letter(letter)).confirmedAtUtc).not.toBeNull()
    expect(await desk.acts(letter)).toEqual(['capture', 'retry', 'reopen', 'retry', 'confirm'])
  })

  it('can be discarded and restored, and is counted', async () => {
    const queue = await queueWith(desk, 'x')
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    const letter = only(await lettersOf(desk, queue))
    await desk.patch(letter, 'Resolved', 'not needed')
    expect(await overview(desk, queue)).toMatchObject({ letters: 0 })
    await desk.patch(letter, 'Pending')
    expect(await desk.letter(letter)).toMatchObject({ status: 'Pending', deadQueue: null })
    expect(await overview(desk, queue)).toMatchObject({ letters: 1 })
    expect(await desk.queues.items(queue)).toEqual([])
  })

  it('is a letter whatever the dead queue was before: the settings at that moment count', async () => {
    const dead = await desk.queues.queue()
    const queue = await queueWith(desk, 'x', { dead_queue: dead })
    await desk.queues.lease(queue)
    await desk.queues.ok('/v1/queues.update', { queue_name: queue, max_attempts: 1 })
    await desk.clock.advance(minutes(1) + ms(11))
    expect(await desk.queues.items(dead)).toEqual([])
    expect(only(await lettersOf(desk, queue))).toMatchObject({ status: 'Pending' })
  })
})

offices('a queue with on_death', (desk) => {
  it.each(DEATHS)('delete loses what dies by %s', async (_, die) => {
    const queue = await queueWith(desk, 'tick', { on_death: 'delete' })
    await die(desk, queue)
    expect(await desk.queues.items(queue)).toEqual([])
    expect(await lettersOf(desk, queue)).toEqual([])
  })

  it('delete still fills the dead queue while there is one', async () => {
    const dead = await desk.queues.queue()
    const queue = await queueWith(desk, 'x', { on_death: 'delete', dead_queue: dead })
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    expect(await desk.queues.items(dead)).toHaveLength(1)
    expect(await lettersOf(desk, queue)).toHaveLength(1)
  })

  it('delete still reopens the letter that an item was sent back from', async () => {
    const queue = await queueWith(desk, 'x')
    const { id } = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id, dead: true }])
    const letter = only(await lettersOf(desk, queue))
    await desk.queues.ok('/v1/queues.update', { queue_name: queue, on_death: 'delete' })
    await desk.retry(letter)
    const again = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id: again.id, dead: true }])
    expect(only(await lettersOf(desk, queue))).toMatchObject({ rowKey: letter.rowKey, status: 'Pending' })
  })

  it('is shown by GET /api/queues, stays when an update does not name it, and is in no reply under /v1', async () => {
    const queue = await desk.queues.queue({ on_death: 'delete' })
    expect(await overview(desk, queue)).toMatchObject({ onDeath: 'delete' })
    await desk.queues.ok('/v1/queues.update', { queue_name: queue, lease_timeout: '2m' })
    expect(await overview(desk, queue)).toMatchObject({ onDeath: 'delete', leaseTimeout: '2m0s' })
    expect(Object.keys(await desk.queues.info(queue))).not.toContain('on_death')
    const listed = await desk.queues.ok<{ items: object[] }>('/v1/queues.list', { pivot: queue, limit: 1 })
    expect(Object.keys(only(listed.items))).not.toContain('on_death')
    await desk.queues.ok('/v1/queues.update', { queue_name: queue, on_death: 'letter' })
    expect(await overview(desk, queue)).toMatchObject({ onDeath: 'letter' })
    expect(await overview(desk, await desk.queues.queue())).toMatchObject({ onDeath: 'letter' })
  })

  it('is taken in protobuf as field 1000, and no reply has it', async () => {
    const queue = unique()
    const call = (path: string, fields: MessageInitShape<typeof QueueInfoSchema>) =>
      desk.wire.raw(path, {
        headers: { 'content-type': 'application/protobuf', accept: 'application/protobuf' },
        body: toBinary(QueueInfoSchema, create(QueueInfoSchema, fields)),
      })
    const settings = { leaseTimeout: '1m', expireTimeout: '24h', requestedPartitions: 1 }
    const made = await call('/v1/queues.create', { queueName: queue, ...settings, onDeath: 'delete' })
    expect(made.status).toBe(200)
    expect(await overview(desk, queue)).toMatchObject({ onDeath: 'delete' })
    const { bytes } = await call('/v1/queues.info', { queueName: queue })
    expect(fromBinary(QueueInfoSchema, bytes)).toMatchObject({ queueName: queue, onDeath: '' })
    expect(QueueInfoSchema.field.onDeath.number).toBe(1000)
  })

  it('of another word is refused with what is allowed, after all that the contract checks', async () => {
    const text = "on_death is invalid; 'keep' is not allowed, give 'letter' or 'delete'"
    const settings = { lease_timeout: '1m', expire_timeout: '24h', requested_partitions: 1 }
    await desk.queues.refuses(
      '/v1/queues.create',
      { queue_name: 'kept', ...settings, on_death: 'keep' },
      text,
    )
    const queue = await desk.queues.queue()
    await desk.queues.refuses('/v1/queues.update', { queue_name: queue, on_death: 'keep' }, text)
    await desk.queues.refuses(
      '/v1/queues.create',
      { queue_name: 'kept', lease_timeout: '1m', expire_timeout: '24h', on_death: 'keep' },
      'partitions is invalid; cannot be less than 1',
    )
  })
})
