/** A letter that was sent back hears of it when a call takes its item away before anybody processed it. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { later } from '../../src/core/clock.ts'
import type { CaseFile } from '../../src/letters/letters.ts'
import type { RedriveDetail } from '../../src/redrive/redrive.ts'
import { openDatabase } from '../../src/store/open.ts'
import { PATIENCE_MS, sizeOf } from '../world/limits.ts'
import { RedriveOffice } from '../world/redrive-office.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { violationsIn } from '../world/verified.ts'

let desk: RedriveOffice
afterEach(() => desk.close())

/** With what a replacement in a text would take for the text itself. */
const QUEUE = 'orders$&'
const HOUR_US = 3_600_000_000n

async function letters(): Promise<CaseFile[]> {
  const { items } = await desk.office.letters.list({}, { limit: 200 })
  return Promise.all(items.map((letter) => desk.office.letters.get(letter)))
}

async function onlyLetter(): Promise<CaseFile> {
  const all = await letters()
  expect(all).toHaveLength(1)
  return all[0] ?? expect.fail('there is no letter')
}

async function expectClean(): Promise<void> {
  const db = openDatabase(desk.place.url, { poolSize: 2 })
  try {
    expect(await violationsIn(db, { clock: desk.clock })).toEqual([])
  } finally {
    await db.close()
  }
}

const lease = (queueName: string) =>
  desk.office.queues.lease({ queueName, clientId: 'worker', batchSize: 1_000, requestTimeout: '1s' })

const listed = (queueName: string) => desk.office.queues.listItems({ queueName, limit: 1_000 })

/** Of the first thousand. */
const payloads = async (queueName: string): Promise<string[]> =>
  (await listed(queueName)).map(({ payload }) => Buffer.from(payload).toString())

/** Letters of 'orders', in 'orders-dead', whose items are on their way again; gives the redrive that sent them. */
async function sentBack(count = 1): Promise<RedriveDetail['id']> {
  const settings = { leaseTimeout: '1h', expireTimeout: '240h', requestedPartitions: 1 }
  await desk.office.queues.create({ ...settings, queueName: `${QUEUE}-dead` })
  await desk.office.queues.create({ ...settings, queueName: QUEUE, deadQueue: `${QUEUE}-dead` })
  const items = Array.from({ length: count }, (_, n) => `item ${n}`)
  for (let from = 0; from < count; from += 1_000) await desk.dead(QUEUE, items.slice(from, from + 1_000))
  return (await desk.run()).id
}

interface Removal {
  readonly how: string
  readonly remove: () => Promise<void>
  readonly deliveries: number
  readonly errorClass: string
  readonly errorMessage: string
  readonly by: string
}

const CLEARED = {
  errorClass: 'Cleared',
  errorMessage: "its queue 'orders$&' was cleared before it was processed",
  by: 'queues.clear',
}

const REMOVALS: readonly Removal[] = [
  {
    how: 'cleared',
    deliveries: 1,
    remove: () => desk.office.queues.clear({ queueName: QUEUE, queue: true }),
    ...CLEARED,
  },
  {
    how: 'cleared while a worker has it',
    deliveries: 2,
    remove: async () => {
      await lease(QUEUE)
      await desk.office.queues.clear({ queueName: QUEUE, queue: true, destructive: true })
    },
    ...CLEARED,
  },
  {
    how: 'cleared from the schedule',
    deliveries: 2,
    remove: async () => {
      const { items } = await lease(QUEUE)
      const retryAt = later(desk.clock.now(), HOUR_US)
      await desk.office.queues.retry({ queueName: QUEUE, items: items.map(({ id }) => ({ id, retryAt })) })
      await desk.office.queues.clear({ queueName: QUEUE, scheduled: true })
    },
    ...CLEARED,
  },
  {
    how: 'deleted',
    deliveries: 1,
    remove: async () => {
      const ids = (await listed(QUEUE)).map(({ id }) => id)
      await desk.office.queues.deleteItems({ queueName: QUEUE, ids })
    },
    errorClass: 'ItemDeleted',
    errorMessage: "it was deleted from its queue 'orders$&' before it was processed",
    by: 'items.delete',
  },
  {
    how: 'gone with its queue',
    deliveries: 1,
    remove: () => desk.office.queues.delete({ queueName: QUEUE }),
    errorClass: 'QueueDeleted',
    errorMessage: "its queue 'orders$&' was deleted before it was processed",
    by: 'queues.delete',
  },
]

