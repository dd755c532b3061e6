import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { refusalOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { type Instant, later } from '../../../core/clock.ts'
import { parseXid, Xids, xid, xidAfter } from '../../../core/xid.ts'
import { type Database, sql } from '../../../store/database.ts'
import { JOB, type MessageContent } from '../webhook.ts'
import { Broadcasts, type MessageDraft } from './broadcasts.ts'

const HOUR = 3_600_000_000n

const content = (change: Partial<MessageContent> = {}): MessageContent => ({
  payload: Buffer.from('{"a":1}'),
  contentType: 'application/json',
  priority: 0,
  headers: [],
  ...change,
})

const draft = (messageId: string | null = null, change: Partial<MessageDraft> = {}): MessageDraft => ({
  messageId,
  content: content(),
  scheduledFor: null,
  ...change,
})

describe.each(stores)('broadcasts on $name', (kind) => {
  let store: WebhookWorld
  let broadcasts: Broadcasts
  let woken: number[]

  const server = (db: Database) =>
    new Broadcasts({
      db,
      clock: store.clock,
      xids: new Xids(store.clock),
      onJobs: (consumers) => woken.push(...consumers),
    })

  beforeAll(async () => {
    store = await WebhookWorld.open(kind)
    woken = []
    broadcasts = server(store.db)
  })
  afterAll(() => store?.close())

  const inAnHour = (): Instant => later(store.clock.now(), HOUR)

  describe('a message', () => {
    it('is stored with a job for every consumer of its channel, and for no other', async () => {
      const channel = await store.channel()
      const push = await store.consumer(channel)
      const pull = await store.consumer(channel, { type: 'pull' })
      const stranger = await store.consumer(await store.channel())
      const sender = await store.sender(channel)
      woken = []
      const payload = Buffer.from([0xff, 0, 0xfe, 10])
      const headers = [['X-Quote"d', 'back\\slash é'] as const]
      const accepted = await broadcasts.accept(
        sender,
        draft('m1', { content: { payload, contentType: 'text/plain', priority: 7, headers } }),
      )
      expect(accepted).toEqual({ messageId: 'm1', scheduled: false })
      const [message] = await store.messageRows(channel)
      const now = store.clock.now()
      expect(message).toMatchObject({
        message_id: 'm1',
        producer: sender.producer,
        scheduled_for: null,
        next_try_at: null,
        content_type: 'text/plain',
        headers: JSON.stringify(headers),
      })
      expect([message?.created_at, message?.received_at].map((at) => BigInt(at ?? 0))).toEqual([now, now])
      expect([Number(message?.priority), Number(message?.jobs)]).toEqual([7, 2])
      expect(Buffer.from(message?.payload ?? [])).toEqual(payload)

      const jobs = [...(await store.jobRows(push)), ...(await store.jobRows(pull))]
      const first = xid(message?.first_job ?? '')
      expect(jobs.map(({ id }) => id)).toEqual([first, xidAfter(first, 1)])
      for (const job of jobs) {
        expect(job).toMatchObject({ message: message?.id, dueAt: null })
        expect([job.state, job.attempts, job.priority].map(Number)).toEqual([JOB.ready, 0, 7])
        expect([job.createdAt, job.changedAt]).toEqual([now, now])
      }
      expect(await store.jobRows(stranger)).toEqual([])
      expect(await store.counted(channel)).toEqual({ dispatched: 1 })
      expect(await store.counted(push)).toEqual({ queued: 1 })
      expect(await store.counted(pull)).toEqual({ queued: 1 })
      expect(woken).toEqual([push.number])
    })

    it('without consumers is stored without jobs, and gets none later', async () => {
      const channel = await store.channel()
      const sender = await store.sender(channel)
      const { messageId } = await broadcasts.accept(sender, draft(''))
      expect(parseXid(messageId)).not.toBe(null)
      const consumer = await store.consumer(channel)
      expect(await store.messageRows(channel)).toMatchObject([{ message_id: messageId, first_job: null }])
      expect(await store.jobRows(consumer)).toEqual([])
      expect(await store.counted(channel)).toEqual({ dispatched: 1 })
    })

    it('that is for later has no jobs yet', async () => {
      const channel = await store.channel()
      const consumer = await store.consumer(channel)
      const sender = await store.sender(channel)
      woken = []
      const scheduledFor = inAnHour()
      expect(await broadcasts.accept(sender, draft('s1', { scheduledFor }))).toEqual({
        messageId: 's1',
        scheduled: true,
      })
      const [message] = await store.messageRows(channel)
      expect(message).toMatchObject({ received_at: null, first_job: null })
      expect([message?.scheduled_for, message?.next_try_at].map((at) => BigInt(at ?? 0))).toEqual([
        scheduledFor,
        scheduledFor,
      ])
      expect(await store.jobRows(consumer)).toEqual([])
      expect(await store.counted(channel)).toEqual({ scheduled: 1 })
      expect(woken).toEqual([])
    })

    it('is refused without a body, or with an id that cannot be kept', async () => {
      const channel = await store.channel()
      const sender = await store.sender(channel)
      const empty = draft('m', { content: content({ payload: new Uint8Array(0) }) })
      expect(await refusalOf(broadcasts.accept(sender, empty))).toBe('body_empty')
      for (const id of ['a\0b', 'x'.repeat(256), '😀'.repeat(256)]) {
        expect(await refusalOf(broadcasts.accept(sender, draft(id)))).toBe('text_invalid')
      }
      await broadcasts.accept(sender, draft('😀'.repeat(255)))
      expect(await store.messageRows(channel)).toHaveLength(1)
    })
  })

  describe('an id that was taken', () => {
    it('is refused for messages of both kinds, on its channel only, whatever the case of its letters', async () => {
      const channel = await store.channel()
      const sender = await store.sender(channel)
      const elsewhere = await store.sender(await store.channel())
      const scheduledFor = inAnHour()
      await broadcasts.accept(sender, draft('m'))
      await broadcasts.accept(sender, draft('s', { scheduledFor }))
      expect(await refusalOf(broadcasts.accept(sender, draft('m')))).toBe('message_duplicate')
      expect(await refusalOf(broadcasts.accept(sender, draft('s')))).toBe('message_duplicate')
      expect(await refusalOf(broadcasts.accept(sender, draft('m', { scheduledFor })))).toBe(
        'scheduled_duplicate',
      )
      expect(await refusalOf(broadcasts.accept(sender, draft('s', { scheduledFor })))).toBe(
        'scheduled_duplicate',
      )
      expect(await refusalOf(broadcasts.accept(sender, draft('M')))).toBe('done')
      expect(await refusalOf(broadcasts.accept(elsewhere, draft('m')))).toBe('done')
      expect(await store.counted(channel)).toEqual({ dispatched: 2, scheduled: 1 })
    })

    it('is given to one of those who ask for it at once, on whatever server, and the others are not held up', async () => {
      const channel = await store.channel()
      const consumer = await store.consumer(channel)
      const sender = await store.sender(channel)
      const servers = [broadcasts, server(store.another())]
      const ids = Array.from({ length: 120 }, (_, i) => `m${i % 30}`)
      const answers = await Promise.all(
        ids.flatMap((id, i) => {
          const asked = servers[i % 2]?.accept(sender, draft(i % 4 < 2 ? id : `m${29 - (i % 30)}`))
          const other = servers[(i + 1) % 2]?.accept(sender, draft())
          return [asked, other].map((call) => refusalOf(call ?? expect.fail('no server')))
        }),
      )
      const refused = answers.filter((answer) => answer !== 'done')
      expect(new Set(refused)).toEqual(new Set(['message_duplicate']))
      const messages = await store.messageRows(channel)
      expect(messages).toHaveLength(240 - refused.length)
      expect(new Set(messages.map((message) => message.message_id)).size).toBe(messages.length)
      // Jobs of those that were refused are nowhere.
      const jobs = await store.jobRows(consumer)
      expect(new Set(jobs.map((job) => job.message))).toEqual(new Set(messages.map(({ id }) => id)))
      expect(jobs).toHaveLength(messages.length)
      expect(await store.counted(channel)).toEqual({ dispatched: messages.length })
      expect(await store.counted(consumer)).toEqual({ queued: messages.length })
    })

    it('is not refused to the one who took it, when the answer to its commit was lost', async () => {
      const channel = await store.channel()
      const consumer = await store.consumer(channel)
      const sender = await store.sender(channel)
      let losses = 1
      const forgetful: Database = Object.assign(Object.create(store.db), {
        dialect: store.db.dialect,
        async transaction<T>(...call: Parameters<Database['transaction']>): Promise<T> {
          const result = await store.db.transaction(...call)
          if (losses-- > 0) throw new Error('no answer')
          return result as T
        },
      })
      const unlucky = server(forgetful)
      const answers = await Promise.all(
        ['m1', 'm2'].map((id) => refusalOf(unlucky.accept(sender, draft(id)))),
      )
      expect(answers).toEqual(['done', 'done'])
      expect(await store.messageRows(channel)).toHaveLength(2)
      expect(await store.counted(consumer)).toEqual({ queued: 2 })
    })
  })

  describe('many at once', () => {
    it('keep their own contents, and their order of jobs', async () => {
      const channels = [await store.channel(), await store.channel()] as const
      const consumer = await store.consumer(channels[0])
      const senders = [await store.sender(channels[0]), await store.sender(channels[1])] as const
      const payloads = Array.from({ length: 60 }, (_, i) => Buffer.alloc(1 + i * 7, i))
      await Promise.all(
        payloads.map((payload, i) =>
          broadcasts.accept(
            senders[i % 3 === 0 ? 1 : 0],
            draft(`m${i}`, {
              content: content({ payload, priority: i, headers: [['X-I', String(i)]] }),
              scheduledFor: i % 5 === 0 ? inAnHour() : null,
            }),
          ),
        ),
      )
      const rows = [...(await store.messageRows(channels[0])), ...(await store.messageRows(channels[1]))]
      expect(rows).toHaveLength(60)
      for (const row of rows) {
        const i = Number(row.message_id.slice(1))
        expect(Buffer.from(row.payload)).toEqual(payloads[i])
        expect([Number(row.priority), row.headers]).toEqual([i, `[["X-I","${i}"]]`])
        expect(row.received_at === null).toBe(i % 5 === 0)
      }
      const jobs = await store.jobRows(consumer)
      const order = jobs.map((job) => rows.find(({ id }) => id === job.message)?.message_id)
      const expected = payloads.flatMap((_, i) => (i % 3 !== 0 && i % 5 !== 0 ? `m${i}` : []))
      expect(order).toEqual(expected)
    })

    it('all fail while the store takes nothing, and leave nothing', async () => {
      const channel = await store.channel()
      const sender = await store.sender(channel)
      await store.place.refuseWrites()
      const calls = Array.from({ length: 20 }, (_, i) => broadcasts.accept(sender, draft(`m${i}`)))
      const answers = await Promise.allSettled(calls)
      await store.place.acceptWrites()
      expect(answers.map(({ status }) => status)).toEqual(calls.map(() => 'rejected'))
      await broadcasts.idle()
      expect(await store.messageRows(channel)).toEqual([])
      expect(await store.counted(channel)).toEqual({})
    })
  })

  it('leave no job to a consumer that is deleted meanwhile', async () => {
    const channel = await store.channel()
    const sender = await store.sender(channel)
    const orphans = sql(
      'test.orphanJobs',
      'SELECT id FROM bartleby.webhook_jobs WHERE consumer NOT IN (SELECT number FROM bartleby.webhook_consumers)',
    )
    for (let round = 0; round < 10; round++) {
      const consumer = await store.consumer(channel)
      const date = new Date(Number(consumer.updatedAt / 1_000n)).toUTCString()
      const [, deleted] = await Promise.all([
        broadcasts.accept(sender, draft()),
        refusalOf(store.consumers.delete(channel, consumer.consumerId, date)),
      ])
      expect(['done', 'consumer_has_jobs']).toContain(deleted)
      expect(await store.jobRows(consumer)).toHaveLength(deleted === 'done' ? 0 : 1)
    }
    expect(await store.db.session('test', (session) => session.rows(orphans))).toEqual([])
  })
})
