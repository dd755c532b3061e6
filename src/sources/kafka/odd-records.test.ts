/** Records that no service can read, from their arrival to their way back. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { KafkaHttp } from '../../../test/world/kafka/http.ts'
import { SERVICES } from '../../../test/world/kafka/settings.ts'
import { stores } from '../../../test/world/stores.ts'
import type { StoredEvent } from './stored-event.ts'

const BINARY = Buffer.from([0, 255, 1, 254, 0x7b])

describe.each(stores)('on $name', (kind) => {
  let http: KafkaHttp
  beforeAll(async () => {
    const fixed = { dlqTopic: 'metrics-dlt', profile: 'generic', retryTopic: 'metrics' } as const
    const settings = { services: { ...SERVICES, metrics: fixed }, dlqTopics: ['misc'] }
    http = await KafkaHttp.open(kind, { settings })
  })
  afterAll(() => http?.close())
  afterEach(async () => {
    await http.clear()
    await http.store.expectVerified()
  })

  const reassign = ({ dlqId }: StoredEvent, body: object) =>
    http.ask(`/api/kafka/events/${dlqId}/reassign`, { method: 'POST', body })
  const process = async (service: string) => {
    const reply = await http.ask(`/kafka/${service}`, { method: 'POST' })
    return [reply.statusCode, reply.body === '' ? null : (reply.json().data?.reasons ?? reply.json())]
  }

  describe('a binary record of unknown origin', () => {
    const HOMES = [
      ['a topic of nobody', 'misc'],
      ['a topic that several services share', 'dlq'],
      ['a topic of another service', 'wps_dlq'],
      ['the topic of a service that sends events back to where they came from', 'orders-dlt'],
    ] as const
    const TARGETS = [
      ['metrics', { service: 'metrics' }, 'metrics'],
      ['orders', { service: 'billing', topic: 'orders' }, 'orders'],
    ] as const
    for (const [home, topic] of HOMES) {
      it.each(TARGETS)(`in ${home} is given the target %s, and sent as it is`, async (_name, to, target) => {
        const event = await http.store.dead({ topic, key: BINARY, value: BINARY, headers: [] })
        expect((await reassign(event, to)).statusCode).toBe(200)
        expect(await process(to.service)).toEqual([204, null])
        const [sent] = http.publisher.published
        expect(sent).toMatchObject({ topic: target, headers: [] })
        for (const bytes of [sent?.key, sent?.value]) expect(Buffer.from(bytes ?? [])).toEqual(BINARY)
      })
    }

    it('is not sent where its new service may not send', async () => {
      const event = await http.store.dead({ topic: 'misc', value: BINARY, headers: [] })
      await reassign(event, { service: 'billing', topic: 'payments' })
      expect(await process('billing')).toEqual([409, ['original_topic_not_allowed']])
      await reassign(event, { service: 'billing', topic: 'orders' })
      expect(await process('billing')).toEqual([204, null])
    })

    it('says what it needs when nobody gave it a target', async () => {
      const { dlqId } = await http.store.dead({ topic: 'misc', value: BINARY, headers: [] })
      const reply = await http.ask('/kafka/~unknown', { method: 'POST' })
      expect(reply.statusCode).toBe(409)
      expect(reply.json().description).toContain(`bartleby kafka reassign ${dlqId} SERVICE`)
    })
  })

  describe('a batch that grows too large when it is unpacked', () => {
    const packed = { compression: 'lz4', records: 7, mostBytes: 1_000 } as const
    const arrive = async (topic: string): Promise<StoredEvent> => {
      const record = { ...http.store.record({ topic, key: null, value: BINARY, headers: [] }), packed }
      await http.store.take(record)
      return http.store.eventAt(record)
    }

    it('is a letter that says so, and is never sent as it is', async () => {
      for (const [topic, service] of [
        ['wps_dlq', 'wps'],
        ['metrics-dlt', 'metrics'],
      ] as const) {
        const event = await arrive(topic)
        expect(await http.events(`/kafka/${service}`)).toMatchObject([
          { payload: null, bartleby: { dlq_id: event.dlqId, reasons: ['batch_too_large'] } },
        ])
        expect(await http.store.letter(event)).toMatchObject({
          errorClass: 'BatchTooLarge',
          errorMessage: expect.stringContaining('7 records, compressed with lz4, unpacks to more than 1000'),
        })
        expect(await process(service)).toEqual([409, ['batch_too_large']])
        const value = await http.ask(`/api/kafka/events/${event.dlqId}/value`)
        expect(value.rawPayload).toEqual(BINARY)
        await http.clear()
      }
    })

    it('stays what it is when it is given to another service', async () => {
      const event = await arrive('misc')
      expect(event.facts.reasons).toEqual(['batch_too_large', 'service_unknown'])
      await reassign(event, { service: 'metrics' })
      expect(await process('metrics')).toEqual([409, ['batch_too_large']])
    })

    it('can be answered with an event that somebody made of it', async () => {
      const { dlqId } = await arrive('wps_dlq')
      const override = { topic: 'orders', type_: 'created', key: 'k', payload: { n: 1 } }
      const reply = await http.ask('/kafka/wps/~unknown', {
        method: 'POST',
        body: { dlq_id: dlqId, override },
      })
      expect(reply.statusCode).toBe(200)
    })
  })
})
