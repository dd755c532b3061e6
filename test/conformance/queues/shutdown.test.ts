/** Contract 2.6: SIGTERM, seen by clients. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { STOP_PROMISED_MS } from '../../world/limits.ts'
import { type SpawnedServer, spawnServer, startServer } from '../../world/server.ts'
import { type FreshStore, stores } from '../../world/stores.ts'
import { TestClock } from '../../world/time.ts'
import { jsonCodec, Wire } from '../../world/wire.ts'
import { Bed, textsOf } from './bed.ts'

/** A request whose body has begun to arrive but not ended: the server has it in flight. */
async function unfinished(url: string, path: string, body: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
  })
  const closed = once(socket, 'close')
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  )
  return {
    finish: async () => {
      socket.write(body.slice(5))
      await closed
      return received
    },
  }
}

describe.each(stores)('a shutdown on $name', (store) => {
  let place: FreshStore
  let server: SpawnedServer
  let wire: Wire
  let bed: Bed

  beforeEach(async () => {
    place = await store.fresh()
    server = await spawnServer({ store: place.url })
    wire = new Wire(server.url)
    const clock = new TestClock(() => wire)
    bed = new Bed(store, jsonCodec, () => ({ wire, place, clock }))
  })

  afterEach(async () => {
    await wire.close()
    await server.kill9()
    await place.dispose()
  })

  it('answers waiting leases 453, also those that a pause holds, and exits with 0 in time', async () => {
    const queue = await bed.queue()
    const paused = await bed.queue()
    await bed.pause(paused)
    const leases = [...(await bed.startLeases(queue, 1, 1, 1)), ...(await bed.startLeases(paused, 1))]
    const started = performance.now()
    const exit = server.term()
    for (const lease of leases) {
      expect((await lease.answer).body).toEqual({
        code: 453,
        code_text: 'Request Failed',
        message: 'queue is shutting down',
      })
    }
    expect(await exit).toBe(0)
    expect(performance.now() - started).toBeLessThan(STOP_PROMISED_MS)
  })

  it('keeps listening until what is in flight is answered, and tells others that it stops', async () => {
    const queue_name = await bed.queue()
    const body = JSON.stringify({ queue_name, request_timeout: '1m', items: [{ utf8: 'x' }] })
    const slow = await unfinished(server.url, '/v1/queue.produce', body)
    const [lease] = await bed.startLeases(queue_name, 1)
    const exit = server.term()
    expect((await lease?.answer)?.status).toBe(453)
    // A new connection, not one that was kept.
    const late = new Wire(server.url)
    const answer = await late.call(jsonCodec, '/v1/queue.stats', { queue_name })
    expect(answer.body).toEqual({
      code: 453,
      code_text: 'Request Failed',
      message: 'service is shutting down',
    })
    expect(await slow.finish()).toMatch(/^HTTP\/1\.1 (200|453) /)
    await late.close()
    expect(await exit).toBe(0)
  })

  it('loses nothing that was acknowledged', async () => {
    const queue = await bed.queue()
    let acknowledged = 0
    const producing = Array.from({ length: 8 }, async () => {
      for (;;) {
        const request = { queue_name: queue, request_timeout: '1m', items: [{ utf8: 'x' }] }
        const answer = await bed.call('/v1/queue.produce', request).catch(() => undefined)
        if (answer?.status !== 200) return
        acknowledged++
      }
    })
    while (acknowledged < 50) await new Promise((resolve) => setImmediate(resolve))
    expect(await server.term()).toBe(0)
    await Promise.all(producing)
    await wire.close()
    const next = await startServer({ store: place.url })
    wire = new Wire(next.url)
    try {
      const stored = textsOf(await bed.items(queue, 0, { limit: 100_000 })).length
      // A write may be committed whose answer was cut off; it must never be the other way round.
      expect(stored).toBeGreaterThanOrEqual(acknowledged)
      expect(stored).toBeLessThanOrEqual(acknowledged + 8)
    } finally {
      await wire.close()
      await next.stop()
    }
  })
})
