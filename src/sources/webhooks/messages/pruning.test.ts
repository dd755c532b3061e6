import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { later } from '../../../core/clock.ts'
import { type Log, silentLog } from '../../../core/log.ts'
import { officeRuns } from '../../../letters/work.ts'
import { DEFAULT_WEBHOOK_SETTINGS } from '../settings.ts'
import { type Channel, type Consumer, JOB } from '../webhook.ts'
import { Broadcasts } from './broadcasts.ts'
import { definePruning, PRUNING } from './pruning.ts'
import { scheduling } from './scheduler.ts'

const DAY = 86_400_000_000n
const HOUR = 3_600_000_000n
const PATIENTLY = { interval: 5 }

describe.each(stores)('messages that are done with on $name', (kind) => {
  let store: WebhookWorld
  let broadcasts: Broadcasts
  let channel: Channel
  let consumers: readonly [Consumer, Consumer]
  const settings = DEFAULT_WEBHOOK_SETTINGS
  const onJobs = () => {}

  beforeAll(async () => {
    store = await WebhookWorld.open(kind)
    const { db, clock, xids } = store
    broadcasts = new Broadcasts({ db, clock, xids, onJobs })
  })
  afterAll(() => store?.close())

  const fresh = async () => {
    // What the test before has left is gone.
    store.clock.advance(10n * DAY)
    await pruner(1).runNow()
    channel = await store.channel()
    consumers = [await store.consumer(channel), await store.consumer(channel)]
  }

  const pruner = (days: number, log: Log = silentLog) => {
    const { db, clock } = store
    const runs = officeRuns(db, clock, silentLog)
    onTestFinished(() => runs.stop())
    definePruning(runs, { settings: { retention: { days } }, log })
    return { start: () => runs.start(), runNow: async () => (await runs.round(PRUNING))?.done ?? 0 }
  }

  const send = async (...messageIds: string[]): Promise<void> => {
    const sender = await store.sender(channel)
    const content = { payload: Buffer.from('x'), contentType: 'text/plain', priority: 0, headers: [] }
    await Promise.all(
      messageIds.map((messageId) => broadcasts.accept(sender, { messageId, content, scheduledFor: null })),
    )
  }

  const left = async () => (await store.messageRows(channel)).map((row) => row.message_id)

  it('go with their jobs and counts once they are old enough', async () => {
    await fresh()
    await send('old')
    store.clock.advance(DAY)
    await send('young')
    await store.settleJobs(channel, JOB.delivered)
    expect(await pruner(1).runNow()).toBe(0)
    store.clock.advance(1n)
    expect(await pruner(1).runNow()).toBe(1)
    expect(await left()).toEqual(['young'])
    for (const consumer of consumers) {
      expect(await store.jobRows(consumer)).toHaveLength(1)
      expect(await store.counted(consumer)).toEqual({ delivered: 1 })
    }
    expect(await store.counted(channel)).toEqual({ dispatched: 1 })
  })

  it.each([
    ['is not due', JOB.later],
    ['waits', JOB.ready],
    ['is in flight', JOB.inFlight],
    ['is dead', JOB.dead],
  ] as const)('are those without a job that %s', async (_, state) => {
    await fresh()
    await send('done', 'open')
    await store.settleJobs(channel, JOB.delivered)
    const [open] = (await store.messageRows(channel)).filter((row) => row.message_id === 'open')
    await store.move([open?.first_job ?? ''], state)
    store.clock.advance(3n * DAY)
    expect(await pruner(1).runNow()).toBe(1)
    expect(await left()).toEqual(['open'])
    expect(await store.counted(channel)).toEqual({ dispatched: 1 })
    await store.move([open?.first_job ?? ''], JOB.delivered)
    expect(await pruner(1).runNow()).toBe(1)
    expect(await store.counted(channel)).toEqual({})
    expect(await store.counted(consumers[0])).toEqual({})
    expect(await store.counted(consumers[1])).toEqual({})
  })

  it('may have had no jobs, or jobs that were erased', async () => {
    channel = await store.channel()
    await send('to nobody')
    consumers = [await store.consumer(channel), await store.consumer(channel)]
    await send('erased')
    await store.settleJobs(channel, JOB.delivered)
    const [erased] = (await store.messageRows(channel)).filter((row) => row.message_id === 'erased')
    await store.move([erased?.first_job ?? ''], null)
    store.clock.advance(2n * DAY)
    expect(await pruner(1).runNow()).toBe(2)
    expect(await left()).toEqual([])
    expect(await store.counted(consumers[1])).toEqual({})
  })

  it('may have been scheduled; one that still waits for its time stays', async () => {
    await fresh()
    const { db, clock, xids } = store
    const sender = await store.sender(channel)
    const content = { payload: Buffer.from('x'), contentType: 'text/plain', priority: 0, headers: [] }
    for (const [messageId, days] of [
      ['soon', 0n],
      ['far', 30n],
    ] as const) {
      await broadcasts.accept(sender, { messageId, content, scheduledFor: later(clock.now(), days * DAY) })
    }
    await scheduling({ db, clock, xids, settings, onJobs, log: silentLog }).now()
    await store.settleJobs(channel, JOB.delivered)
    clock.advance(2n * DAY)
    expect(await pruner(1).runNow()).toBe(1)
    expect(await left()).toEqual(['far'])
    expect(await store.counted(channel)).toEqual({ scheduled: 1 })
  })

  it('go in many batches, past those that stay, and are told of once', async () => {
    await fresh()
    for (let more = 0; more < 4; more++) await store.consumer(channel)
    const ids = Array.from({ length: 450 }, (_, i) => `m${i}`)
    await send(...ids)
    await store.settleJobs(channel, JOB.delivered)
    const rows = await store.messageRows(channel)
    const open = rows.filter((_, i) => i % 90 === 0)
    for (const { first_job } of open) await store.move([first_job ?? ''], JOB.dead)
    store.clock.advance(2n * DAY)
    const told: object[] = []
    const log: Log = { ...silentLog, info: (details) => told.push(details) }
    expect(await pruner(1, log).runNow()).toBe(445)
    expect(await left()).toEqual(open.map((row) => row.message_id))
    expect(told).toEqual([{ messages: 445 }])
    expect(await store.counted(channel)).toEqual({ dispatched: 5 })
    expect(await store.counted(consumers[1])).toEqual({ delivered: 5 })
  })

  it('are removed at the start and every hour', async () => {
    await fresh()
    await send('first')
    await store.settleJobs(channel, JOB.delivered)
    store.clock.advance(2n * DAY)
    pruner(1).start()
    await expect.poll(left, PATIENTLY).toEqual([])
    await send('second')
    await store.settleJobs(channel, JOB.delivered)
    store.clock.advance(2n * DAY)
    await expect
      .poll(async () => {
        store.clock.advance(HOUR)
        return left()
      }, PATIENTLY)
      .toEqual([])
  })

  it('are kept when nothing is said of days', async () => {
    await fresh()
    await send('kept')
    await store.settleJobs(channel, JOB.delivered)
    store.clock.advance(2n * DAY)
    await expect(pruner(0).runNow()).rejects.toThrow('no kind of run')
    expect(await left()).toEqual(['kept'])
  })
})
