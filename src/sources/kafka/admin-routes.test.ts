import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KafkaHttp } from '../../../test/world/kafka/http.ts'
import { header } from '../../../test/world/kafka/records.ts'
import { closeServers, scriptedServer } from '../../../test/world/scripted-server.ts'
import { stores } from '../../../test/world/stores.ts'

const NOBODY = '00000000-0000-4000-8000-000000000000'

const token = (name: string, role: 'viewer' | 'operator') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
})

describe.each(stores)('the office API of Kafka, on $name', (kind) => {
  let http: KafkaHttp

  beforeAll(async () => {
    http = await KafkaHttp.open(kind, {
      tokens: [token('look', 'viewer'), token('work', 'operator')],
    })
  })
  afterAll(() => http.close())

  const get = async (url: string) => {
    const reply = await http.ask(url, { token: 'look' })
    return { status: reply.statusCode, ...reply.json() }
  }

  it('shows the services and how intake stands', async () => {
    http.standing = {
      ...http.standing,
      state: 'degraded',
      troubles: ['broker-1:9092 does not answer'],
      missingTopics: ['ucs_dlq'],
      partitions: [{ topic: 'dlq', partition: 0, committed: 2n ** 60n, end: 2n ** 60n + 3n, trouble: null }],
    }
    const { data } = await get('/api/kafka')
    expect(data.services.map(({ name }: { name: string }) => name)).toEqual([
      'wps',
      'ucs',
      'dcs',
      'irs',
      'billing',
    ])
    expect(data.services[4]).toEqual({
      name: 'billing',
      dlqTopic: 'orders-dlt',
      retryTopic: '$original',
      profile: 'generic',
      aliases: [],
      originalTopics: ['orders'],
      types: [],
    })
    expect(data.intake).toEqual({
      state: 'degraded',
      sinceUtc: '2027-01-15T08:00:00.000000Z',
      troubles: ['broker-1:9092 does not answer'],
      missingTopics: ['ucs_dlq'],
      partitions: [
        {
          topic: 'dlq',
          partition: 0,
          committed: '1152921504606846976',
          end: '1152921504606846979',
          lag: '3',
          trouble: null,
        },
      ],
    })
    expect(JSON.stringify(data)).not.toContain(http.store.settings.tokenHashes[0])
  })

  it('shows an event with all its bytes, by each of its names', async () => {
    const value = Buffer.from([0xff, 0x00])
    const first = await http.store.dead({
      key: Buffer.from([0xfe]),
      value,
      more: [['x', Buffer.from([0xfd])]],
    })
    const minted = await http.store.publish(first, { partition: 1, offset: 2n })
    await http.store.dead({ originalEventId: minted, excMsg: 'again', value: '{"n": 1.0}' })
    const again = await http.store.again(first)
    for (const id of [first.dlqId, again.dlqId.toUpperCase()]) {
      const { data } = await get(`/api/kafka/events/${id}`)
      expect(data).toMatchObject({
        dlqId: again.dlqId,
        rowKey: again.rowKey,
        state: 'pending',
        service: 'wps',
        originalTopic: 'orders',
        type: 'created',
        key: 'k1',
        keyBase64: Buffer.from('k1').toString('base64'),
        valueBase64: Buffer.from('{"n": 1.0}').toString('base64'),
        valueForm: 'json',
        attempts: 2,
        exception: { class: 'ValueError', message: 'again' },
        chain: [
          { dlqId: first.dlqId, exception: { message: 'boom' }, sent: { eventId: minted, offset: '2' } },
        ],
      })
    }
    expect((await get(`/api/kafka/events/${NOBODY}`)).error.code).toBe('letter_unknown')
    expect((await get('/api/kafka/events/x')).error.code).toBe('letter_unknown')
  })

  it('gives headers as they are, in their order', async () => {
    const { dlqId } = await http.store.dead({
      headers: [header('service', 'wps'), header('x', null), header('x', Buffer.from([0xff]))],
    })
    expect((await get(`/api/kafka/events/${dlqId}`)).data.headers).toEqual([
      { name: 'service', value: 'wps', valueBase64: 'd3Bz' },
      { name: 'x', value: null, valueBase64: null },
      { name: 'x', value: 'base64:/w==', valueBase64: '/w==' },
    ])
  })

  it('gives the value of an event to be kept, byte for byte', async () => {
    const bytes = Buffer.from('<script>alert(1)</script>\xff', 'latin1')
    const first = await http.store.dead({ value: bytes })
    const minted = await http.store.publish(first)
    await http.store.dead({ originalEventId: minted, value: '' })
    const again = await http.store.again(first)
    const nothing = await http.store.dead({ value: null })
    const load = (id: string, given: string | null = 'look') =>
      http.ask(`/api/kafka/events/${id}/value`, { token: given })
    const reply = await load(first.dlqId)
    expect(reply.rawPayload.equals(bytes)).toBe(true)
    expect(reply.headers).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="${first.dlqId}.bin"`,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    const empty = await load(again.dlqId)
    expect([empty.statusCode, empty.body]).toEqual([200, ''])
    expect((await load(nothing.dlqId)).statusCode).toBe(204)
    expect((await load(NOBODY)).json()).toMatchObject({ status: 'Failed', error: { code: 'letter_unknown' } })
    expect((await load(first.dlqId, null)).statusCode).toBe(401)
  })

  it('gives an event to another service, for those who may', async () => {
    const event = await http.store.dead({ service: 'nobody' })
    const call = async (body: object, { id = event.dlqId as string, given = 'work' } = {}) => {
      const reply = await http.ask(`/api/kafka/events/${id}/reassign`, {
        method: 'POST',
        token: given,
        headers: { 'content-type': 'application/json', 'x-correlation-id': 'c-1' },
        body,
      })
      return { status: reply.statusCode, ...reply.json() }
    }
    const ucs = { service: 'ucs' }
    expect((await call(ucs, { given: 'look' })).error.code).toBe('role_insufficient')
    for (const body of [{}, { service: 'a b' }, { ...ucs, topic: '..' }, { ...ucs, more: 1 }])
      expect((await call(body)).error.code).toBe('parameter_invalid')
    expect((await call(ucs, { id: NOBODY })).error.code).toBe('letter_unknown')
    expect((await http.store.again(event)).service).toBe('~unknown')
    expect((await call({ ...ucs, topic: 'users' })).data).toEqual({
      dlqId: event.dlqId,
      rowKey: event.rowKey,
      state: 'pending',
      service: 'ucs',
      originalTopic: 'users',
    })
    expect((await http.store.again(event)).service).toBe('ucs')
    const done = (await http.store.history()).at(-1)
    expect(done).toMatchObject({ operation: 'kafka.reassigned', actor: 'work' })
    await http.store.publish(await http.store.again(event))
    expect((await call(ucs)).error.code).toBe('letter_status_wrong')
  })

  it('is in the metrics and in the health of the server', async () => {
    http.standing = { ...http.standing, state: 'degraded', missingTopics: ['ucs_dlq'] }
    const metrics = (await http.ask('/metrics', { token: 'look' })).body
    expect(metrics).toContain('bartleby_kafka_degraded 1\n')
    expect(metrics).toMatch(/^bartleby_kafka_letters_created_total\{topic="wps_dlq"\} \d+$/m)
    const health = await http.ask('/health', { token: null })
    expect([health.statusCode, health.json().status]).toEqual([200, 'warn'])
    expect(health.body).not.toContain('ucs_dlq')
    const ready = await http.ask('/health/ready', { token: null })
    expect([ready.statusCode, ready.json()]).toEqual([200, { status: 'pass', degraded: ['kafka'] }])
  })
})

describe('the office API of Kafka on a server that has none', () => {
  it('says so', async () => {
    const { app } = await scriptedServer()
    expect((await app.inject('/api/kafka')).json().data).toEqual({ enabled: false })
    for (const url of [`/api/kafka/events/${NOBODY}`, `/api/kafka/events/${NOBODY}/value`])
      expect((await app.inject(url)).json().error.code).toBe('kafka_not_enabled')
    expect((await app.inject('/health')).json().checks).not.toHaveProperty('kafka:intake')
    expect((await app.inject('/metrics')).body).not.toContain('bartleby_kafka')
    await closeServers()
  })
})