describe.each(stores.map((kind) => reused(kind)))('a letter on $name whose item is', (kind) => {
  it.each(REMOVALS)('$how is reopened and says so', async ({ remove, deliveries, ...told }) => {
    desk = await RedriveOffice.open(kind)
    const redrive = await sentBack()
    desk.clock.advance(1_000_000n)
    await remove()
    await vi.waitFor(async () => expect((await onlyLetter()).letter.status).toBe('Pending'), {
      timeout: PATIENCE_MS,
    })
    const { errorClass, errorMessage, by } = told
    const { letter, failures, history } = await onlyLetter()
    expect(letter).toMatchObject({
      status: 'Pending',
      resolution: null,
      reason: 'failed',
      errorClass,
      errorMessage,
      failedBy: by,
      lastFailureAt: desk.clock.now(),
      dequeueCount: deliveries,
      deadQueue: `${QUEUE}-dead`,
    })
    expect(failures.map((failure) => failure.errorClass)).toEqual(['Rejected', errorClass])
    expect(history[0]).toMatchObject({
      operation: 'reopen',
      actor: by,
      error: errorMessage,
      letterVersion: 3,
    })
    expect(history.map(({ operation }) => operation)).toEqual(['reopen', 'retry', 'capture'])
    expect((await desk.office.letters.numbers.counts()).totals).toEqual({
      Pending: 1,
      Resolved: 0,
      Expired: 0,
    })
    expect((await desk.office.redrives.read(redrive)).counts).toMatchObject({
      sent: 1,
      confirmed: 0,
      returned: 1,
      unconfirmed: 0,
    })
    // In its dead queue, where it can be leased and completed like any other.
    const { items } = await lease(`${QUEUE}-dead`)
    expect(items.map(({ payload }) => Buffer.from(payload).toString())).toEqual(['item 0'])
    await expectClean()
    await desk.office.queues.complete({ queueName: `${QUEUE}-dead`, ids: items.map(({ id }) => id) })
    expect((await onlyLetter()).letter).toMatchObject({ status: 'Resolved', resolution: 'complete' })
    await expectClean()
  })

  it('gone with its queue and its dead queue is reopened and lies nowhere', async () => {
    desk = await RedriveOffice.open(kind)
    await sentBack()
    await desk.office.queues.delete({ queueName: `${QUEUE}-dead`, force: true })
    await desk.office.queues.delete({ queueName: QUEUE })
    await vi.waitFor(async () => expect((await onlyLetter()).letter.status).toBe('Pending'), {
      timeout: PATIENCE_MS,
    })
    expect((await onlyLetter()).letter).toMatchObject({
      errorClass: 'QueueDeleted',
      position: null,
      deadQueue: null,
    })
    await expectClean()
  })
})

describe.each(stores.map((kind) => reused(kind)))('letters on $name', (kind) => {
  const MANY = sizeOf(2_500, 20_000)

  it(`by the thousand are told in their order`, async () => {
    desk = await RedriveOffice.open(kind)
    const redrive = await sentBack(MANY)
    // Beyond ten thousand a redrive sends in two lanes: the order is that of the queue.
    const sent = await payloads(QUEUE)
    await desk.office.queues.clear({ queueName: QUEUE, queue: true })
    expect((await desk.office.redrives.read(redrive)).counts).toMatchObject({
      returned: MANY,
      unconfirmed: 0,
    })
    const { partitions } = await desk.office.queues.stats(`${QUEUE}-dead`)
    expect(partitions.map(({ total }) => total)).toEqual([MANY])
    expect(await payloads(`${QUEUE}-dead`)).toEqual(sent)
    await expectClean()
  })

  it('are confirmed or reopened, never both, when a clear meets completions', async () => {
    desk = await RedriveOffice.open(kind)
    const redrive = await sentBack(200)
    const { items } = await lease(QUEUE)
    const complete = items.map(({ id }) => desk.office.queues.complete({ queueName: QUEUE, ids: [id] }))
    const clear = desk.office.queues.clear({ queueName: QUEUE, queue: true, destructive: true })
    const completed = await Promise.allSettled(complete)
    await clear
    const confirmed = completed.filter(({ status }) => status === 'fulfilled').length
    expect((await desk.office.redrives.read(redrive)).counts).toMatchObject({
      confirmed,
      returned: 200 - confirmed,
      unconfirmed: 0,
    })
    expect((await letters()).filter(({ letter }) => letter.confirmedAt !== null)).toHaveLength(confirmed)
    await expectClean()
  })

  it('that two calls tell at once are told once', async () => {
    desk = await RedriveOffice.open(kind)
    await sentBack(100)
    const ids = (await listed(QUEUE)).map(({ id }) => id)
    await Promise.all([
      desk.office.queues.clear({ queueName: QUEUE, queue: true }),
      desk.office.queues.deleteItems({ queueName: QUEUE, ids }),
      desk.office.queues.clear({ queueName: QUEUE, queue: true }),
    ])
    const all = await letters()
    expect(all.map(({ letter }) => [letter.status, letter.version])).toEqual(
      Array.from({ length: 100 }, () => ['Pending', 3]),
    )
    await expectClean()
  })
})
