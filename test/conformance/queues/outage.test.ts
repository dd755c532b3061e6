/** A store that cannot be reached: clear errors, a failing health check, and recovery without a restart. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Door, doorTo } from '../../world/proxy.ts'
import { type RunningServer, startServer } from '../../world/server.ts'
import { type FreshStore, freshPostgres, stores } from '../../world/stores.ts'
import { TestClock } from '../../world/time.ts'
import { jsonCodec, Wire } from '../../world/wire.ts'
import { Bed, idsOf, textsOf } from './bed.ts'

describe('a PostgreSQL that cannot be reached', () => {
  let place: FreshStore
  let door: Door
  let server: RunningServer
  let wire: Wire
  let bed: Bed

  const health = async () => {
    const reply = await wire.raw('/health', { method: 'GET' })
    return { status: reply.status, body: JSON.parse(Buffer.from(reply.bytes).toString()) }
  }

  beforeEach(async () => {
    place = await freshPostgres()
    door = await doorTo(place.url)
    server = await startServer({ store: door.url })
    wire = new Wire(server.url)
    const [, postgres] = stores
    if (postgres === undefined) throw new Error('there is no PostgreSQL among the stores')
    const clock = new TestClock(() => wire)
    bed = new Bed(postgres, jsonCodec, () => ({ wire, place, clock }))
  })

  afterEach(async () => {
    door.open()
    await wire.close()
    await server.stop()
    await door.close()
    await place.dispose()
  })

  it('fails the health check until it is back', async () => {
    expect((await health()).status).toBe(200)
    door.shut()
    await expect.poll(async () => (await health()).status).toBe(503)
    expect((await health()).body).toEqual({
      status: 'fail',
      version: expect.any(String),
      checks: {
        'queues:storage': [
          {
            componentType: 'datastore',
            status: 'fail',
            time: expect.any(String),
            output: 'storage check failed',
          },
        ],
      },
    })
    door.open()
    await expect.poll(async () => (await health()).status).toBe(200)
  })

  it('makes produce and complete fail with 454 and the others with 500; all work again when it is back', async () => {
    const queue_name = await bed.queue()
    await bed.produce(queue_name, 'a')
    const ids = idsOf((await bed.lease(queue_name)).items)
    door.shut()
    const again = 'internal error, try your request again'
    const produce = { queue_name, request_timeout: '1m', items: [{ utf8: 'b' }] }
    await bed.refuses('/v1/queue.produce', produce, again, 454)
    await bed.refuses('/v1/queue.complete', { queue_name, request_timeout: '1m', ids }, again, 454)
    await bed.refuses('/v1/storage/items.list', { queue_name }, 'Internal Error', 500)
    door.open()
    await expect.poll(async () => (await bed.call('/v1/queue.produce', produce)).status).toBe(200)
    expect(textsOf(await bed.items(queue_name))).toEqual(['a', 'b'])
    await bed.complete(queue_name, ids)
  })

  it('leaves waiting leases waiting; they are served when it is back', async () => {
    const queue_name = await bed.queue()
    const lease = bed.startLease(queue_name, 1, { request_timeout: '1m' })
    await bed.untilWaiting(queue_name, 1)
    door.shut()
    const produce = { queue_name, request_timeout: '1m', items: [{ utf8: 'b' }] }
    await bed.call('/v1/queue.produce', produce)
    door.open()
    await expect.poll(async () => (await bed.call('/v1/queue.produce', produce)).status).toBe(200)
    // Served, or told to try again while the store was gone; never left hanging.
    expect([200, 454]).toContain((await lease.answer).status)
  })
})
