/** Redrives of letters that are dead webhook jobs. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { LetterId } from '../../src/letters/letter.ts'
import { readLetterById } from '../../src/letters/lists/detail.ts'
import { webhookLetterSource } from '../../src/sources/webhooks/letters/source.ts'
import { type Consumer, JOB } from '../../src/sources/webhooks/webhook.ts'
import { reused } from '../world/reused-store.ts'
import { stores } from '../world/stores.ts'
import { WebhookWorld } from '../world/webhooks/world.ts'
import { SourceDesk } from './source-desk.ts'

describe.each(stores)('a redrive of letters of webhooks on $name', (kind) => {
  const store = reused(kind)
  let office: WebhookWorld
  let desk: SourceDesk
  beforeAll(async () => {
    office = await WebhookWorld.open(store)
    desk = new SourceDesk(office.db, office.clock, webhookLetterSource({ onJobs: () => {} }))
  })
  afterEach(() => office.expectVerified())
  afterAll(async () => {
    await desk?.stop()
    await office?.close()
  })

  const consumer = async (): Promise<Consumer> => office.consumer(await office.channel())
  /** All letters of the consumer of a job. */
  const filterOf = async (job: Parameters<WebhookWorld['letter']>[0]) => {
    const { originalQueue } = await office.letter(job)
    return originalQueue === null ? {} : { originalQueue }
  }

  it('queues the jobs again, and hears what became of them', async () => {
    const jobs = await office.deadJobs(await consumer(), 3)
    const [first, second, third] = jobs
    if (first === undefined || second === undefined || third === undefined) throw new Error('no jobs')
    const done = await desk.run(await filterOf(first))
    expect(done).toMatchObject({ state: 'done', counts: { planned: 3, sent: 3, unconfirmed: 3 } })
    for (const job of jobs)
      expect(await office.job(job)).toMatchObject({ state: JOB.ready, exhausted: false })
    await office.take([first])
    await office.move([first], JOB.delivered)
    await office.die([second])
    expect(await desk.counts(done)).toMatchObject({ confirmed: 1, returned: 1, unconfirmed: 1 })
  })

  it('discards the jobs, and takes that back', async () => {
    const receiver = await consumer()
    const [job] = await office.deadJobs(receiver, 2)
    if (job === undefined) throw new Error('no job')
    const filter = await filterOf(job)
    expect(await desk.run(filter, 'discard')).toMatchObject({
      state: 'done',
      counts: { sent: 2, confirmed: 2 },
    })
    expect(await office.deadCount(receiver)).toBe(0)
    expect(await desk.run(filter, 'restore')).toMatchObject({ state: 'done', counts: { sent: 2 } })
    expect(await office.deadCount(receiver)).toBe(2)
    expect(await office.job(job)).toMatchObject({ state: JOB.dead })
  })

  it('leaves discarded a letter whose message is gone, and restores the others', async () => {
    const receiver = await consumer()
    const [lost, kept] = await office.deadJobs(receiver, 2)
    if (lost === undefined || kept === undefined) throw new Error('no jobs')
    const filter = await filterOf(lost)
    const [{ id, reference }, { id: other }] = [await office.letter(lost), await office.letter(kept)]
    const statusOf = (id: LetterId) =>
      office.db.session('test', async (session) => (await readLetterById(session, id))?.status)
    await desk.run(filter, 'discard')
    await office.forgetMessage(reference, receiver.channel)
    expect(await desk.run(filter, 'restore')).toMatchObject({ state: 'done', counts: { sent: 1, failed: 1 } })
    expect([await statusOf(id), await statusOf(other)]).toEqual(['Resolved', 'Pending'])
    expect(await office.deadCount(receiver)).toBe(1)
  })
})
