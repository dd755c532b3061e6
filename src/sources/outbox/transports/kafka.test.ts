import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { describeKafka, describeOwnBroker, kafkaBroker } from '../../../../test/world/kafka/broker-of-run.ts'
import { type SecureBroker, startSecureBroker } from '../../../../test/world/kafka/secure.ts'
import { newName, type Topics, topicsAt } from '../../../../test/world/kafka/topics.ts'
import { OutboxStore } from '../../../../test/world/outbox.ts'
import { message } from '../../../../test/world/outbox-message.ts'
import { stores } from '../../../../test/world/stores.ts'
import { PermanentError } from '../../../core/thrown.ts'
import { Office } from '../../../office.ts'
import type { RawRecord } from '../../kafka/event.ts'
import { createDispatcher } from '../dispatcher/create-dispatcher.ts'
import { KafkaDeliveryFailed, type KafkaTransportOptions, kafkaTransport } from './kafka.ts'
import type { Transport } from './transport.ts'

const NEVER = new AbortController().signal

const open: Transport[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((transport) => transport.close?.()))
})

const to = (options: KafkaTransportOptions): Transport => {
  const transport = kafkaTransport(options)
  open.push(transport)
  return transport
}

/** What a delivery throws, or `nothing`. */
const thrownBy = (delivery: Promise<void>): Promise<unknown> =>
  delivery.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )

const openShop = (): Promise<OutboxStore> => {
  const kind = stores.find(({ name }) => name === 'sqlite')
  if (kind === undefined) throw new Error('there is always SQLite')
  return OutboxStore.open(kind)
}

const text = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? '').toString()
const headersOf = ({ headers }: RawRecord): Record<string, string> =>
  Object.fromEntries(headers.map(({ name, value }) => [text(name), text(value)]))

describe('the Kafka transport', () => {
  it.each<readonly [option: string, options: object]>([
    ['topic', {}],
    ['topic', { topic: 'no topic' }],
    ['topic', { topic: 7 }],
    ['compression', { topic: 't', compression: 'zip' }],
    ['servers', { topic: 't', servers: undefined }],
    ['servers', { topic: 't', servers: [] }],
    ['servers[1]', { topic: 't', servers: ['a:1', 'a'] }],
    ['server', { topic: 't', server: 'a:1' }],
    ['client_id', { topic: 't', client_id: '' }],
    ['security_protocol', { topic: 't', security_protocol: 'TLS' }],
    ['ssl_check_hostname', { topic: 't', security_protocol: 'SSL', ssl_check_hostname: 'no' }],
    ['ssl_cafile', { topic: 't', security_protocol: 'SSL', ssl_cafile: '/nowhere/ca.pem' }],
    ['sasl_password', { topic: 't', sasl_password: 'hunter2' }],
    ['sasl_password', { topic: 't', sasl_password: ['hunter2'] }],
  ])('refuses options by name: %s (%#)', (option, options) => {
    const making = () => kafkaTransport({ servers: ['a:1'], ...options } as unknown as KafkaTransportOptions)
    expect(making).toThrow(expect.objectContaining({ code: 'outbox_option_invalid' }))
    try {
      making()
    } catch (error) {
      expect(error).toMatchObject({ details: { option } })
      expect(String(error)).not.toContain('hunter')
    }
  })

  it('fails for the time being where nobody answers', async () => {
    const transport = to({ topic: 't', servers: ['127.0.0.1:1'] })
    const thrown = await thrownBy(transport.deliver(message(), NEVER))
    expect(thrown).toBeInstanceOf(KafkaDeliveryFailed)
    expect(String(thrown)).toContain('ECONNREFUSED')
  })

  it('is given up as soon as that is asked for, and closes with work under way', async () => {
    const transport = to({ topic: 't', servers: ['127.0.0.1:1'] })
    const ends = new AbortController()
    const delivery = thrownBy(transport.deliver(message(), ends.signal))
    ends.abort(new Error('enough'))
    expect(String(await delivery)).toBe('Error: enough')
    const begun = thrownBy(transport.deliver(message(), NEVER))
    await transport.close?.()
    expect(await begun).toBeInstanceOf(KafkaDeliveryFailed)
    expect(String(await thrownBy(transport.deliver(message(), NEVER)))).toContain('the transport was closed')
  })
})

