/** What the first design of the service asked for, test by test, on a real broker and over HTTP. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { TOKEN } from '../world/kafka/http.ts'
import type { RecordDraft } from '../world/kafka/records.ts'
import type { PreviewEvent } from '../world/kafka/server.ts'
import { KafkaServers, type Service } from '../world/kafka/server.ts'
import { stores } from '../world/stores.ts'

const LIMIT = 3
/** Long ago, so that tests can say in which order events died. */
const EPOCH_MS = 1_700_000_000_000

const SERVICES = {
  order: { partitions: 3 },
  secured: {},
  actions: {},
  one: {},
  two: {},
  shared: {},
  sharing: { sharesWith: 'shared' },
  many: {},
  empty: {},
  single: {},
  full: {},
  over: {},
  still: {},
}

const numbered = (count: number): RecordDraft[] =>
  Array.from({ length: count }, (_, n) => ({ key: `k${n}`, value: { n } }))

const numbersOf = (events: readonly PreviewEvent[]): unknown[] => events.map(({ payload }) => payload)

const from = (start: number, count: number) => Array.from({ length: count }, (_, n) => ({ n: start + n }))

describeKafka('the service as it was first asked for', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      beforeAll(async () => {
        here = await KafkaServers.open(store, { services: SERVICES, kafka: { preview_limit: LIMIT } })
      })
      afterAll(() => here.close())

      const died = async (service: Service, drafts: readonly RecordDraft[]): Promise<void> => {
        await here.die(service, drafts)
        await here.expectPending(service, drafts.length)
      }

      /** All that preview and dry run must leave alone. */
      const standing = async ({ name, dlq, retry }: Service) => {
        // Offsets are committed a moment after their letters are seen.
        const end = await here.broker.endOffset(dlq)
        await expect.poll(async () => (await here.broker.committedOffset(here.group, dlq)) ?? 0n).toBe(end)
        return standingNow({ name, dlq, retry })
      }
      const standingNow = async ({ name, dlq, retry }: Pick<Service, 'name' | 'dlq' | 'retry'>) => ({
        summary: (await here.ask<Record<string, unknown>>('/kafka/summary')).body[name],
        preview: (await here.ask(`/kafka/${name}?detail=true`)).body,
        committed: await here.broker.committedOffset(here.group, dlq),
        published: await here.broker.endOffset(retry),
        history: (await here.history()).length,
      })

      it('1: shows the next events in the same order as often as it is asked, and resolves them in that order', async () => {
        const service = here.service('order')
        const at = (n: number, partition: number, timestampMs: number) => ({
          key: `k${n}`,
          value: { n },
          partition,
          timestampMs: EPOCH_MS + timestampMs,
        })
        // Number 2 has the clock that went backwards: in its partition it comes behind 1 all the same.
        await died(service, [
          at(0, 0, 0),
          at(1, 1, 10),
          at(4, 2, 30),
          at(2, 1, 5),
          at(3, 0, 20),
          at(5, 2, 30),
        ])
        const first = await here.ask(`/kafka/${service.name}`)
        expect(first.body).toMatchObject(from(0, LIMIT).map((payload) => ({ payload })))
        for (let again = 0; again < 3; again++) {
          expect((await here.ask(`/kafka/${service.name}`)).body).toEqual(first.body)
        }
        const resolved: unknown[] = []
        for (let n = 0; n < 6; n++) {
          const [next] = await here.preview(service)
          const method = n % 2 === 0 ? 'POST' : 'DELETE'
          const match = { 'if-match': `"${next?.bartleby?.dlq_id}"` }
          const { status } = await here.ask(`/kafka/${service.name}`, { method, headers: match })
          expect(status).toBe(204)
          resolved.push(next?.payload)
        }
        expect(resolved).toEqual(from(0, 6))
      })

      it('2: answers nobody without a token, and does nothing for them', async () => {
        const service = here.service('secured')
        await died(service, numbered(1))
        const before = await standing(service)
        const calls = [
          ['GET', `/kafka/${service.name}`],
          ['POST', `/kafka/${service.name}`],
          ['DELETE', `/kafka/${service.name}`],
          ['GET', `/kafka/rpc/dry-run/${service.name}`],
          ['GET', '/kafka/summary'],
          ['GET', `/kafka/${service.name}/orders`],
          ['POST', `/kafka/${service.name}/orders`],
          ['DELETE', '/kafka/4706cc1b-4c32-46d9-91b9-57b2de45dfe0'],
          // 401 comes before 404.
          ['GET', '/kafka/nobody'],
          ['POST', '/kafka/nobody'],
        ] as const
        const missing = '{"detail":"Not authenticated"}'
        const strangers: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
          [{}, missing],
          [{ authorization: 'Bearer ' }, missing],
          [{ authorization: `Basic ${TOKEN}` }, missing],
          [{ authorization: 'Bearer wrong' }, '{"detail":"Invalid authentication credentials"}'],
        ]
        for (const [method, path] of calls) {
          for (const [headers, body] of strangers) {
            const answer = await fetch(`${here.url}${path}`, { method, headers })
            expect([method, path, answer.status, await answer.text()]).toEqual([method, path, 401, body])
            expect(answer.headers.get('www-authenticate')).toBe('Bearer')
          }
        }
        const health = await fetch(`${here.url}/kafka/health`)
        expect([health.status, await health.json()]).toEqual([200, { status: 'OK' }])
        expect((await here.ask('/kafka/nobody')).status).toBe(404)
        expect(await standing(service)).toEqual(before)
      })

      it('3: does with each call what that call is for, and nothing else', async () => {
        const service = here.service('actions')
        await died(service, numbered(3))
        const published = () => here.broker.endOffset(service.retry)
        const before = await standing(service)
        await here.ask(`/kafka/${service.name}`)
        expect(await standing(service)).toEqual(before)
        await here.ask(`/kafka/rpc/dry-run/${service.name}`)
        expect(await standing(service)).toEqual(before)

        const call = async (method: string) => {
          const { status, headers } = await here.ask(`/kafka/${service.name}`, { method })
          return [status, headers.get('bartleby-outcome')]
        }
        expect(await call('POST')).toEqual([204, 'published'])
        expect([await published(), await here.pending(service)]).toEqual([1n, 2])
        expect(await call('DELETE')).toEqual([204, null])
        expect([await published(), await here.pending(service)]).toEqual([1n, 1])
        expect(numbersOf(await here.preview(service))).toEqual([{ n: 2 }])
        const [{ operation: last } = {}, { operation: lastButOne } = {}] = await here.history()
        expect([lastButOne, last]).toEqual(['kafka.published', 'kafka.discarded'])
      })

      it('4 and 5: takes events from the DLQ topics of their services, and sends them to their retry topics', async () => {
        const called = ['one', 'two', 'shared', 'sharing'] as const
        for (const [n, name] of called.entries()) {
          await died(here.service(name), [{ key: 'k', value: { n } }])
        }
        for (const [n, name] of called.entries()) {
          const service = here.service(name)
          expect(await here.preview(service)).toMatchObject([{ topic: service.dlq, payload: { n } }])
        }
        expect(here.service('sharing').dlq).toBe(here.service('shared').dlq)
        for (const [n, name] of called.entries()) {
          const service = here.service(name)
          expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
          const ends = await Promise.all(
            called.map((each) => here.broker.endOffset(here.service(each).retry)),
          )
          expect(ends).toEqual(called.map((_, other) => (other <= n ? 1n : 0n)))
          const [sent] = await here.published(service)
          expect(Buffer.from(sent?.value ?? []).toString()).toBe(`{"n":${n}}`)
        }
      })

      it('6: resolves one event per call, also when twenty call at once', async () => {
        const service = here.service('many')
        await died(service, numbered(25))
        const statuses = await Promise.all(
          Array.from({ length: 20 }, async (_, call) => {
            const method = call % 2 === 0 ? 'POST' : 'DELETE'
            return (await here.ask(`/kafka/${service.name}`, { method })).status
          }),
        )
        expect(statuses).toEqual(Array.from({ length: 20 }, () => 204))
        expect(await here.pending(service)).toBe(5)
        const sent = (await here.published(service)).map(({ value }) => Buffer.from(value ?? []).toString())
        expect(sent).toHaveLength(10)
        expect(new Set(sent).size).toBe(10)
        expect(numbersOf(await here.preview(service))).toEqual(from(20, LIMIT))
      })

      it('7: shows the next N, not one more and not one less', async () => {
        const shown = async (called: string, count: number): Promise<unknown[]> => {
          const service = here.service(called)
          await died(service, numbered(count))
          const { body } = await here.ask<PreviewEvent[]>(`/kafka/${service.name}`)
          return numbersOf(body)
        }
        expect(await shown('empty', 0)).toEqual([])
        expect(await shown('single', 1)).toEqual(from(0, 1))
        expect(await shown('full', LIMIT)).toEqual(from(0, LIMIT))
        expect(await shown('over', LIMIT + 1)).toEqual(from(0, LIMIT))
        const over = here.service('over')
        expect(numbersOf(await here.preview(over, '&limit=1'))).toEqual(from(0, 1))
        expect(numbersOf(await here.preview(over, '&limit=2'))).toEqual(from(0, 2))
        const empty = here.service('empty')
        for (const [method, path] of [
          ['POST', `/kafka/${empty.name}`],
          ['DELETE', `/kafka/${empty.name}`],
          ['GET', `/kafka/rpc/dry-run/${empty.name}`],
        ] as const) {
          const { status, body } = await here.ask(path, { method })
          expect([status, body]).toMatchObject([404, { exception_id: 'emptyDLQError' }])
        }
      })

      it('8: moves neither the next event nor an offset when it shows or rehearses', async () => {
        const service = here.service('still')
        await died(service, numbered(2))
        await here.expectNoLag(service)
        const before = await standing(service)
        const rehearsal = `/kafka/rpc/dry-run/${service.name}`
        const first = await here.ask(rehearsal)
        for (let again = 0; again < 3; again++) {
          await here.ask(`/kafka/${service.name}?limit=1`)
          await here.ask(`/kafka/${service.name}/orders?skip=1`)
          const { status, body, headers } = await here.ask(rehearsal)
          expect([status, body]).toEqual([first.status, first.body])
          expect(headers.get('etag')).toBe(first.headers.get('etag'))
        }
        expect(first.body).toMatchObject({ topic: service.retry, payload: { n: 0 } })
        expect(await standing(service)).toEqual(before)
        expect(before.committed).toBe(2n)
      })
    })
  }
})
