import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LetterStore } from '../../../../test/world/letter-store.ts'
import { message } from '../../../../test/world/outbox-message.ts'
import { type FreshStore, stores } from '../../../../test/world/stores.ts'
import { failure } from '../../../core/errors.ts'
import { PermanentError } from '../../../core/thrown.ts'
import { Office } from '../../../office.ts'
import type { LeasedItem } from '../../../queues/queue.ts'
import type { Queues } from '../../../queues/queues.ts'
import { sql } from '../../../store/database.ts'
import { localQueueTransport, queueTransport } from './queue.ts'

const NEVER = new AbortController().signal
const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))

const settings = { queueName: 'orders', leaseTimeout: '1m', expireTimeout: '24h', requestedPartitions: 1 }
const leaseAll = async (queues: Queues): Promise<readonly LeasedItem[]> =>
  (await queues.lease({ queueName: 'orders', clientId: 'c', batchSize: 1_000 })).items
const thrownBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )

describe.each(stores)('a delivery into a queue, on $name', (store) => {
  let place: FreshStore
  let office: Office
  beforeEach(async () => {
    place = await store.fresh()
    office = await Office.open({ store: place.url })
  })
  afterEach(async () => {
    await office.close()
    await place.dispose()
  })

  it('is an item with everything that a worker needs', async () => {
    await office.queues.create(settings)
    const { deliver } = queueTransport({ queues: office.queues, queue: 'orders' })
    await deliver(message({ payload: EVERY_BYTE }), NEVER)
    await deliver(message({ key: 'k2', tenantId: 'Müller; & Co', correlationId: 'c-1' }), NEVER)
    await deliver(message({ key: 'k3', headers: { 'Content-Type': 'text/csv' } }), NEVER)

    const [first, second, third] = await leaseAll(office.queues)
    expect(Buffer.from(first?.payload ?? []).equals(EVERY_BYTE)).toBe(true)
    expect(first).toMatchObject({
      kind: 'order.created',
      reference: 'ba73d97a-5b6f-e712-ae41-f39ca66495e4',
      encoding: 'application/octet-stream; tenant-id=acme',
    })
    expect(second?.encoding).toBe('application/json; tenant-id=M%C3%BCller%3B%20&%20Co; correlation-id=c-1')
    expect(third?.encoding).toBe('text/csv; tenant-id=acme')
  })

  it('that is repeated adds nothing; the same key of another tenant does', async () => {
    await office.queues.create(settings)
    const { deliver } = queueTransport({ queues: office.queues, queue: 'orders' })
    const long = 'tenant'.repeat(200)
    for (const tenantId of ['acme', 'acme', 'globex', long, long, 'acme'])
      await deliver(message({ tenantId }), NEVER)
    expect(await leaseAll(office.queues)).toHaveLength(3)
  })

  it('fails for now when the queue is not there, or the office stops', async () => {
    const { deliver } = queueTransport({ queues: office.queues, queue: 'orders' })
    const unknown = await thrownBy(deliver(message(), NEVER))
    expect(unknown).toMatchObject({ code: 'queue_unknown' })
    expect(unknown).not.toBeInstanceOf(PermanentError)
    await office.queues.create(settings)
    await deliver(message(), NEVER)
    await office.drain()
    expect(await thrownBy(deliver(message(), NEVER))).toMatchObject({ code: 'service_stopping' })
  })

  it('does not overload a queue, however many go there at once', async () => {
    await office.queues.create(settings)
    const { deliver } = queueTransport({ queues: office.queues, queue: 'orders' })
    await Promise.all(Array.from({ length: 500 }, (_, i) => deliver(message({ key: `k${i}` }), NEVER)))
    expect(await leaseAll(office.queues)).toHaveLength(500)
  })
})