describeKafka('messages delivered to Kafka', () => {
  let kafka: Topics
  const topicFor = async (options: Parameters<Topics['newTopic']>[0] = {}) => {
    kafka = await kafkaBroker()
    const topic = await kafka.newTopic(options)
    return { topic, servers: [kafka.bootstrap] }
  }

  it('are records with the payload, a key and what is known of them', async () => {
    const target = await topicFor()
    const transport = to(target)
    const payload = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    await transport.deliver(
      message({
        payload: new Uint8Array([9, 9, ...payload, 9]).subarray(2, 258),
        orderingKey: 'order-42',
        tenantId: 'Bücher\r\n',
        correlationId: 'c-1',
        headers: { TraceParent: '00-ab', 'Tenant-Id': 'forged', 'event-type': 'forged' },
      }),
      NEVER,
    )
    await transport.deliver(message({ payload: new Uint8Array(0) }), NEVER)
    const [first, second, ...more] = await kafka.readTopic(target.topic)
    if (first === undefined || second === undefined) throw new Error('nothing arrived')
    expect(more).toEqual([])
    expect(text(first.key)).toBe('order-42')
    expect(first.value && Buffer.from(first.value)).toEqual(Buffer.from(payload))
    expect(headersOf(first)).toEqual({
      'idempotency-key': 'ba73d97a-5b6f-e712-ae41-f39ca66495e4',
      'event-type': 'order.created',
      'tenant-id': 'Bücher\r\n',
      'correlation-id': 'c-1',
      TraceParent: '00-ab',
    })
    expect(text(second.key)).toBe('ba73d97a-5b6f-e712-ae41-f39ca66495e4')
    expect(second.value).toHaveLength(0)
    expect(headersOf(second)).not.toHaveProperty('correlation-id')
  })

  it('go to the partitions that Java chooses for their keys', async () => {
    const vectors = new URL('../../../../test/kafka/vectors.json', import.meta.url)
    // As the file has it.
    const { cases } = (
      JSON.parse(readFileSync(vectors, 'utf8')) as {
        partitioner: { cases: readonly { key: string; partition: number }[] }
      }
    ).partitioner
    const keys = cases.map(({ key, partition }) => ({
      key: Buffer.from(key, 'base64').toString(),
      partition,
    }))
    const target = await topicFor({ partitions: 3 })
    const transport = to(target)
    await Promise.all(keys.map(({ key }) => transport.deliver(message({ orderingKey: key }), NEVER)))
    const found = await kafka.readTopic(target.topic)
    for (const { key, partition } of keys) {
      expect(found.find((record) => text(record.key) === key)?.partition).toBe(partition)
    }
  })

  it('that are too large are refused for good, and hold up no others', async () => {
    const target = await topicFor({ config: { 'max.message.bytes': '20000' } })
    const transport = to(target)
    const payloads = [10, 30_000, 20, 15_000, 15_001].map((size) => Buffer.alloc(size, 'x'))
    const outcomes = await Promise.all(
      payloads.map((payload) => thrownBy(transport.deliver(message({ payload }), NEVER))),
    )
    expect(outcomes.map((outcome) => outcome === 'nothing')).toEqual([true, false, true, true, true])
    expect(outcomes[1]).toBeInstanceOf(PermanentError)
    expect(String(outcomes[1])).toContain('MESSAGE_TOO_LARGE')
    expect(String(outcomes[1])).not.toContain('xxx')
    const sizes = (await kafka.readTopic(target.topic)).map(({ value }) => value?.length)
    expect(sizes).toEqual([10, 20, 15_000, 15_001])
  })

  it('wait for a topic that does not exist', async () => {
    kafka = await kafkaBroker()
    const topic = newName()
    const transport = to({ topic, servers: [kafka.bootstrap] })
    const thrown = await thrownBy(transport.deliver(message(), NEVER))
    expect(thrown).toBeInstanceOf(KafkaDeliveryFailed)
    expect(String(thrown)).toContain('Unknown topic')
    await kafka.newTopic({ name: topic })
    await transport.deliver(message(), NEVER)
    expect(await kafka.readTopic(topic)).toHaveLength(1)
  })

  it.each(['gzip', 'zstd'] as const)('may be compressed: %s', async (compression) => {
    const target = await topicFor()
    await to({ ...target, compression }).deliver(message({ payload: Buffer.alloc(5_000, 'x') }), NEVER)
    expect((await kafka.readTopic(target.topic))[0]?.value).toHaveLength(5_000)
  })

  it('are gathered, and keep the order of their lines', async () => {
    const target = await topicFor({ partitions: 3 })
    const shop = await openShop()
    try {
      for (let i = 0; i < 300; i++) await shop.insert({ line: `line-${i % 5}`, payload: String(i) })
      const dispatcher = createDispatcher({
        url: shop.url,
        transport: kafkaTransport(target),
        concurrency: 50,
      })
      await dispatcher.drain()
      await dispatcher.stop()
    } finally {
      await shop.close()
    }
    const records = await kafka.readTopic(target.topic)
    expect(records).toHaveLength(300)
    for (let line = 0; line < 5; line++) {
      const numbers = records
        .filter(({ key }) => text(key) === `line-${line}`)
        .map(({ value }) => Number(text(value)))
      expect(numbers).toEqual(Array.from({ length: 60 }, (_, i) => i * 5 + line))
    }
  })

  it('leave an office that has such an outbox', async () => {
    const target = await topicFor()
    const shop = await openShop()
    const office = await Office.open({
      store: 'sqlite::memory:',
      outbox: [{ name: 'shop', url: shop.url, transport: { type: 'kafka', ...target } }],
    })
    try {
      await shop.insert({ payload: '{"a":1}' })
      await expect
        .poll(async () => (await kafka.readTopic(target.topic)).map(({ value }) => text(value)))
        .toEqual(['{"a":1}'])
    } finally {
      await office.close()
      await shop.close()
    }
  })
})

