import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { type Instant, later } from '../../../core/clock.ts'
import { type Log, silentLog } from '../../../core/log.ts'
import { xid, xidAfter } from '../../../core/xid.ts'
import type { Database } from '../../../store/database.ts'
import { DEFAULT_WEBHOOK_SETTINGS, type WebhookSettings } from '../settings.ts'
import { type Channel, JOB } from '../webhook.ts'
import { Broadcasts } from './broadcasts.ts'
import { scheduling } from './scheduler.ts'

const SECOND = 1_000_000n
const MINUTE = 60n * SECOND

describe.each(stores)('scheduled messages on $name', (kind) => {
  let store: WebhookWorld
  let broadcasts: Broadcasts
  let woken: number[]
  const onJobs = (consumers: ReadonlySet<number>) => void woken.push(...consumers)

  beforeAll(async () => {
    store = await WebhookWorld.open(kind)
    woken = []
    const { db, clock, xids } = store
    broadcasts = new Broadcasts({ db, clock, xids, onJobs })
  })
  afterAll(() => store?.close())

  const scheduler = (
    change: Partial<WebhookSettings['scheduler']> = {},
    db: Database = store.db,
    log: Log = silentLog,
  ) => {
    const settings = { scheduler: { ...DEFAULT_WEBHOOK_SETTINGS.scheduler, ...change } }
    const { clock, xids } = store
    const made = scheduling({ db, clock, log, xids, settings, onJobs })
    onTestFinished(() => made.stop())
    return made
  }

  const schedule = async (channel: Channel, messageId: string, at: Instant, priority = 0): Promise<void> => {
    const sender = { channel: channel.number, channelId: channel.channelId, producer: store.xids.next() }
    const content = { payload: Buffer.from(messageId), contentType: 'text/plain', priority, headers: [] }
    await broadcasts.accept(sender, { messageId, content, scheduledFor: at })
  }

  const dispatchedOf = async (channel: Channel): Promise<string[]> =>
    (await store.messageRows(channel)).filter((row) => row.received_at !== null).map((row) => row.message_id)

  it('are marked with work that grows with their number and not with its square', async () => {
    const channel = await store.channel()
    const dueAt = later(store.clock.now(), MINUTE)
    // Of this thread alone: what else the machine does, and how long the store takes elsewhere, does not count.
    const workFor = async (count: number): Promise<number> => {
      const ids = Array.from({ length: count }, (_, i) => `many-${count}-${i}`)
      await Promise.all(ids.map((id) => schedule(channel, id, dueAt)))
      store.clock.advance(MINUTE)
      const before = process.threadCpuUsage()
      await scheduler({ batchSize: 10_000 }).now()
      const { user, system } = process.threadCpuUsage(before)
      return user + system
    }
    await workFor(1_000)
    const few = await workFor(2_000)
    const many = await workFor(8_000)
    // Four times as many; sixteen times the work would be its square.
    expect(many).toBeLessThan(few * 4 * 2.5)
    expect(await dispatchedOf(channel)).toHaveLength(11_000)
  })

  it('become messages with jobs when their time has come, and not before', async () => {
    const channel = await store.channel()
    const push = await store.consumer(channel)
    const dueAt = later(store.clock.now(), 3n * MINUTE)
    await schedule(channel, 's1', dueAt, 4)
    const pull = await store.consumer(channel, { type: 'pull' })
    store.clock.advance(3n * MINUTE - 1n)
    await scheduler().now()
    expect(await dispatchedOf(channel)).toEqual([])
    woken = []
    store.clock.advance(1n)
    await scheduler().now()
    const [message] = await store.messageRows(channel)
    expect(message).toMatchObject({ message_id: 's1', next_try_at: null })
    expect([message?.received_at, message?.scheduled_for].map((at) => BigInt(at ?? 0))).toEqual([
      dueAt,
      dueAt,
    ])
    expect(Number(message?.jobs)).toBe(2)
    const first = xid(message?.first_job ?? '')
    const jobs = [...(await store.jobRows(push)), ...(await store.jobRows(pull))]
    expect(jobs.map(({ id }) => id)).toEqual([first, xidAfter(first, 1)])
    for (const job of jobs) {
      expect([job.state, job.attempts, job.priority].map(Number)).toEqual([JOB.ready, 0, 4])
      expect(job.createdAt).toBe(dueAt)
    }
    expect(woken).toEqual([push.number])
    expect(await store.counted(channel)).toEqual({ scheduledDispatched: 1, dispatched: 1 })
    expect(await store.counted(push)).toEqual({ queued: 1 })
  })

  it('are looked for every interval', async () => {
    const channel = await store.channel()
    await schedule(channel, 's', later(store.clock.now(), 7n * SECOND))
    const running = scheduler({ intervalMs: 5_000 })
    running.start()
    // The alarm of the next round is set when the round before has ended.
    await expect
      .poll(
        async () => {
          store.clock.advance(SECOND)
          return dispatchedOf(channel)
        },
        { interval: 5 },
      )
      .toEqual(['s'])
  })

  it('without consumers are dispatched without jobs', async () => {
    const channel = await store.channel()
    await schedule(channel, 's', store.clock.now())
    await scheduler().now()
    expect(await store.messageRows(channel)).toMatchObject([
      { message_id: 's', first_job: null, next_try_at: null },
    ])
    expect(await store.counted(channel)).toEqual({ scheduledDispatched: 1, dispatched: 1 })
  })

  it('go out in one round however many are due, oldest first, and their ids stay taken', async () => {
    const channel = await store.channel()
    const consumer = await store.consumer(channel)
    const now = store.clock.now()
    const order = [3, 1, 4, 0, 2]
    for (const nth of order) await schedule(channel, `s${nth}`, later(now, BigInt(nth)))
    store.clock.advance(MINUTE)
    await scheduler({ batchSize: 2 }).now()
    const names = new Map((await store.messageRows(channel)).map((row) => [row.id, row.message_id]))
    const jobs = await store.jobRows(consumer)
    expect(jobs.map(({ message }) => names.get(message))).toEqual(['s0', 's1', 's2', 's3', 's4'])
    await expect(schedule(channel, 's3', now)).rejects.toMatchObject({ refusal: 'scheduled_duplicate' })
  })

  it('with more jobs than one transaction makes go out in the same round', async () => {
    const channel = await store.channel()
    const consumers = await Promise.all(Array.from({ length: 30 }, () => store.consumer(channel)))
    await Promise.all(Array.from({ length: 180 }, (_, i) => schedule(channel, `s${i}`, store.clock.now())))
    woken = []
    await scheduler({ batchSize: 200 }).now()
    expect(await store.counted(channel)).toEqual({ scheduledDispatched: 180, dispatched: 180 })
    for (const consumer of consumers) expect(await store.counted(consumer)).toEqual({ queued: 180 })
    expect(woken).toHaveLength(2 * consumers.length)
  })

  it('are dispatched once when several servers look at the same time', async () => {
    const channel = await store.channel()
    const consumer = await store.consumer(channel)
    await Promise.all(Array.from({ length: 50 }, (_, i) => schedule(channel, `s${i}`, store.clock.now())))
    const others = [store.db, store.db, store.another()]
    await Promise.all(others.map((db) => scheduler({ batchSize: 7 }, db).now()))
    // Whoever finds less than a batch, because others hold the rest, leaves that to them or to the next round.
    await scheduler().now()
    expect(await dispatchedOf(channel)).toHaveLength(50)
    expect(await store.jobRows(consumer)).toHaveLength(50)
    expect(await store.counted(channel)).toEqual({ scheduledDispatched: 50, dispatched: 50 })
    expect(await store.counted(consumer)).toEqual({ queued: 50 })
  })

  it('that fail step aside for a while that grows, and go out when they can', async () => {
    const channel = await store.channel()
    const consumer = await store.consumer(channel)
    for (const id of ['a', 'poison', 'b']) await schedule(channel, id, store.clock.now())
    const poison = (await store.messageRows(channel)).find((row) => row.message_id === 'poison')?.id ?? ''
    await store.refuseJobsOf(poison)
    const told: object[] = []
    const log: Log = { ...silentLog, error: (details) => told.push(details) }
    const left = async () => {
      const [row] = (await store.messageRows(channel)).filter(({ next_try_at }) => next_try_at !== null)
      const waits = row === undefined ? null : BigInt(row.next_try_at ?? 0) - store.clock.now()
      return { id: row?.message_id, tries: Number(row?.tries), waits }
    }

    await scheduler({}, store.db, log).now()
    expect(await dispatchedOf(channel)).toEqual(['a', 'b'])
    expect(await left()).toEqual({ id: 'poison', tries: 1, waits: 10n * SECOND })
    expect(told).toMatchObject([{ message: poison, tries: 1 }])
    expect(await store.counted(channel)).toEqual({ scheduled: 1, scheduledDispatched: 2, dispatched: 2 })

    await schedule(channel, 'c', store.clock.now())
    await scheduler().now()
    expect(await dispatchedOf(channel)).toEqual(['a', 'b', 'c'])
    store.clock.advance(10n * SECOND)
    // A batch of one: the one that fails must not be the only one that is ever looked at.
    await schedule(channel, 'd', store.clock.now())
    await scheduler({ batchSize: 1 }).now()
    expect(await dispatchedOf(channel)).toEqual(['a', 'b', 'c', 'd'])
    expect(await left()).toEqual({ id: 'poison', tries: 2, waits: 20n * SECOND })

    await store.acceptJobs()
    store.clock.advance(20n * SECOND)
    await scheduler().now()
    expect(await left()).toMatchObject({ id: undefined })
    expect(await store.jobRows(consumer)).toHaveLength(5)
    expect(await store.counted(channel)).toEqual({ scheduledDispatched: 5, dispatched: 5 })
  })
})