describe('a delivery into a queue', () => {
  const reason = new Error('the dispatcher was stopped')

  it('ends at once when it is broken off, waiting or not', async () => {
    const answers: (() => void)[] = []
    const held = {
      produce: () =>
        new Promise<never>((_, reject) => answers.push(() => reject(failure('queue_overloaded')))),
    }
    const { deliver } = queueTransport({ queues: held, queue: 'orders' })
    const broken = new AbortController()
    const deliveries = Array.from({ length: 60 }, () => thrownBy(deliver(message(), broken.signal)))
    await Promise.resolve()
    expect(answers).toHaveLength(50)
    broken.abort(reason)
    expect(new Set(await Promise.all(deliveries))).toEqual(new Set([reason]))
    expect(await thrownBy(deliver(message(), broken.signal))).toBe(reason)
    // Their room is free again once the queue has answered.
    for (const answer of answers.splice(0)) answer()
    await new Promise((resolve) => setImmediate(resolve))
    const next = thrownBy(deliver(message(), NEVER))
    await new Promise((resolve) => setImmediate(resolve))
    answers[0]?.()
    expect(await next).toMatchObject({ code: 'queue_overloaded' })
  })

  it.each<[unknown, string]>([
    [undefined, 'option transport is invalid'],
    [{ queue: 'q' }, "option queues is invalid; it has no function 'produce'"],
    [{ queues: { produce() {} } }, 'option queue is invalid; undefined is no name'],
    [
      { queues: { produce() {} }, queue: 'a b' },
      "option queue is invalid; queue name is invalid; 'a b' cannot",
    ],
    [{ queues: { produce() {} }, queue: 'q', partition: 1 }, 'option partition is invalid'],
  ])('is refused with wrong options: %j', (options, text) => {
    // What a user of plain JavaScript may write.
    expect(() => queueTransport(options as Parameters<typeof queueTransport>[0])).toThrow(text)
  })
})

const NOTE = sql('test.noteTransfer', 'INSERT INTO bartleby.test_notes (note) VALUES ($1)')
const NOTES = sql('test.notes', 'SELECT note FROM bartleby.test_notes ORDER BY note')

describe.each(stores)('a transfer within the store of the office, on $name', (store) => {
  let office: LetterStore
  beforeEach(async () => {
    office = await LetterStore.open(store)
    const table = store.name === 'postgres' ? 'bartleby.test_notes' : 'test_notes'
    await office.db.transaction('test.make', (tx) =>
      office.db.script(tx, `CREATE TABLE ${table} (note text NOT NULL)`),
    )
    await office.queues.create(settings)
  })
  afterEach(() => office.close())

  const transport = (queue = 'orders') => {
    const { db, clock, queues } = office
    return localQueueTransport({ db, clock, queue, put: (...given) => queues.put(...given) })
  }
  const notes = () => office.db.session('test.notes', (session) => session.rows<{ note: string }>(NOTES))
  const batch = Array.from({ length: 100 }, (_, i) =>
    message({ id: String(i), key: `key-${i}`, payload: Buffer.from(`{"n":${i}}`) }),
  )

  it('puts the messages and settles them together, in their order', async () => {
    const waiting = leaseAll(office.queues)
    const settled = await transport().transfer(batch, async (tx) => {
      await tx.run(NOTE, 'settled')
      return 'all of them'
    })
    expect(settled).toBe('all of them')
    expect(await notes()).toHaveLength(1)
    const items = await waiting
    expect(items.map(({ reference }) => reference)).toEqual(batch.map(({ key }) => key))
    expect(items[7]).toMatchObject({
      kind: 'order.created',
      encoding: 'application/json; tenant-id=acme',
    })
    expect(Buffer.from(items[7]?.payload ?? []).toString()).toBe('{"n":7}')
  })

  it('does neither when settling fails', async () => {
    const refusal = transport().transfer(batch, async (tx) => {
      await tx.run(NOTE, 'settled')
      throw new Error('another dispatcher has them')
    })
    await expect(refusal).rejects.toThrow('another dispatcher has them')
    expect(await notes()).toEqual([])
    expect(await office.queues.listItems({ queueName: 'orders' })).toEqual([])
    expect((await office.queues.stats('orders')).partitions[0]?.total).toBe(0)
  })

  it('does neither when there is no such queue', async () => {
    const refusal = transport('elsewhere').transfer(batch, (tx) => tx.run(NOTE, 'settled'))
    expect(await thrownBy(refusal)).toMatchObject({ code: 'queue_unknown' })
    expect(await notes()).toEqual([])
  })

  it('is refused a queue that can have no such name', () => {
    expect(() => transport('')).toThrow('option queue is invalid; queue name is invalid')
  })
})
