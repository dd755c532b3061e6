/** `queue.retry` with what failed: the letter shows it in place of the words that deaths otherwise get. */
import { create, toBinary } from '@bufbuild/protobuf'
import { expect, it } from 'vitest'
import { QueueRetryItemSchema, QueueRetryRequestSchema } from '../../../src/queues/wire/queues_pb.ts'
import { base64, idsOf, offices, only } from './bed.ts'

const ERROR = {
  error_class: 'NoSuchCustomer',
  error_message: 'customer 17 is unknown',
  error_stack: 'NoSuchCustomer: customer 17 is unknown\n    at find (customers.py:3)',
}
const SHOWN = {
  errorClass: ERROR.error_class,
  errorMessage: ERROR.error_message,
  errorStack: ERROR.error_stack,
}

offices('a retry that says what failed', (desk) => {
  const letterOf = async (queue: string) => desk.letter(only(await desk.walk({ originalQueue: queue })))

  async function leased(settings: Record<string, string | number> = {}) {
    const queue = await desk.queues.queue(settings)
    await desk.queues.produce(queue, 'x')
    return { queue, id: only((await desk.queues.lease(queue)).items).id }
  }

  it('with dead makes a letter with class, message and stack', async () => {
    const { queue, id } = await leased()
    await desk.queues.retry(queue, [{ id, dead: true, ...ERROR }])
    const letter = await letterOf(queue)
    expect(letter).toMatchObject({ ...SHOWN, engine: 'queues', status: 'Pending' })
    expect(await desk.acts(letter)).toEqual(['capture'])
  })

  it('with dead does so in a dead queue and for an engine too', async () => {
    const dead = await desk.queues.queue()
    const { queue, id } = await leased({ dead_queue: dead })
    await desk.queues.retry(queue, [{ id, dead: true, ...ERROR }])
    expect(await letterOf(queue)).toMatchObject(SHOWN)
    await desk.queues.queue({ queue_name: 'aged-queue' })
    await desk.queues.produce('aged-queue', '{"instanceId":"eu-1"}')
    const aged = only((await desk.queues.lease('aged-queue')).items)
    await desk.queues.retry('aged-queue', [{ id: aged.id, dead: true, ...ERROR }])
    expect(await letterOf('aged-queue')).toMatchObject({ ...SHOWN, engine: 'aged', instanceId: 'eu-1' })
  })

  it('at the last attempt makes such a letter, with the failures before it as attempts', async () => {
    const { queue, id } = await leased({ max_attempts: 2 })
    await desk.queues.retry(queue, [{ id, error_class: 'Busy', error_message: 'try later' }])
    const again = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id: again.id, ...ERROR }])
    const letter = await letterOf(queue)
    expect(letter).toMatchObject({ ...SHOWN, dequeueCount: 2 })
    expect(letter.attempts).toMatchObject([
      { errorClass: 'Busy', errorMessage: 'try later' },
      { errorClass: ERROR.error_class },
    ])
    expect(await desk.acts(letter)).toEqual(['capture'])
  })

  it('leaves only the last where deliveries have no end', async () => {
    const { queue, id } = await leased({ max_attempts: 0 })
    await desk.queues.retry(queue, [{ id, error_class: 'Busy', error_message: 'try later' }])
    const again = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id: again.id, dead: true, ...ERROR }])
    const letter = await letterOf(queue)
    expect(letter).toMatchObject({ ...SHOWN, dequeueCount: 2 })
    expect(letter.attempts.map(({ errorClass }) => errorClass)).toEqual([ERROR.error_class])
  })

  it('is on the letter that it reopens, with the failure before among its attempts', async () => {
    const { queue, id } = await leased()
    await desk.queues.retry(queue, [{ id, dead: true, error_message: 'first' }])
    const letter = await letterOf(queue)
    expect(letter).toMatchObject({ errorClass: 'Rejected', errorMessage: 'first', errorStack: null })
    await desk.retry(letter)
    const again = only((await desk.queues.lease(queue)).items)
    await desk.queues.retry(queue, [{ id: again.id, dead: true, ...ERROR }])
    const reopened = await letterOf(queue)
    expect(reopened).toMatchObject({ rowKey: letter.rowKey, ...SHOWN })
    expect(reopened.attempts.map(({ errorMessage }) => errorMessage)).toEqual(['first', ERROR.error_message])
    expect(reopened.history.find(({ operation }) => operation === 'reopen')).toBeDefined()
  })

  it('leaves nothing behind when the item is completed after all', async () => {
    const { queue, id } = await leased()
    await desk.queues.retry(queue, [{ id, ...ERROR }])
    await desk.queues.complete(queue, idsOf((await desk.queues.lease(queue)).items))
    expect(await desk.walk({ originalQueue: queue })).toEqual([])
  })

  it('groups those that died of the same, each with its own content', async () => {
    const queue = await desk.queues.queue()
    await desk.queues.produceItems(
      queue,
      ['a', 'b', 'c'].map((text) => ({ bytes: base64(text) })),
    )
    const ids = idsOf((await desk.queues.lease(queue, 3)).items)
    const items = ids.map((id, i) => ({
      id,
      dead: true,
      ...ERROR,
      error_message: `customer ${i} is unknown`,
    }))
    await desk.queues.retry(queue, items)
    const letters = await desk.walk({ originalQueue: queue })
    expect(letters).toHaveLength(3)
    expect(new Set(letters.map(({ signature }) => signature)).size).toBe(1)
    expect(letters.map(({ errorMessage }) => errorMessage).sort()).toEqual([
      'customer 0 is unknown',
      'customer 1 is unknown',
      'customer 2 is unknown',
    ])
  })

  it('is a letter also where the queue deletes what dies', async () => {
    const { queue, id } = await leased({ on_death: 'delete' })
    await desk.queues.retry(queue, [{ id, dead: true, ...ERROR }])
    expect(await letterOf(queue)).toMatchObject(SHOWN)
  })

  it('says so in protobuf in the fields 1000 to 1002', async () => {
    const { queue, id } = await leased()
    const item = { id, dead: true, errorClass: 'A', errorMessage: 'b', errorStack: 'c' }
    const body = create(QueueRetryRequestSchema, { queueName: queue, items: [item] })
    const headers = { 'content-type': 'application/protobuf' }
    const bytes = toBinary(QueueRetryRequestSchema, body)
    const { status } = await desk.wire.raw('/v1/queue.retry', { headers, body: bytes })
    expect(status).toBe(200)
    expect(await letterOf(queue)).toMatchObject({ errorClass: 'A', errorMessage: 'b', errorStack: 'c' })
    const { errorClass, errorMessage, errorStack } = QueueRetryItemSchema.field
    expect([errorClass, errorMessage, errorStack].map(({ number }) => number)).toEqual([1000, 1001, 1002])
  })

  it('keeps the limit of the body, and takes odd characters', async () => {
    const { queue, id } = await leased()
    const items = [{ id, dead: true, error_message: 'x'.repeat(256_000) }]
    await desk.queues.refusesWith('/v1/queue.retry', { queue_name: queue, items }, 'exceeds 250.0KiB limit')
    await desk.queues.retry(queue, [
      { id, dead: true, error_class: 'A\u0000B', error_message: 'y'.repeat(100_000) },
    ])
    const letter = await letterOf(queue)
    expect(letter.errorClass).toBe('A\uFFFDB')
    expect(letter.errorMessage.length).toBeLessThanOrEqual(32_768)
  })
})
