import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Asked, KafkaHttp } from '../../../../test/world/kafka/http.ts'
import { header } from '../../../../test/world/kafka/records.ts'
import { dlqIds } from '../../../../test/world/kafka/world.ts'
import { stores } from '../../../../test/world/stores.ts'

const CORRELATION_ID = 'dfdcc063-3332-4ebd-bbe2-515e4af2fbf9'
const NOBODY = '00000000-0000-4000-8000-000000000000'

describe.each(stores)('the calls by service, on $name', (kind) => {
  let shared: KafkaHttp
  let http: KafkaHttp

  beforeAll(async () => {
    shared = await KafkaHttp.open(kind, { settings: { previewLimit: 4, previewMaxBytes: 2_000 } })
  })
  beforeEach(() => {
    http = shared
  })
  afterEach(async () => {
    if (http === shared) await shared.clear()
    else await http.close()
  })
  afterAll(() => shared.close())

  const ids = async (url: string) =>
    (await http.events<{ bartleby: { dlq_id: string } }>(url)).map(({ bartleby }) => bartleby.dlq_id)
  const refusal = async (url: string, asked: Asked = {}) => {
    const { statusCode, headers, body } = await http.ask(url, asked)
    const { exception_id: id, data, description } = JSON.parse(body)
    expect(description).toEqual(expect.any(String))
    return { status: statusCode, id, data, retryAfter: headers['retry-after'] }
  }

  describe('a preview', () => {
    it('shows an event as it lay in its DLQ topic, with every header but its type', async () => {
      await http.store.dead({
        value: '{"a":1}',
        correlationId: CORRELATION_ID,
        originalEventId: null,
        eventId: null,
        service: null,
      })
      const reply = await http.ask('/kafka/wps')
      expect(reply.body).toBe(
        '[{"topic":"wps_dlq","type_":"created","payload":{"a":1},"key":"k1","headers":{"exc_class":"ValueError",' +
          `"exc_msg":"boom","original_topic":"orders","correlation_id":"${CORRELATION_ID}"}}]`,
      )
      expect(reply.headers).toMatchObject({
        'content-type': 'application/json',
        'content-length': String(reply.body.length),
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      })
      expect(reply.headers).not.toHaveProperty('bartleby-truncated')
    })

    it('shows headers that are odd', async () => {
      await http.store.dead({
        key: Buffer.from([0xff]),
        headers: [
          header('service', 'wps'),
          header('original_topic', 'first'),
          header('original_topic', 'orders'),
          header('type', 'created'),
          header('nothing', null),
          header('empty', ''),
          header('bytes', Buffer.from([0xfe, 0x00])),
          header('__proto__', 'x'),
          { name: Buffer.from([0xff]), value: Buffer.from('y') },
        ],
      })
      const [event] = await http.events<Record<'headers' | 'key', unknown>>('/kafka/wps')
      expect(event?.key).toBe('base64:/w==')
      expect(Object.entries(event?.headers ?? {})).toEqual([
        ['service', 'wps'],
        ['original_topic', 'orders'],
        ['nothing', null],
        ['empty', ''],
        ['bytes', 'base64:/gA='],
        ['__proto__', 'x'],
        ['base64:/w==', 'y'],
      ])
    })

    it('keeps every digit and every member of a payload', async () => {
      const payloads = [
        '12345678901234567890',
        '{"f": 1.0, "e": 1e400, "d": 1, "d": 2, "u": "\\ud800\\u0000 ☃ ü"}',
        `{"deep": ${'['.repeat(5_00)}${']'.repeat(500)}}`,
        '  [ 1 ]',
      ]
      for (const value of payloads) await http.store.dead({ value })
      const { body } = await http.ask('/kafka/wps')
      const shown = body.split(/"payload":/).slice(1)
      for (const [index, value] of payloads.entries())
        expect(shown[index]?.startsWith(`${value},"key":"k1"`)).toBe(true)
    })

    it('shows null for numbers that JSON has none of, and only for those', async () => {
      await http.store.dead({ value: '{"a": NaN, "b": [Infinity, -Infinity, -1], "c": "NaN \\" Infinity"}' })
      const [event] = await http.events<Record<string, unknown>>('/kafka/wps?detail=true')
      expect(event).toMatchObject({
        payload: { a: null, b: [null, null, -1], c: 'NaN " Infinity' },
        bartleby: { warnings: ['non_finite_numbers'] },
      })
    })

    it('has the next events, as many as asked for and no other', async () => {
      const asked = [
        ['', 4],
        ['?limit=1', 1],
        ['?limit=3', 3],
        ['?limit=%2B4', 4],
        ['?limit=9&limit=2', 2],
        ['?unknown=1', 4],
      ] as const
      expect(await http.events('/kafka/wps')).toEqual([])
      const events = []
      for (let length = 1; length <= 5; length++) {
        events.push(await http.store.dead())
        for (const [query, limit] of asked) {
          const url = `/kafka/wps${query}${query === '' ? '?' : '&'}detail=true`
          expect(await ids(url)).toEqual(dlqIds(events.slice(0, limit)))
        }
      }
    })

    it('refuses limits that it has not', async () => {
      for (const limit of [0, -1, 5, 1_000])
        expect(await refusal(`/kafka/wps?limit=${limit}`)).toMatchObject({
          status: 400,
          id: 'previewParamsError',
          data: { skip: 0, limit },
        })
      for (const limit of ['', 'x', '1.5', '0x1', '1e1']) {
        const reply = await http.ask(`/kafka/wps?limit=${limit}`)
        expect([reply.statusCode, reply.json()]).toEqual([
          422,
          {
            detail: [
              {
                loc: ['query', 'limit'],
                msg: 'Input should be a valid integer, unable to parse string as an integer',
                type: 'int_parsing',
                input: limit,
              },
            ],
          },
        ])
      }
    })

    it('is cut where it would be too large, and says so', async () => {
      for (const bytes of [1_000, 1_001, 10]) await http.store.dead({ value: `"${'x'.repeat(bytes - 2)}"` })
      const lengthOf = async (url: string) => {
        const reply = await http.ask(url)
        return [reply.json().length, reply.headers['bartleby-truncated']]
      }
      expect(await lengthOf('/kafka/wps')).toEqual([1, 'true'])
      expect(await lengthOf('/kafka/wps?limit=1')).toEqual([1, undefined])
      expect(await lengthOf('/kafka/wps/orders?skip=1')).toEqual([2, undefined])
      expect(await lengthOf('/kafka/wps/orders')).toEqual([1, 'true'])
    })

    it('tells of an event that is too large by itself, without its payload', async () => {
      const large = await http.store.dead({ value: `"${'x'.repeat(5_000)}"` })
      await http.store.dead()
      for (const url of ['/kafka/wps', '/kafka/wps/orders', '/kafka/wps?limit=1', '/kafka/wps?detail=true']) {
        const reply = await http.ask(url)
        expect(reply.headers['bartleby-truncated']).toBe('true')
        expect(reply.body.length).toBeLessThan(2_000)
        expect(reply.json()).toMatchObject([
          { payload: null, key: 'k1', bartleby: { dlq_id: large.dlqId, value_omitted_bytes: 5_002 } },
        ])
      }
    })

    it('says why an event is quarantined, also when nobody asks', async () => {
      const event = await http.store.dead({ value: 'no JSON', correlationId: 'x', partition: 3, offset: 7 })
      const [shown] = await http.events('/kafka/wps')
      expect(shown).toMatchObject({ payload: null })
      expect(shown?.bartleby).toEqual({
        letter_id: event.rowKey,
        dlq_id: event.dlqId,
        state: 'pending',
        topic: 'wps_dlq',
        partition: 3,
        offset: '7',
        timestamp: '2027-01-15T08:00:00Z',
        family: 'hexkit',
        attempts: 1,
        attempts_reported: null,
        chain: [],
        reasons: ['value_not_json', 'correlation_id_invalid'],
        warnings: [],
      })
      const base64 = Buffer.from('no JSON').toString('base64')
      expect(await http.events('/kafka/wps?detail=true')).toEqual([
        { ...shown, bartleby: { ...(shown?.bartleby as object), value_base64: base64 } },
      ])
      expect(await http.events('/kafka/wps?detail=false')).toEqual([shown])
      await http.store.dead({ value: null, partition: 4 })
      const second = (await http.events<{ bartleby: object }>('/kafka/wps'))[1]
      expect(second?.bartleby).toMatchObject({ reasons: ['value_null'] })
      expect(second?.bartleby).not.toHaveProperty('value_base64')
    })

    it('tells of earlier deaths and of what came later, when asked for', async () => {
      const first = await http.store.dead({ key: 'k' })
      const minted = await http.store.publish(first, { partition: 1, offset: 5n })
      await http.store.dead({ key: 'k', originalEventId: minted, excMsg: 'again' })
      await http.store.dead({ key: 'k' })
      const [plain] = await http.events('/kafka/wps')
      expect(plain).not.toHaveProperty('bartleby')
      const [detailed] = await http.events('/kafka/wps?detail=TRUE')
      expect(detailed?.bartleby).toMatchObject({
        attempts: 2,
        warnings: ['later_same_key'],
        chain: [
          {
            dlq_id: first.dlqId,
            topic: 'wps_dlq',
            partition: 0,
            offset: String(first.order.offset),
            timestamp: '2027-01-15T08:00:00Z',
            exc_class: 'ValueError',
            exc_msg: 'boom',
            sent: {
              event_id: minted,
              topic: 'wps_retry',
              partition: 1,
              offset: '5',
              outcome: 'published',
              resends: 0,
              actor: 'tester',
              request_id: null,
              at: '2027-01-15T08:00:00.000000Z',
            },
          },
        ],
      })
    })

    it('is of a service that is known', async () => {
      for (const [method, url] of [
        ['GET', '/kafka/wps_dlq'],
        ['GET', '/kafka/a%2Fb'],
        ['GET', '/kafka/a%00b'],
        ['GET', '/kafka/rpc/dry-run/irs-eu'],
        ['POST', '/kafka/WPS'],
        ['DELETE', '/kafka/nobody'],
      ] as const) {
        const service = decodeURIComponent(url.split('/').at(-1) ?? '')
        expect(await refusal(url, { method })).toMatchObject({
          status: 404,
          id: 'unknownServiceError',
          data: { service },
        })
      }
      await http.store.dead({ service: 'nobody' })
      expect(await refusal('/kafka/nobody')).toMatchObject({ status: 404 })
      const [unknown] = await http.events('/kafka/~unknown')
      expect(unknown?.bartleby).toMatchObject({ reasons: ['service_unknown'] })
      expect(await refusal('/kafka/~unknown', { method: 'POST' })).toMatchObject({
        status: 409,
        id: 'publishGuardError',
      })
      expect((await http.ask('/kafka/~unknown', { method: 'DELETE' })).statusCode).toBe(204)
      expect(await http.events('/kafka/~unknown')).toEqual([])
    })

    it('is of any service with a letter, where unlisted ones are accepted', async () => {
      http = await KafkaHttp.open(kind, { settings: { acceptUnlistedServices: true } })
      expect(await refusal('/kafka/newcomer')).toMatchObject({ status: 404, id: 'unknownServiceError' })
      await http.store.dead({ service: 'newcomer' })
      expect(await http.events('/kafka/newcomer')).toHaveLength(1)
      expect((await http.ask('/kafka/newcomer', { method: 'DELETE' })).statusCode).toBe(204)
      expect(await http.events('/kafka/newcomer')).toEqual([])
      expect(await refusal('/kafka/newcomer', { method: 'POST' })).toMatchObject({ id: 'emptyDLQError' })
    })
  })

  describe('a dry run', () => {
    it('shows what would be published, again and again, and writes nothing', async () => {
      const event = await http.store.dead({
        value: '{"n":12345678901234567890}',
        correlationId: CORRELATION_ID,
      })
      await http.store.dead()
      const before = [await http.store.events(), await http.store.history()]
      for (let i = 0; i < 2; i++) {
        const reply = await http.ask('/kafka/rpc/dry-run/wps')
        expect(reply.statusCode).toBe(200)
        expect(reply.body).toBe(
          '{"topic":"wps_retry","type_":"created","payload":{"n":12345678901234567890},"key":"k1",' +
            `"headers":{"original_topic":"orders","correlation_id":"${CORRELATION_ID}"}}`,
        )
        expect(reply.headers).toMatchObject({
          etag: `"${event.dlqId}"`,
          'bartleby-outcome': 'published',
          'bartleby-warnings': 'later_same_key',
        })
      }
      expect([await http.store.events(), await http.store.history()]).toEqual(before)
      expect(http.publisher.published).toEqual([])
      const detailed = (await http.ask('/kafka/rpc/dry-run/wps?detail=1')).json()
      expect(detailed.bartleby).toMatchObject({
        dlq_id: event.dlqId,
        state: 'pending',
        warnings: ['later_same_key'],
      })
    })

    it('refuses what processing would refuse', async () => {
      expect(await refusal('/kafka/rpc/dry-run/wps')).toMatchObject({
        status: 404,
        id: 'emptyDLQError',
        data: { service: 'wps' },
      })
      const { dlqId } = await http.store.dead({ key: null })
      expect(await refusal('/kafka/rpc/dry-run/wps')).toMatchObject({
        status: 409,
        id: 'publishGuardError',
        data: { dlq_id: dlqId, reasons: ['key_null'] },
      })
      expect((await http.ask('/kafka/rpc/dry-run/wps?resend=maybe')).json().detail).toEqual([
        {
          loc: ['query', 'resend'],
          msg: 'Input should be a valid boolean, unable to interpret input',
          type: 'bool_parsing',
          input: 'maybe',
        },
      ])
    })
  })

  describe('processing', () => {
    it('publishes the next event, and that one alone', async () => {
      const [first, second] = [await http.store.dead({ key: 'a' }), await http.store.dead({ key: 'b' })]
      const requestId = 'a5e2f3a8-0a3c-4b1e-9c43-a2a4a3c2d1e0'
      const reply = await http.ask('/kafka/wps', { method: 'POST', headers: { 'x-request-id': requestId } })
      expect([reply.statusCode, reply.body]).toEqual([204, ''])
      expect(reply.headers).toMatchObject({ 'bartleby-outcome': 'published', 'x-request-id': requestId })
      expect(reply.headers).not.toHaveProperty('content-length')
      expect(http.publisher.published).toMatchObject([{ topic: 'wps_retry', key: first.key }])
      expect(await ids('/kafka/wps?detail=true')).toEqual([second.dlqId])
      const done = (await http.store.history()).at(-1)
      expect(done).toMatchObject({ operation: 'kafka.published', actor: 'token#1' })
      expect(JSON.stringify(done?.output)).toContain(requestId)
      expect((await http.ask('/kafka/wps', { method: 'POST', body: '{ }' })).statusCode).toBe(204)
      expect(await refusal('/kafka/wps', { method: 'POST' })).toMatchObject({
        status: 404,
        id: 'emptyDLQError',
        data: { service: 'wps' },
      })
    })

    it('takes no body, so that nobody believes that it was used', async () => {
      await http.store.dead()
      for (const method of ['POST', 'DELETE'] as const)
        for (const body of ['{"override":null}', '[]', 'null', 'x', '{}{}', ' '.repeat(2_000)])
          expect(await refusal('/kafka/wps', { method, body })).toMatchObject({
            status: 400,
            id: 'unexpectedBodyError',
            data: {},
          })
      expect(http.publisher.published).toEqual([])
      expect(await http.events('/kafka/wps')).toHaveLength(1)
    })

    it('leaves every event but the one that If-Match names', async () => {
      const [first, second] = [await http.store.dead(), await http.store.dead()]
      for (const method of ['POST', 'DELETE'] as const) {
        const given = (condition: string) => ({ method, headers: { 'if-match': condition } })
        expect(await refusal('/kafka/wps', given(`"${second.dlqId}"`))).toMatchObject({
          status: 412,
          id: 'dlqSequenceError',
          data: {
            service: 'wps',
            topic: null,
            supplied_dlq_id: second.dlqId,
            expected_dlq_id: first.dlqId,
          },
        })
        for (const condition of [`"${NOBODY}"`, `W/"${first.dlqId}"`, first.dlqId, '"x"', '', 'a, b'])
          expect(await refusal('/kafka/wps', given(condition))).toMatchObject({
            status: 412,
            id: 'dlqSequenceError',
            data: { expected_dlq_id: first.dlqId },
          })
      }
      const wanted = { 'if-match': `"${first.dlqId.toUpperCase()}"` }
      expect((await http.ask('/kafka/wps', { method: 'POST', headers: wanted })).statusCode).toBe(204)
      expect(
        (await http.ask('/kafka/wps', { method: 'DELETE', headers: { 'if-match': '*' } })).statusCode,
      ).toBe(204)
      for (const condition of [`"${first.dlqId}"`, '"x"'])
        expect(
          await refusal('/kafka/wps', { method: 'DELETE', headers: { 'if-match': condition } }),
        ).toMatchObject({ status: 404, id: 'emptyDLQError', data: { service: 'wps' } })
    })

    it('says that Kafka is away, and when to come back', async () => {
      await http.store.dead()
      http.publisher.next({ outcome: 'failed', why: 'unavailable', message: 'no broker' })
      expect(await refusal('/kafka/wps', { method: 'POST' })).toEqual({
        status: 503,
        id: 'kafkaUnavailableError',
        data: {},
        retryAfter: '5',
      })
      expect((await http.ask('/kafka/wps', { method: 'POST' })).statusCode).toBe(204)
    })

    it('holds what nobody knows of, until the caller sends it again', async () => {
      const { dlqId } = await http.store.dead()
      http.publisher.next({ outcome: 'uncertain', message: 'no answer' })
      expect(await refusal('/kafka/wps', { method: 'POST' })).toMatchObject({ status: 503 })
      expect(await refusal('/kafka/wps', { method: 'POST' })).toMatchObject({
        status: 409,
        id: 'uncertainPublishError',
        data: { dlq_id: dlqId, event_id: expect.any(String) },
      })
      const [shown] = await http.events<{ bartleby: object }>('/kafka/wps?detail=yes')
      expect(shown?.bartleby).toMatchObject({ state: 'uncertain' })
      expect((await http.ask('/kafka/wps?resend=On', { method: 'POST' })).statusCode).toBe(204)
    })

    it('mints a correlation id where it is asked to', async () => {
      const event = await http.store.dead({ correlationId: 'none' })
      expect(await refusal('/kafka/wps', { method: 'POST' })).toMatchObject({
        id: 'publishGuardError',
        data: { reasons: ['correlation_id_invalid'] },
      })
      expect((await http.ask('/kafka/wps?mint_correlation_id=1', { method: 'POST' })).statusCode).toBe(204)
      const [record] = http.publisher.published
      expect(record?.headers.at(-1)).toEqual(header('correlation_id', event.facts.mintedCorrelationId))
    })

    it('is one after the other, each event once, however many ask', async () => {
      const events = []
      for (let i = 0; i < 5; i++) events.push(await http.store.dead({ key: `k${i}` }))
      const replies = await Promise.all(
        Array.from({ length: 12 }, () => http.ask('/kafka/wps', { method: 'POST' })),
      )
      const statuses = replies.map(({ statusCode }) => statusCode).sort()
      expect(statuses).toEqual([...Array(5).fill(204), ...Array(7).fill(404)])
      expect(http.publisher.published.map(({ key }) => key)).toEqual(events.map(({ key }) => key))
    })

    it('is busy for those who get no turn in time', async () => {
      http = await KafkaHttp.open(kind, { settings: { busyWaitMs: 50 } })
      const event = await http.store.dead()
      await http.store.publishing(event)
      for (const method of ['POST', 'DELETE'] as const)
        expect(await refusal('/kafka/wps', { method })).toEqual({
          status: 409,
          id: 'dlqBusyError',
          data: { service: 'wps', dlq_id: event.dlqId },
          retryAfter: '1',
        })
    })
  })

  describe('discarding', () => {
    it('resolves the next event without publishing it', async () => {
      const [first, second] = [await http.store.dead({ value: 'no JSON' }), await http.store.dead()]
      const reply = await http.ask('/kafka/wps', { method: 'DELETE' })
      expect([reply.statusCode, reply.body]).toEqual([204, ''])
      expect(await ids('/kafka/wps?detail=true')).toEqual([second.dlqId])
      expect((await http.store.letter(first)).status).toBe('Resolved')
      expect(http.publisher.published).toEqual([])
    })

    it('by id takes that event, wherever it stands, and says the same the second time', async () => {
      const [first, second] = [await http.store.dead(), await http.store.dead()]
      for (const id of [second.dlqId.toUpperCase(), second.dlqId, NOBODY])
        expect((await http.ask(`/kafka/${id}`, { method: 'DELETE' })).statusCode).toBe(204)
      expect(await ids('/kafka/wps?detail=true')).toEqual([first.dlqId])
      const reply = await http.ask('/kafka/00000000-0000-1000-8000-000000000000', { method: 'DELETE' })
      expect([reply.statusCode, reply.json()]).toEqual([
        422,
        {
          detail: [
            {
              loc: ['path', 'dlq_id'],
              msg: 'UUID version 4 expected',
              type: 'uuid_version',
              input: '00000000-0000-1000-8000-000000000000',
            },
          ],
        },
      ])
    })
  })
})
