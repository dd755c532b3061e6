import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stores } from '../../../../test/world/stores.ts'
import { refusalOf, WebhookWorld } from '../../../../test/world/webhooks/world.ts'
import { formatHttpDate } from '../../../core/timestamp.ts'
import { sql } from '../../../store/database.ts'
import { shareChannels } from '../messages/dispatch.ts'
import { CountChanges } from '../numbers/counts.ts'
import { type Channel, type Consumer, JOB } from '../webhook.ts'

const readRest = sql('test.restOfConsumer', {
  postgres: `SELECT 1 AS rest FROM bartleby.webhook_totals WHERE subject = $1
             UNION ALL SELECT 1 FROM bartleby.webhook_deltas WHERE subject = $1`,
  sqlite: 'SELECT 1 AS rest FROM webhook_totals WHERE subject = $1',
})
const insertTotal = sql(
  'test.insertTotal',
  'INSERT INTO bartleby.webhook_totals (subject, tally, amount) VALUES ($1, 1, 5) ON CONFLICT DO NOTHING',
)

describe.each(stores)('a consumer on $name', (store) => {
  let registry: WebhookWorld
  let channel: Channel
  beforeAll(async () => {
    registry = await WebhookWorld.open(store)
    // Conditions know whole seconds only.
    registry.pass(0.9)
    channel = await registry.channel('c1')
  })
  afterAll(() => registry.close())
  const dateOf = ({ updatedAt }: Consumer) => formatHttpDate(updatedAt)
  const put = (
    consumerId: string,
    callbackUrl: string | null,
    type: string | null = null,
    condition: string | null = null,
  ) => registry.consumers.put(channel, consumerId, { name: 'n', token: 't', callbackUrl, type }, condition)

  it.each([
    'http://host/hook',
    'https://host',
    'HTTP://Host:8080/a%20b?c=d#e',
    'http://user:secret@host/hook',
    'http://[::1]:80/',
    'http://host/a b',
    'http://hôst/ü',
  ])('is called at %s, as it was given', async (callbackUrl) => {
    expect((await put(callbackUrl, callbackUrl)).callbackUrl).toBe(callbackUrl)
    expect((await registry.consumers.get(channel, callbackUrl))?.callbackUrl).toBe(callbackUrl)
  })

  it.each([
    null,
    '',
    'host/hook',
    '/hook',
    '//host/hook',
    'ftp://host/',
    'http:host',
    'http:///hook',
    'http:\\\\host',
    ' http://host/',
    'http://host/ ',
    'http://host/\n',
    'http://ho st/',
    'http://host:99999/',
    'http://host/\0',
    'javascript:alert(1)',
    `http://host/${'x'.repeat(8_192)}`,
  ])('is not called at %j', async (callbackUrl) => {
    expect(await refusalOf(put('nowhere', callbackUrl))).toBe('callback_invalid')
    expect(await registry.consumers.get(channel, 'nowhere')).toBeNull()
  })

  it('is not called at an address that is refused', async () => {
    expect(await refusalOf(put('refused', 'http://10.0.0.1/hook'))).toBe('callback_refused')
  })

  it.each([
    [null, 'push'],
    ['', 'push'],
    ['push', 'push'],
    ['pull', 'pull'],
  ])('of type %j is a %s consumer', async (type, expected) => {
    expect((await put(`type ${type}`, 'http://host/', type)).type).toBe(expected)
    expect((await registry.consumers.get(channel, `type ${type}`))?.type).toBe(expected)
  })

  it('is refused for the condition first, then for the address, then for the type', async () => {
    const created = await put('ordered', 'http://host/')
    const stale = 'Sun, 15 Nov 2026 01:08:28 GMT'
    expect(await refusalOf(put('ordered', 'nowhere', 'wrong'))).toBe('condition_missing')
    expect(await refusalOf(put('ordered', 'nowhere', 'wrong', stale))).toBe('condition_failed')
    expect(await refusalOf(put('ordered', 'nowhere', 'wrong', dateOf(created)))).toBe('callback_invalid')
    expect(await refusalOf(put('ordered', 'http://10.0.0.1/', 'wrong', dateOf(created)))).toBe(
      'callback_refused',
    )
    expect(await refusalOf(put('ordered', 'http://host/', 'wrong', dateOf(created)))).toBe('type_invalid')
    expect(await registry.consumers.get(channel, 'ordered')).toEqual(created)
  })

  it('changes its address and its type', async () => {
    const created = await put('changed', 'http://host/')
    const changed = await put('changed', 'http://other/', 'pull', dateOf(created))
    expect(changed).toMatchObject({
      id: created.id,
      number: created.number,
      callbackUrl: 'http://other/',
      type: 'pull',
    })
    expect(await registry.consumers.get(channel, 'changed')).toEqual(changed)
    expect(changed.updatedAt > created.updatedAt).toBe(true)
    expect(await put('changed', 'http://other/', 'pull', dateOf(changed))).toEqual(changed)
  })

  it('of the same id on another channel is another one', async () => {
    const other = await registry.channel('c2')
    const [here, there] = [
      await registry.consumer(channel, { consumerId: 'twin' }),
      await registry.consumer(other, { consumerId: 'twin' }),
    ]
    expect(here.number).not.toBe(there.number)
    await registry.consumers.delete(other, 'twin', dateOf(there))
    expect(await registry.consumers.get(other, 'twin')).toBeNull()
    expect(await registry.consumers.get(channel, 'twin')).toEqual(here)
  })

  describe('that is deleted', () => {
    const remove = (consumerId: string, condition: string | null) =>
      refusalOf(registry.consumers.delete(channel, consumerId, condition))

    it('must exist, be known to the caller, and have no jobs, in this order', async () => {
      const consumer = await registry.consumer(channel, { consumerId: 'busy' })
      await registry.one(consumer, { state: JOB.delivered })
      expect(await remove('nobody', null)).toBe('resource_unknown')
      expect(await remove('a\0b', null)).toBe('resource_unknown')
      expect(await remove('busy', null)).toBe('condition_missing')
      expect(await remove('busy', 'Sun, 15 Nov 2026 01:08:28 GMT')).toBe('condition_failed')
      expect(await remove('busy', dateOf(consumer))).toBe('consumer_has_jobs')
      expect(await registry.consumers.get(channel, 'busy')).toEqual(consumer)
    })

    it.each(Object.entries(JOB))('stays while it has a job that is %s', async (name, state) => {
      const consumer = await registry.consumer(channel, { consumerId: `with ${name}` })
      await registry.one(consumer, { state })
      expect(await remove(`with ${name}`, dateOf(consumer))).toBe('consumer_has_jobs')
    })

    it('leaves nothing behind', async () => {
      const consumer = await registry.consumer(channel, { consumerId: 'gone' })
      const neighbour = await registry.consumer(channel, { consumerId: 'neighbour' })
      for (const { number } of [consumer, neighbour]) {
        await registry.write(insertTotal, number)
        await registry.db.transaction('test', async (tx) => {
          const counts = new CountChanges()
          counts.moved(number, null, JOB.delivered)
          counts.write(tx)
        })
      }
      expect(await remove('gone', dateOf(consumer))).toBe('done')
      expect(await registry.consumers.get(channel, 'gone')).toBeNull()
      expect(await registry.read(readRest, consumer.number)).toEqual([])
      expect(await registry.read(readRest, neighbour.number)).toHaveLength(2)
      expect(await remove('gone', dateOf(consumer))).toBe('resource_unknown')
    })

    it('is deleted once by several', async () => {
      const consumer = await registry.consumer(channel, { consumerId: 'contended' })
      const outcomes = await Promise.all(
        Array.from({ length: 4 }, () => remove('contended', dateOf(consumer))),
      )
      expect(outcomes.sort()).toEqual(['done', ...Array(3).fill('resource_unknown')])
    })

    it('may come back, as another one', async () => {
      const consumer = await registry.consumer(channel, { consumerId: 'phoenix' })
      await registry.consumers.delete(channel, 'phoenix', dateOf(consumer))
      const again = await registry.consumer(channel, { consumerId: 'phoenix' })
      expect(again.number).not.toBe(consumer.number)
    })

    it('waits for who is making jobs of its channel', async () => {
      const consumer = await registry.consumer(channel, { consumerId: 'awaited' })
      let deleting: Promise<string> | undefined
      await registry.db.transaction('test', async (tx) => {
        await shareChannels(tx, [channel.number])
        deleting = remove('awaited', dateOf(consumer))
        // On PostgreSQL it would find no job now, if it looked.
        await new Promise((resolve) => setTimeout(resolve, 30))
        await tx.run(insertTestJob, registry.xids.next(), consumer.number)
      })
      expect(await deleting).toBe('consumer_has_jobs')
    })
  })
})

const insertTestJob = sql(
  'test.consumers.insertReadyJob',
  `INSERT INTO bartleby.webhook_jobs (id, message, consumer, state, created_at, changed_at, priority)
   VALUES ($1, $1, $2, 1, 0, 0, 0)`,
)
