/** Clients of the DLQ service of GHGA, unchanged, on a real broker: their shapes, their loop, and both APIs on one queue. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { TOKEN } from '../world/kafka/http.ts'
import { KafkaServers } from '../world/kafka/server.ts'
import { newName } from '../world/kafka/topics.ts'
import { stores } from '../world/stores.ts'
import { VECTORS } from './vectors.ts'

/** As the vectors have it. */
const STORED = VECTORS.http.stored_event as {
  readonly headers: { readonly correlation_id: string }
  readonly dlq_id: string
  readonly dlq_info: { readonly original_event_id: string }
}
const PUBLISHABLE = VECTORS.http.publishable_event

describeKafka('a client of the shipped service', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      const retry = newName('retry')
      beforeAll(async () => {
        const services = { svc: { name: 'svc', retry: () => retry }, first: {}, second: {}, mixed: {} }
        here = await KafkaServers.open(store, { services })
      })
      afterAll(() => here.close())

      const asked = async (method: string, path: string, body?: object) => {
        const answer = await fetch(`${here.url}${path}`, {
          method,
          headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        return { status: answer.status, text: await answer.text() }
      }

      it('sees the events and what was published of them to the last byte of JSON', async () => {
        const svc = here.service('svc')
        await here.die(svc, [
          {
            value: '{"a":1,"x":null}',
            timestampMs: 1_794_704_953_796,
            eventId: STORED.dlq_id,
            originalEventId: STORED.dlq_info.original_event_id,
            correlationId: STORED.headers.correlation_id,
          },
        ])
        await here.expectPending(svc, 1)
        const preview = await asked('GET', '/kafka/svc/orders')
        expect(preview).toEqual({ status: 200, text: JSON.stringify([STORED]) })
        const publishable = JSON.stringify({ ...PUBLISHABLE, topic: retry, payload: { a: 1, x: null } })
        const body = { dlq_id: STORED.dlq_id, override: null }
        expect(await asked('POST', '/kafka/svc/orders?dry_run=true', body)).toEqual({
          status: 200,
          text: publishable,
        })
        expect(await here.published(svc)).toEqual([])
        expect(await asked('POST', '/kafka/svc/orders?dry_run=false', body)).toEqual({
          status: 200,
          text: publishable,
        })
        expect(await here.published(svc)).toHaveLength(1)
        expect(await asked('GET', '/kafka/svc/orders')).toEqual({ status: 200, text: '[]' })
        expect(await asked('GET', '/kafka/nobody/nothing')).toEqual({ status: 200, text: '[]' })
        expect((await asked('POST', '/kafka/svc/orders', body)).status).toBe(404)
      })

      it('drains every queue, each in its order', async () => {
        for (const called of ['first', 'second']) {
          const drafts = ['orders', 'users', 'orders', 'users', 'orders'].map((originalTopic, n) => ({
            key: `k${n}`,
            value: { n },
            originalTopic,
          }))
          await here.die(here.service(called), drafts)
          await here.expectPending(here.service(called), 5)
        }
        const { body: summary } = await here.ask<Record<string, Record<string, number>>>('/kafka/summary')
        const queues = Object.entries(summary).flatMap(([service, topics]) =>
          Object.keys(topics).map((topic) => `/kafka/${service}/${topic}`),
        )
        expect(queues).toHaveLength(4)
        for (const queue of queues) {
          for (;;) {
            const { body: events } = await here.ask<{ dlq_id: string }[]>(`${queue}?limit=1`)
            const [event] = events
            if (event === undefined) break
            const { status } = await asked('POST', `${queue}?dry_run=false`, { dlq_id: event.dlq_id })
            expect(status).toBe(200)
          }
        }
        expect((await here.ask('/kafka/summary')).body).toEqual({})
        for (const called of ['first', 'second']) {
          const sent = (await here.published(here.service(called))).map(({ value, headers }) => [
            String(headers[0]?.value),
            JSON.parse(String(value)).n,
          ])
          expect(sent.filter(([topic]) => topic === 'orders').map(([, n]) => n)).toEqual([0, 2, 4])
          expect(sent.filter(([topic]) => topic === 'users').map(([, n]) => n)).toEqual([1, 3])
        }
      })

      it('shares its queue with those who ask by service', async () => {
        const service = here.service('mixed')
        await here.die(
          service,
          Array.from({ length: 5 }, (_, n) => ({ key: `k${n}`, value: { n } })),
        )
        await here.expectPending(service, 5)
        const ids = (await here.preview(service)).map(({ bartleby }) => bartleby?.dlq_id ?? '')
        const [byService, byTopic] = [`/kafka/${service.name}`, `/kafka/${service.name}/orders`]
        const refusal = async (method: string, path: string, body?: object) => {
          const { status, text } = await asked(method, path, body)
          return [status, JSON.parse(text).exception_id ?? 'detail']
        }
        expect(await refusal('POST', byTopic, { dlq_id: ids[1] })).toEqual([409, 'dlqSequenceError'])
        expect(await refusal('POST', byTopic, { dlq_id: 'x' })).toEqual([422, 'detail'])
        expect(await refusal('GET', `${byTopic}?skip=-1`)).toEqual([400, 'previewParamsError'])
        // Anywhere, and the second time there is nothing left to do.
        expect((await asked('DELETE', `/kafka/${ids[2]}`)).status).toBe(204)
        expect((await asked('DELETE', `/kafka/${ids[2]}`)).status).toBe(204)
        expect((await asked('POST', byTopic, { dlq_id: ids[0] })).status).toBe(200)
        expect((await asked('POST', byService)).status).toBe(204)
        expect(await refusal('POST', byTopic, { dlq_id: ids[1] })).toEqual([409, 'dlqSequenceError'])
        expect((await asked('DELETE', byService)).status).toBe(204)
        expect((await asked('POST', byTopic, { dlq_id: ids[4] })).status).toBe(200)
        expect(await refusal('POST', byTopic, { dlq_id: ids[4] })).toEqual([404, 'emptyDLQError'])
        expect(await refusal('POST', byService)).toEqual([404, 'emptyDLQError'])
        const sent = (await here.published(service)).map(({ value }) => String(value))
        expect(sent).toEqual(['{"n":0}', '{"n":1}', '{"n":4}'])
      })
    })
  }
})
