/** Contract 4: a letter that goes back to its engine's own queue makes the queue when it is missing. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Office } from '../../../src/office.ts'
import { reportOf } from '../../world/report.ts'
import { type FreshStore, stores } from '../../world/stores.ts'

const RETRY = { edit: null, notes: null, actor: 'nell' }

describe.each(stores)('the queue of an engine that is missing on $name', (kind) => {
  let place: FreshStore
  let offices: Office[]

  beforeEach(async () => {
    place = await kind.fresh()
    offices = []
  })
  afterEach(async () => {
    for (const office of offices) await office.close()
    await place.dispose()
  })

  async function open(): Promise<Office> {
    const definitions = { audit: { operations: ['check'] } }
    const office = await Office.open({ store: place.url, engines: { context: 'publisher', definitions } })
    offices.push(office)
    return office
  }

  const lettersOf = (office: Office, count: number, changes: Parameters<typeof reportOf>[2] = {}) =>
    Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const { letter } = await office.letters.capture(reportOf(n, office.clock.now(), changes))
        return { engine: letter.engine, rowKey: letter.rowKey }
      }),
    )

  const items = async (office: Office, queue: string) =>
    (await office.queues.stats(queue)).partitions.map(({ total }) => total)

  it('is made by a retry, with the settings that the engine itself would give it', async () => {
    const office = await open()
    const [letter] = await lettersOf(office, 1)
    if (letter === undefined) throw new Error('there is no letter')
    // A look makes nothing.
    const { outgoing } = await office.letters.preview(letter, null)
    expect(outgoing.queue).toBe('hmac-rotation-queue')
    await expect(office.queues.info('hmac-rotation-queue')).rejects.toMatchObject({ code: 'queue_unknown' })

    expect(await office.letters.retry(letter, RETRY)).toMatchObject({ queue: 'hmac-rotation-queue' })
    const settings = async () => {
      const { leaseTimeoutNs, expireTimeoutNs, maxAttempts, requestedPartitions, deadQueue, reference } =
        await office.queues.info('hmac-rotation-queue')
      return { leaseTimeoutNs, expireTimeoutNs, maxAttempts, requestedPartitions, deadQueue, reference }
    }
    const made = await settings()
    expect(made).toMatchObject({ leaseTimeoutNs: 60_000_000_000n, reference: 'engine hmac' })
    await office.queues.delete({ queueName: 'hmac-rotation-queue' })
    await office.engine({ name: 'hmac', operation: 'rotate', handler: () => null }).start()
    expect(await settings()).toEqual(made)
  })

  it('takes the letters that its worker then handles, and confirms them', async () => {
    const office = await open()
    const [letter] = await lettersOf(office, 1)
    if (letter === undefined) throw new Error('there is no letter')
    await office.letters.retry(letter, RETRY)
    await office.engine({ name: 'hmac', operation: 'rotate', handler: () => null }).start()
    await expect.poll(async () => (await office.letters.get(letter)).letter.confirmedAt).not.toBeNull()
  })

  it('is made once when two servers send letters back at the same time', async () => {
    const [one, two] = [await open(), await open()]
    const letters = await lettersOf(one, 8)
    const sent = await Promise.all(
      letters.map((letter, n) => (n % 2 === 0 ? one : two).letters.retry(letter, RETRY)),
    )
    expect(new Set(sent.map(({ messageId }) => messageId)).size).toBe(8)
    expect(await items(two, 'hmac-rotation-queue')).toEqual([8])
    expect((await one.queues.list()).map(({ queueName }) => queueName)).toEqual(['hmac-rotation-queue'])
  })

  it('is made by a redrive', async () => {
    const office = await open()
    await lettersOf(office, 5)
    const plan = await office.redrives.plan({
      selection: { by: 'filter', filter: { engine: 'hmac' } },
      action: 'retry',
      queue: null,
      recipe: null,
      terms: { rate: null, canary: null, stopRule: null, order: 'key' },
      reason: null,
      actor: 'nell',
    })
    expect(plan.counts).toMatchObject({ planned: 5 })
    await office.redrives.start(plan.id, 'nell')
    await expect.poll(async () => (await office.redrives.read(plan.id)).state).toBe('done')
    expect((await office.redrives.read(plan.id)).counts).toMatchObject({ sent: 5, failed: 0, skipped: 0 })
    expect(await items(office, 'hmac-rotation-queue')).toEqual([5])
  })

  it('is not made for letters of another engine, and these stay as they are', async () => {
    const office = await open()
    const [stray] = await lettersOf(office, 1, { engine: 'tls' })
    const [gone] = await lettersOf(office, 1, { originalQueue: 'gone' })
    const [mute] = await lettersOf(office, 1, { engine: 'audit', originalQueue: null })
    if (stray === undefined || gone === undefined || mute === undefined) throw new Error('no letters')
    for (const [letter, code] of [
      [stray, 'letter_queue_gone'],
      [gone, 'letter_queue_gone'],
      [mute, 'letter_without_queue'],
    ] as const) {
      await expect(office.letters.retry(letter, RETRY)).rejects.toMatchObject({ code })
      expect((await office.letters.get(letter)).letter).toMatchObject({ status: 'Pending', version: 1 })
    }
    expect(await office.queues.list()).toEqual([])
  })
})
