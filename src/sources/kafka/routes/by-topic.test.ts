import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import vectors from '../../../../test/kafka/vectors.json' with { type: 'json' }
import { type Asked, KafkaHttp } from '../../../../test/world/kafka/http.ts'
import { SERVICES } from '../../../../test/world/kafka/settings.ts'
import { dlqIds } from '../../../../test/world/kafka/world.ts'
import { stores } from '../../../../test/world/stores.ts'
import { lastHeader, shownBytes } from '../wire/bytes.ts'
import { recordTime } from './views.ts'

const NOBODY = '00000000-0000-4000-8000-000000000000'
const { stored_event: STORED, publishable_event: PUBLISHABLE } = vectors.http

const DISCARDS = 'export default () => ({ action: "discard", reason: "not needed" })'

describe.each(stores)('the calls by service and topic, on $name', (kind) => {
  let http: KafkaHttp
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bartleby-processors-'))
    await writeFile(join(folder, 'discard.mjs'), DISCARDS)
    http = await KafkaHttp.open(kind, {
      settings: {
        previewLimit: 3,
        services: { ...SERVICES, svc: { dlqTopic: 'dlq' } },
        processors: [
          {
            match: { service: null, topic: null, type: ['unwanted'] },
            module: join(folder, 'discard.mjs'),
            export: 'default',
          },
        ],
      },
      http: { maxBodyBytes: 2_000_000 },
    })
  })
  afterEach(() => http.clear())
  afterAll(async () => {
    await http.close()
    await rm(folder, { recursive: true })
  })

  const process = (dlqId: string, override: object | string | null = null, query = '', topic = 'orders') => {
    const text = typeof override === 'string' ? override : JSON.stringify(override)
    const body = `{"dlq_id":"${dlqId}","override":${text}}`
    return http.ask(`/kafka/wps/${topic}${query}`, { method: 'POST', body })
  }
  const refusal = async (url: string, asked: Asked = {}) => {
    const { statusCode, body } = await http.ask(url, asked)
    const { exception_id: id, data, description } = JSON.parse(body)
    expect(description).toEqual(expect.any(String))
    return [statusCode, id, data]
  }

  it('show an event as the vectors have it, to the last member', async () => {
    await http.store.dead({
      topic: 'dlq',
      service: 'svc',
      value: '{"a": 1, "x": null}',
      timestampMs: 1_794_704_953_796,
      eventId: STORED.dlq_id,
      originalEventId: STORED.dlq_info.original_event_id,
      correlationId: STORED.headers.correlation_id,
    })
    const reply = await http.ask('/kafka/svc/orders')
    expect(reply.body).toBe(JSON.stringify([STORED]).replace('{"a":1,"x":null}', '{"a": 1, "x": null}'))
  })

  it('show what is published as the vectors have it, in a dry run and for real', async () => {
    const { dlqId } = await http.store.dead({ topic: 'dlq', service: 'svc', value: '{"a":1}' })
    const ask = (query: string) =>
      http.ask(`/kafka/svc/orders${query}`, { method: 'POST', body: { dlq_id: dlqId } })
    const before = await http.store.history()
    for (const word of ['true', 'TRUE', '1', 'yes', 'On']) {
      const reply = await ask(`?dry_run=${word}`)
      expect([reply.statusCode, reply.body]).toEqual([200, JSON.stringify(PUBLISHABLE)])
    }
    expect([await http.store.history(), http.publisher.published]).toEqual([before, []])
    const reply = await ask('?dry_run=No')
    expect([reply.statusCode, reply.body]).toEqual([200, JSON.stringify(PUBLISHABLE)])
    expect(reply.headers['bartleby-outcome']).toBe('published')
    expect(http.publisher.published).toHaveLength(1)
  })

  it('tell the time of a record', () => {
    for (const { ms, text } of vectors.http.timestamps) expect(recordTime(BigInt(ms))).toBe(text)
    expect(recordTime(-1n)).toBe('1969-12-31T23:59:59.999000Z')
    expect(recordTime(2n ** 63n - 1n)).toBe('9999-12-31T23:59:59.999000Z')
    expect(recordTime(-(2n ** 63n))).toBe('0001-01-01T00:00:00Z')
  })

  it('show what an odd event has, and nothing that it has not', async () => {
    await http.store.dead({
      correlationId: null,
      originalEventId: 'x',
      excClass: null,
      excMsg: null,
      type: null,
      originalTopic: null,
      key: null,
    })
    const [event] = await http.events('/kafka/wps/~unknown')
    expect(event).toMatchObject({
      headers: {},
      topic: '~unknown',
      type_: '',
      key: null,
      dlq_info: { service: 'wps', original_event_id: null, exc_class: '', exc_msg: '' },
      bartleby: { reasons: ['key_null', 'type_missing', 'original_topic_missing'] },
    })
  })

  it('preview from the place and as many as asked for, at most what the settings allow', async () => {
    const events = []
    for (let i = 0; i < 5; i++) events.push(await http.store.dead({ key: `k${i}` }))
    await http.store.dead({ originalTopic: 'users' })
    const ids = dlqIds(events)
    const shown = async (query: string) =>
      (await http.events<{ dlq_id: string }>(`/kafka/wps/orders${query}`)).map(({ dlq_id }) => dlq_id)
    expect(await shown('')).toEqual(ids.slice(0, 3))
    expect(await shown('?skip=0&limit=2')).toEqual(ids.slice(0, 2))
    expect(await shown('?skip=3')).toEqual(ids.slice(3))
    expect(await shown('?skip=4&limit=99999999999999999999')).toEqual(ids.slice(4))
    expect(await shown('?limit=0')).toEqual([])
    expect(await shown('?skip=99999999999999999999')).toEqual([])
    for (const url of ['/kafka/nobody/orders', '/kafka/wps/nothing', '/kafka/rpc/orders', '/kafka/w%00/%00'])
      expect(await http.events(url)).toEqual([])
    for (const [query, data] of [
      ['?skip=-1', { skip: -1, limit: 3 }],
      ['?skip=2&limit=-5', { skip: 2, limit: -5 }],
    ] as const)
      expect(await refusal(`/kafka/wps/orders${query}`)).toEqual([400, 'previewParamsError', data])
    const reply = await http.ask('/kafka/wps/orders?skip=x&limit=-1')
    expect([reply.statusCode, reply.json().detail[0].loc]).toEqual([422, ['query', 'skip']])
  })

  it('sum up what is unresolved', async () => {
    expect((await http.ask('/kafka/summary')).body).toBe('{}')
    await http.store.dead()
    await http.store.dead()
    await http.store.dead({ originalTopic: '__proto__' })
    await http.store.dead({ service: 'nobody', value: null })
    const { body } = await http.ask('/kafka/summary')
    expect(JSON.parse(body)).toEqual(JSON.parse('{"wps":{"orders":2,"__proto__":1},"~unknown":{"orders":1}}'))
  })

  it('process the oldest event of a topic, and no other', async () => {
    const [other, first, second] = [
      await http.store.dead({ originalTopic: 'users' }),
      await http.store.dead({ key: 'a' }),
      await http.store.dead({ key: 'b' }),
    ]
    const reply = await process(second.dlqId)
    expect([reply.statusCode, reply.json()]).toEqual([
      409,
      {
        description: expect.any(String),
        data: {
          service: 'wps',
          topic: 'orders',
          supplied_dlq_id: second.dlqId,
          expected_dlq_id: first.dlqId,
        },
        exception_id: 'dlqSequenceError',
      },
    ])
    expect((await process(other.dlqId)).statusCode).toBe(409)
    expect((await process(first.dlqId.toUpperCase())).statusCode).toBe(200)
    expect((await process(second.dlqId)).statusCode).toBe(200)
    expect((await process(other.dlqId, null, '', 'users')).statusCode).toBe(200)
    expect(http.publisher.published.map(({ key }) => shownBytes(key))).toEqual(['a', 'b', 'k1'])
    for (const url of [
      '/kafka/wps/orders',
      '/kafka/nobody/orders',
      '/kafka/w%00ps/orders',
      '/kafka/wps/%2F',
    ]) {
      const [service, topic] = url.split('/').slice(2).map(decodeURIComponent)
      const asked = { method: 'POST', body: { dlq_id: NOBODY } } as const
      expect(await refusal(url, asked)).toEqual([404, 'emptyDLQError', { service, topic }])
    }
  })

  it('publish an override to the last digit, under the correlation id of the letter', async () => {
    const event = await http.store.dead({ value: 'no JSON', key: null, type: null })
    const payload = '{"n":12345678901234567890,"f":1.0,"d":1,"d":2,"s":"ü"}'
    const override = `{"topic":"users","type_":"changed","key":"k2","payload":${payload},"more":1}`
    const dry = await process(event.dlqId, override, '?dry_run=true')
    const published = '{"n":12345678901234567890,"f":1.0,"d":1,"d":2,"s":"\\u00fc"}'
    const shown = `{"headers":{"original_topic":"users"},"topic":"wps_retry","type_":"changed","payload":${published},"key":"k2"`
    expect(dry.body.startsWith(`${shown},"bartleby":{`)).toBe(true)
    const reply = await process(event.dlqId, override)
    expect(reply.statusCode).toBe(200)
    expect(reply.body.startsWith(`${shown},"bartleby":{`)).toBe(true)
    expect(reply.json().bartleby).toMatchObject({ dlq_id: event.dlqId, state: 'published' })
    const [record] = http.publisher.published
    expect(shownBytes(record?.value ?? null)).toBe(published)
    expect(shownBytes(lastHeader(record?.headers ?? [], 'correlation_id') ?? null)).toBe(
      event.facts.correlationId,
    )
  })

  it('take an override of a mebibyte, byte for byte, and none that is beyond the limit of bodies', async () => {
    const { dlqId } = await http.store.dead()
    const payload = `{"text":"${'x'.repeat(1_000_000)}","n":1.0}`
    const override = (given: string) => `{"topic":"orders","type_":"created","key":"k","payload":${given}}`
    const huge = await process(dlqId, override(`{"text":"${'x'.repeat(2_000_000)}"}`))
    expect([huge.statusCode, huge.json().exception_id]).toEqual([413, 'bodyTooLargeError'])
    const reply = await process(dlqId, override(payload))
    expect(reply.statusCode).toBe(200)
    expect(reply.body.includes(payload)).toBe(true)
    expect(Buffer.from(http.publisher.published[0]?.value ?? []).toString() === payload).toBe(true)
  })

  it('refuse an override that the guard refuses, and show it as it was given', async () => {
    const { dlqId } = await http.store.dead()
    const override = '{"topic":"wps_retry","type_":"","payload":{"n":12345678901234567890},"key":"ü"}'
    const reply = await process(dlqId, override)
    expect(reply.statusCode).toBe(400)
    expect(reply.json()).toMatchObject({
      data: {
        reason: expect.any(String),
        reasons: expect.arrayContaining(['key_not_ascii', 'type_missing']),
      },
      exception_id: 'overrideValidationError',
    })
    expect(reply.body).toContain(`"event":${override},`)
    expect((await process(dlqId)).statusCode).toBe(200)
  })

  it('refuse bodies of another shape', async () => {
    const { dlqId } = await http.store.dead()
    for (const body of ['', '{}', 'x', '[]', `{"dlq_id":"${dlqId}","topic":"orders"}`]) {
      const reply = await http.ask('/kafka/wps/orders', { method: 'POST', body })
      expect(reply.statusCode).toBe(422)
      for (const fault of reply.json().detail)
        expect(fault).toEqual({
          loc: expect.arrayContaining(['body']),
          msg: expect.any(String),
          type: expect.any(String),
          input: fault.input,
        })
    }
    const reply = await http.ask('/kafka/wps/orders?dry_run=perhaps', {
      method: 'POST',
      body: { dlq_id: dlqId },
    })
    expect([reply.statusCode, reply.json().detail[0].type]).toEqual([422, 'bool_parsing'])
    expect(http.publisher.published).toEqual([])
  })

  it('say null, or nothing at all, of an event that its processor discards', async () => {
    const { dlqId } = await http.store.dead({ type: 'unwanted' })
    const dry = await http.ask('/kafka/rpc/dry-run/wps')
    expect([dry.statusCode, dry.body]).toEqual([200, ''])
    expect(dry.headers).toMatchObject({
      'content-length': '0',
      'bartleby-outcome': 'discarded',
      etag: `"${dlqId}"`,
    })
    for (const query of ['?dry_run=true', '']) {
      const reply = await process(dlqId, null, query)
      expect([reply.statusCode, reply.body]).toEqual([200, 'null'])
      expect(reply.headers['bartleby-outcome']).toBe('discarded')
    }
    await http.store.dead({ type: 'unwanted' })
    const reply = await http.ask('/kafka/wps', { method: 'POST' })
    expect([reply.statusCode, reply.headers['bartleby-outcome']]).toEqual([204, 'discarded'])
    expect(http.publisher.published).toEqual([])
  })

  it('let existing clients drain every queue', async () => {
    for (const originalTopic of ['orders', 'users', 'orders'])
      for (const [topic, service] of [
        ['wps_dlq', 'wps'],
        ['ucs_dlq', 'ucs'],
      ] as const)
        await http.store.dead({ topic, service, originalTopic })
    const summary = (await http.ask('/kafka/summary')).json<Record<string, Record<string, number>>>()
    expect(summary).toEqual({ wps: { orders: 2, users: 1 }, ucs: { orders: 2, users: 1 } })
    for (const [service, topics] of Object.entries(summary)) {
      for (const topic of Object.keys(topics)) {
        const url = `/kafka/${service}/${topic}`
        for (;;) {
          const [event] = await http.events<{ dlq_id: string }>(`${url}?limit=1`)
          if (event === undefined) break
          const body = { dlq_id: event.dlq_id, override: null }
          const reply = await http.ask(`${url}?dry_run=false`, { method: 'POST', body })
          expect(reply.statusCode).toBe(200)
        }
      }
    }
    expect((await http.ask('/kafka/summary')).json()).toEqual({})
    expect(http.publisher.published).toHaveLength(6)
  })

  it('work on the same queue as the calls by service', async () => {
    const [first, second, third] = [await http.store.dead(), await http.store.dead(), await http.store.dead()]
    expect((await process(first.dlqId)).statusCode).toBe(200)
    expect((await http.ask('/kafka/wps', { method: 'POST' })).statusCode).toBe(204)
    expect((await process(second.dlqId)).json().exception_id).toBe('dlqSequenceError')
    expect((await process(third.dlqId)).statusCode).toBe(200)
    await http.store.expectVerified()
  })
})
