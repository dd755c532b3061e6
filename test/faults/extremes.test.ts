/** Values at the end of their range are accepted by the contract and must not stop a queue. */
import { describe, expect, it } from 'vitest'
import { startServer } from '../world/server.ts'
import { stores } from '../world/stores.ts'
import { type Json, jsonCodec, Wire } from '../world/wire.ts'

const LARGEST = 2 ** 31 - 1

describe.each(stores)('an item with as many attempts as a number can hold, on $name', (store) => {
  it('is leased like any other and does not block those behind it', async () => {
    const place = await store.fresh()
    const server = await startServer({ store: place.url, testApi: false })
    const wire = new Wire(server.url)
    try {
      const queue_name = 'q'
      const settings = { queue_name, lease_timeout: '1m', expire_timeout: '1h', requested_partitions: 1 }
      await wire.call(jsonCodec, '/v1/queues.create', settings)
      const items: Json[] = [{ attempts: LARGEST, payload: 'YQ==' }, { payload: 'Yg==' }]
      await wire.call(jsonCodec, '/v1/storage/items.import', { queue_name, items })
      const lease = { queue_name, client_id: 'c', batch_size: 2, request_timeout: '5s' }
      expect(await wire.call(jsonCodec, '/v1/queue.lease', lease)).toMatchObject({
        status: 200,
        body: { items: [{ attempts: LARGEST }, { attempts: 1 }] },
      })
    } finally {
      await wire.close()
      await server.stop()
      await place.dispose()
    }
  })
})
