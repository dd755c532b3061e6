import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { type Instant, later } from '../../../core/clock.ts'
import { xidsFrom } from '../../../core/xid.ts'
import { sql } from '../../../store/database.ts'
import { FIRST_PAGE, type Page } from '../registry/pages.ts'
import { type Channel, type Consumer, JOB, type JobState, type Producer } from '../webhook.ts'

const insertMessage = sql(
  'test.insertMessage',
  `INSERT INTO bartleby.webhook_messages (id, channel, message_id, producer, created_at, received_at, scheduled_for,
     next_try_at, priority, first_job, jobs, content_type, headers, payload)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'text/plain', $12, $13)`,
)
const insertJob = sql(
  'test.insertJobOfMessage',
  `INSERT INTO bartleby.webhook_jobs (id, message, consumer, state, created_at, changed_at, priority)
   VALUES ($1, $2, $3, $4, $5, $6, 0)`,
)
const removeJob = sql('test.removeJob', 'DELETE FROM bartleby.webhook_jobs WHERE consumer = $1')

interface Draft {
  readonly scheduledFor?: Instant
  readonly isWaiting?: boolean
  readonly payload?: Uint8Array
  readonly jobs?: readonly (readonly [Consumer, JobState])[]
}

describe.each(stores)('messages on $name', (store) => {
  let registry: WebhookWorld
  let producer: Producer
  beforeAll(async () => {
    registry = await WebhookWorld.open(store)
    producer = await registry.producers.put('p1', { name: 'Prod One', token: 't' }, null)
  })
  afterAll(() => registry.close())

  const insert = async (channel: Channel, messageId: string, draft: Draft = {}) => {
    const { scheduledFor = null, isWaiting = false, payload = Buffer.from('{"a":1}'), jobs = [] } = draft
    const id = registry.xids.next()
    const now = registry.clock.now()
    const firstJob = registry.xids.block(Math.max(1, jobs.length))
    const ids = xidsFrom(firstJob, jobs.length)
    await registry.write(
      insertMessage,
      ...[id, channel.number, messageId, producer.id, now, isWaiting ? null : later(now, 7n), scheduledFor],
      ...[isWaiting ? scheduledFor : null, 9, jobs.length === 0 ? null : firstJob, jobs.length],
      ...['[["X-Foo","bar"],["__proto__","x"]]', payload],
    )
    for (const [i, [consumer, state]] of jobs.entries())
      await registry.write(insertJob, ids[i] ?? '', id, consumer.number, state, now, later(now, BigInt(i)))
    return id
  }

  describe('that were dispatched', () => {
    it('are shown with all of their jobs, newest first', async () => {
      const channel = await registry.channel('shown')
      const consumers = [
        await registry.consumer(channel, { consumerId: 'k1' }),
        await registry.consumer(channel, { consumerId: 'k2' }),
      ]
      const [first, second] = [consumers[0] ?? expect.fail(), consumers[1] ?? expect.fail()]
      const payload = Buffer.from([0, 255, 10, 13, 0])
      const id = await insert(channel, 'm1', {
        payload,
        jobs: [
          [first, JOB.delivered],
          [second, JOB.dead],
        ],
      })
      await insert(channel, 'm2', { jobs: [[first, JOB.ready]] })
      const now = registry.clock.now()
      const view = await registry.messages.get(channel, 'm1')
      expect({ ...view, payload: Buffer.from(view?.payload ?? []) }).toEqual({
        id,
        messageId: 'm1',
        payload,
        contentType: 'text/plain',
        producerName: 'Prod One',
        receivedAt: later(now, 7n),
        dispatchedAt: later(now, 7n),
        status: 'DISPATCHED',
        jobs: [
          {
            listenerEndpoint: 'http://127.0.0.1:9/hook',
            listenerName: 'k2',
            status: 'DEAD',
            statusChangedAt: later(now, 1n),
          },
          {
            listenerEndpoint: 'http://127.0.0.1:9/hook',
            listenerName: 'k1',
            status: 'DELIVERED',
            statusChangedAt: now,
          },
        ],
        headers: [
          ['X-Foo', 'bar'],
          ['__proto__', 'x'],
        ],
      })
      await registry.write(removeJob, second.number)
      expect((await registry.messages.get(channel, 'm1'))?.jobs).toMatchObject([{ listenerName: 'k1' }])
    })

    it('are shown without jobs when there were no consumers', async () => {
      const channel = await registry.channel('alone')
      await insert(channel, 'm1')
      expect(await registry.messages.get(channel, 'm1')).toMatchObject({ jobs: [] })
    })

    it('are found by exactly their id on their channel', async () => {
      const [channel, other] = [await registry.channel('here'), await registry.channel('there')]
      await insert(channel, 'm_')
      expect(await registry.messages.get(channel, 'm_')).not.toBeNull()
      for (const id of ['mx', 'M_', 'm%', '', 'a\0b', 'x'.repeat(600)])
        expect(await registry.messages.get(channel, id)).toBeNull()
      expect(await registry.messages.get(other, 'm_')).toBeNull()
      expect(await registry.messages.scheduled(channel, 'm_')).toBeNull()
    })

    it('are listed by when they were dispatched', async () => {
      const [channel, other] = [await registry.channel('listed'), await registry.channel('not listed')]
      for (let i = 0; i < 30; i++) {
        if (i % 7 === 0) registry.clock.advance(1n)
        await insert(channel, `m${i}`)
      }
      await insert(channel, 'waiting', { scheduledFor: later(registry.clock.now(), 60n), isWaiting: true })
      await insert(other, 'm0')
      const list = (statuses: readonly number[], page = FIRST_PAGE) =>
        registry.messages.list(channel, statuses, page)
      const names = ({ items }: Page<{ readonly messageId: string }>) =>
        items.map(({ messageId }) => messageId)
      const first = await list([])
      const second = await list([102], { next: first.last, previous: null })
      expect([...names(first), ...names(second)]).toEqual(Array.from({ length: 30 }, (_, i) => `m${29 - i}`))
      expect(await list([102], { next: null, previous: second.first })).toEqual(first)
      expect(await list([101, 102])).toEqual(first)
      for (const statuses of [[101], [7], [101, -1]])
        expect(await list(statuses)).toEqual({ items: [], first: null, last: null })
    })
  })

  describe('that were scheduled', () => {
    it('are no messages before they are dispatched', async () => {
      const channel = await registry.channel('scheduled')
      const now = registry.clock.now()
      const scheduledFor = later(now, 180_000_000n)
      const id = await insert(channel, 's1', { scheduledFor, isWaiting: true })
      expect(await registry.messages.get(channel, 's1')).toBeNull()
      expect(await registry.messages.scheduled(channel, 's1')).toMatchObject({
        id,
        messageId: 's1',
        contentType: 'text/plain',
        priority: 9,
        producedBy: 'p1',
        dispatchSchedule: scheduledFor,
        dispatchedAt: null,
        status: 'SCHEDULED',
        headers: [['X-Foo', 'bar'], expect.anything()],
      })
      await insert(channel, 's2', { scheduledFor })
      expect(await registry.messages.get(channel, 's2')).not.toBeNull()
      expect(await registry.messages.scheduled(channel, 's2')).toMatchObject({
        status: 'DISPATCHED',
        dispatchedAt: later(now, 7n),
      })
    })

    it('are listed by when they were accepted, those that wait and the others', async () => {
      const channel = await registry.channel('schedule')
      await insert(channel, 'ordinary')
      const scheduledFor = later(registry.clock.now(), 180_000_000n)
      for (let i = 0; i < 60; i++) {
        if (i % 9 === 0) registry.clock.advance(1n)
        await insert(channel, `s${i}`, { scheduledFor, isWaiting: i % 3 === 0 })
      }
      const walk = async (status: number | null) => {
        const sizes: number[] = []
        const names: string[] = []
        for (let next: string | null = null; ; ) {
          const page: Page<{ readonly messageId: string }> = await registry.messages.listScheduled(
            channel,
            status,
            {
              next,
              previous: null,
            },
          )
          if (page.items.length === 0) return { sizes, names }
          sizes.push(page.items.length)
          names.push(...page.items.map(({ messageId }) => messageId))
          next = page.last
        }
      }
      const all = Array.from({ length: 60 }, (_, i) => 59 - i)
      const named = (numbers: readonly number[]) => numbers.map((number) => `s${number}`)
      expect(await walk(null)).toEqual({ sizes: [25, 25, 10], names: named(all) })
      expect(await walk(101)).toEqual({ sizes: [20], names: named(all.filter((i) => i % 3 === 0)) })
      expect(await walk(102)).toEqual({ sizes: [25, 15], names: named(all.filter((i) => i % 3 !== 0)) })
      expect(await walk(103)).toEqual({ sizes: [], names: [] })

      const first = await registry.messages.listScheduled(channel, null, FIRST_PAGE)
      const second = await registry.messages.listScheduled(channel, null, {
        next: first.last,
        previous: null,
      })
      const back = { next: null, previous: second.first }
      expect(await registry.messages.listScheduled(channel, null, back)).toEqual(first)
      const third = await registry.messages.listScheduled(channel, null, {
        next: second.last,
        previous: null,
      })
      expect(
        await registry.messages.listScheduled(channel, null, { next: null, previous: third.first }),
      ).toEqual(second)
    })
  })
})