describe('an office with an outbox to Kafka', () => {
  it.each([
    ['servers', 'kafka:orders'],
    ['sasl_username', { type: 'kafka', topic: 'orders', sasl_username: 'me' }],
    ['topic', { type: 'kafka', servers: ['a:1'] }],
  ] as const)('is refused with what is wrong: %s', async (option, transport) => {
    const opening = Office.open({ store: 'sqlite::memory:', outbox: [{ name: 'shop', transport }] })
    await expect(opening).rejects.toMatchObject({
      code: 'outbox_option_invalid',
      details: { option: `outbox 'shop': transport.${option}` },
    })
  })
})

describeOwnBroker('a broker that does not take messages', () => {
  let broker: SecureBroker
  beforeAll(async () => {
    broker = await startSecureBroker()
  })
  afterAll(() => broker.dispose())

  it('says which right is missing, and takes them once it is given', async () => {
    const kafka = topicsAt(broker.bootstrap)
    const topic = await kafka.newTopic()
    const transport = to({
      topic,
      servers: [broker.secured],
      security_protocol: 'SASL_SSL',
      ssl_cafile: broker.caFile,
      sasl_mechanism: 'SCRAM-SHA-512',
      sasl_username: broker.username,
      sasl_password: broker.password,
    })
    const refused = await thrownBy(transport.deliver(message(), NEVER))
    expect(refused).toBeInstanceOf(PermanentError)
    expect(String(refused)).toMatch(/AUTHORIZATION_FAILED.* needs Write and Describe on the topic /)
    await broker.grant(
      { resource: 'topic', name: topic, operation: 'describe' },
      { resource: 'topic', name: topic, operation: 'write' },
    )
    await expect.poll(() => thrownBy(transport.deliver(message(), NEVER))).toBe('nothing')
    expect(await kafka.readTopic(topic)).toHaveLength(1)
  })

  it('is given up when it does not answer, and used again when it does', async () => {
    const kafka = topicsAt(broker.bootstrap)
    const topic = await kafka.newTopic()
    const transport = to({ topic, servers: [broker.bootstrap] })
    await transport.deliver(message({ orderingKey: '1' }), NEVER)
    await broker.freeze()
    try {
      const late = await thrownBy(transport.deliver(message({ orderingKey: '2' }), AbortSignal.timeout(200)))
      expect(String(late)).toContain('TimeoutError')
      const closing = to({ topic, servers: [broker.bootstrap] })
      const begun = thrownBy(closing.deliver(message(), NEVER))
      await closing.close?.()
      expect(await begun).toBeInstanceOf(KafkaDeliveryFailed)
    } finally {
      await broker.thaw()
    }
    await transport.deliver(message({ orderingKey: '3' }), NEVER)
    expect((await kafka.readTopic(topic)).map(({ key }) => text(key))).toContain('3')
  })
})
