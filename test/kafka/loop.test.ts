/** The whole way: a service fails, the event is looked at, rehearsed, processed, consumed; it fails again, and it is the same letter. */
import { expect, it } from 'vitest'
import type { RawRecord } from '../../src/sources/kafka/event.ts'
import { lastHeader, shownBytes } from '../../src/sources/kafka/wire/bytes.ts'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { TOKEN } from '../world/kafka/http.ts'
import { ask, KafkaServers, type PreviewEvent, pending } from '../world/kafka/server.ts'
import { stores } from '../world/stores.ts'

const headersOf = ({ headers }: RawRecord): (readonly [string, string | null])[] =>
  headers.map(({ name, value }) => [shownBytes(name), shownBytes(value)])

describeKafka('the way of a dead event', () => {
  for (const store of stores) {
    it(`from DLQ topic to retry topic and back, on ${store.name}`, async () => {
      const here = await KafkaServers.prepare(store, { services: { svc: {} } })
      const service = here.service('svc')
      const server = await here.spawn()
      const at = `/kafka/${service.name}`
      try {
        await here.die(service, [
          { key: 'k1', value: '{"id": 12345678901234567890, "f": 1.0}', excMsg: 'boom' },
        ])
        await expect.poll(() => pending(server, service.name)).toBe(1)

        const preview = await fetch(`${server.url}${at}`, { headers: { authorization: `Bearer ${TOKEN}` } })
        expect(await preview.text()).toContain('"payload":{"id": 12345678901234567890, "f": 1.0}')

        const rehearsal = await ask<PreviewEvent>(server, `/kafka/rpc/dry-run/${service.name}`)
        expect(rehearsal).toMatchObject({
          status: 200,
          body: { topic: service.retry, type_: 'created', key: 'k1', headers: { original_topic: 'orders' } },
        })
        expect(await here.broker.readTopic(service.retry)).toEqual([])

        const match = rehearsal.headers.get('etag') ?? ''
        const processed = await ask(server, at, { method: 'POST', headers: { 'if-match': match } })
        expect([processed.status, processed.headers.get('bartleby-outcome')]).toEqual([204, 'published'])
        const [sent] = await here.broker.readTopic(service.retry)
        if (sent === undefined) throw new Error('nothing was published')
        expect(Buffer.from(sent.value ?? []).toString()).toBe('{"id": 12345678901234567890, "f": 1.0}')
        expect(headersOf(sent).map(([name]) => name)).toEqual([
          'original_topic',
          'type',
          'event_id',
          'correlation_id',
        ])
        expect(await pending(server, service.name)).toBe(0)

        // The service fails again, and writes what it failed at to its DLQ topic.
        const minted = shownBytes(lastHeader(sent.headers, 'event_id') ?? null)
        await here.die(service, [{ key: 'k1', value: sent.value, originalEventId: minted, excMsg: 'again' }])
        await expect.poll(() => pending(server, service.name)).toBe(1)
        const { body } = await ask<PreviewEvent[]>(server, `${at}?detail=true`)
        expect(body).toMatchObject([
          {
            headers: { exc_msg: 'again' },
            bartleby: { state: 'pending', attempts: 2, chain: [{ exc_msg: 'boom' }] },
          },
        ])
        expect(JSON.stringify(body[0]?.bartleby?.chain)).toContain(minted)

        const letters = await ask<{
          data: { items: { status: string; dequeueCount: number; rowKey: string }[] }
        }>(server, '/api/dlq?engine=kafka')
        expect(letters.body.data.items).toHaveLength(1)
        expect((await ask(server, at, { method: 'POST' })).status).toBe(204)
        expect(await here.broker.readTopic(service.retry)).toHaveLength(2)
        expect((await ask(server, at, { method: 'POST' })).status).toBe(404)
        const rowKey = letters.body.data.items[0]?.rowKey ?? ''
        const detail = await ask<{ data: { history: { operation: string }[] } }>(
          server,
          `/api/dlq/kafka/${encodeURIComponent(rowKey)}`,
        )
        expect(detail.body.data.history.map(({ operation }) => operation).reverse()).toEqual([
          'kafka.received',
          'kafka.published',
          'kafka.reopened',
          'kafka.published',
        ])
      } finally {
        await here.close()
      }
    })
  }
})
