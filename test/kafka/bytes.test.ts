/** Bytes that are easily lost: what is published is what lay in the DLQ topic, and what operators write keeps its digits. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka } from '../world/kafka/broker-of-run.ts'
import { TOKEN } from '../world/kafka/http.ts'
import { KafkaServers } from '../world/kafka/server.ts'
import { stores } from '../world/stores.ts'

const MEBIBYTE = 1_048_576

/** What leaves as it came, byte for byte. */
const KEPT: Readonly<Record<string, string>> = {
  'big integers': '{"big": 12345678901234567890, "bigger": -98765432109876543210987654321}',
  'numbers with digits that say nothing': '{"f": 1.0, "g": 1.10, "e": 1E400, "zero": -0.0, "tiny": 1e-400}',
  'numbers that are not finite': '{"a": NaN, "b": Infinity, "c": [-Infinity]}',
  'escapes of NUL': '{"a": "x\\u0000y", "\\u0000": 0}',
  'lone surrogates': '{"high": "\\ud800", "low": "\\udc00!", "swapped": "\\udc00\\ud800"}',
  'emoji in escapes': '{"mail": "\\ud83d\\udce8", "name": "J\\u00fcrgen"}',
  'members that repeat': '{"a": 1, "a": 2, "b": {"c": 1, "c": [1, 2]}, "a": 3}',
  'spaces of another layout': '{"a" :1 ,\r\n\t"b":[ ] }\n',
  'a list': '[1, 2.0, {"__proto__": null}]',
  'a mebibyte': `{"data": "${'x'.repeat(MEBIBYTE - 12)}"}`,
}

/** Text that consumers cannot decode is escaped, and nothing else of it changes. */
const ESCAPED: readonly (readonly [what: string, value: string, published: string])[] = [
  [
    'raw emoji',
    '{"mail": "📨", "big": 12345678901234567890}',
    '{"mail": "\\ud83d\\udce8", "big": 12345678901234567890}',
  ],
  [
    'raw text in names',
    '{"größe": 1.0, "größe": NaN}',
    '{"gr\\u00f6\\u00dfe": 1.0, "gr\\u00f6\\u00dfe": NaN}',
  ],
]

const LARGE = { 'max.message.bytes': String(2 * MEBIBYTE) }

describeKafka('the bytes of an event', () => {
  for (const store of stores) {
    describe(`on ${store.name}`, () => {
      let here: KafkaServers
      beforeAll(async () => {
        here = await KafkaServers.open(store, {
          services: { kept: { dlqConfig: LARGE, retryConfig: LARGE }, escaped: {}, overridden: {} },
          kafka: { max_message_bytes: 2 * MEBIBYTE },
        })
      })
      afterAll(() => here.close())

      const publishedBytes = async (called: string): Promise<string[]> =>
        (await here.published(here.service(called))).map(({ value }) =>
          Buffer.from(value ?? []).toString('latin1'),
        )

      it('are published as they were stored', async () => {
        const service = here.service('kept')
        const values = Object.values(KEPT)
        await here.die(
          service,
          values.map((value, n) => ({ key: `k${n}`, value })),
        )
        await here.expectPending(service, values.length)
        const events = await here.preview(service)
        for (const [n, event] of events.entries()) {
          const stored = await fetch(`${here.url}/api/kafka/events/${event.bartleby?.dlq_id}/value`)
          expect(Buffer.from(await stored.arrayBuffer()).toString('latin1') === values[n]).toBe(true)
          expect(event.bartleby).toMatchObject({ reasons: [] })
          expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
        }
        const sent = await publishedBytes('kept')
        // Not compared as a whole: a difference in a mebibyte is not to be printed.
        const changed = Object.keys(KEPT).filter((_, n) => sent[n] !== values[n])
        expect([sent.length, changed]).toEqual([values.length, []])
      })

      it('are escaped where consumers need it, and are the same otherwise', async () => {
        const service = here.service('escaped')
        await here.die(
          service,
          ESCAPED.map(([, value], n) => ({ key: `k${n}`, value })),
        )
        await here.expectPending(service, ESCAPED.length)
        for (const _ of ESCAPED)
          expect((await here.ask(`/kafka/${service.name}`, { method: 'POST' })).status).toBe(204)
        expect(await publishedBytes('escaped')).toEqual(ESCAPED.map(([, , published]) => published))
      })

      it('of an override reach the topic digit for digit', async () => {
        const service = here.service('overridden')
        await here.die(service, [{ key: 'before', value: 'not json', correlationId: CORRELATION }])
        await here.expectPending(service, 1)
        const [event] = await here.preview(service)
        expect(event).toMatchObject({ payload: null, bartleby: { reasons: ['value_not_json'] } })
        const payload = '{"big": 12345678901234567890, "f": 1.0, "e": 1e400, "a": 1, "a": "ü"}'
        const answer = await fetch(`${here.url}/kafka/${service.name}/orders`, {
          method: 'POST',
          headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
          body: `{"dlq_id": "${event?.bartleby?.dlq_id}", "override": {"topic": "users", "type_": "changed", "key": "after", "payload": ${payload}}}`,
        })
        expect(answer.status).toBe(200)
        expect(await answer.text()).toContain('"big": 12345678901234567890, "f": 1.0, "e": 1e400')
        const [sent] = await here.published(service)
        expect(Buffer.from(sent?.value ?? []).toString()).toBe(payload.replace('ü', '\\u00fc'))
        expect(Buffer.from(sent?.key ?? []).toString()).toBe('after')
        const headers = sent?.headers.map(({ name, value }) => [String(name), String(value)])
        expect(headers?.filter(([name]) => name !== 'event_id')).toEqual([
          ['original_topic', 'users'],
          ['type', 'changed'],
          ['correlation_id', CORRELATION],
        ])
      })
    })
  }
})

const CORRELATION = 'dfdcc063-3332-4ebd-bbe2-515e4af2fbf9'
