/** Publishing to a real broker. What happens when brokers fail or forbid is in test/kafka. */
import { afterEach, expect, it } from 'vitest'
import { describeKafka, kafkaBroker } from '../../../test/world/kafka/broker-of-run.ts'
import { text } from '../../../test/world/kafka/memory-store.ts'
import { settingsAt } from '../../../test/world/kafka/settings.ts'
import { newName } from '../../../test/world/kafka/topics.ts'
import { silentLog } from '../../core/log.ts'
import { type ProducerSettings, TopicProducer } from './producer.ts'
import type { OutgoingRecord } from './record.ts'

const open: TopicProducer[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((publisher) => publisher.close()))
})

const publisherAt = (bootstrap: string, settings: Partial<ProducerSettings> = {}): TopicProducer => {
  const publisher = new TopicProducer({ ...settingsAt(bootstrap), ...settings }, silentLog)
  open.push(publisher)
  return publisher
}

const record = (topic: string, parts: Partial<OutgoingRecord> = {}): OutgoingRecord => ({
  topic,
  key: Buffer.from('k'),
  value: Buffer.from('v'),
  headers: [],
  ...parts,
})

describeKafka('publishing', () => {
  it('writes the bytes that it is given, and says where they are', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const publisher = publisherAt(kafka.bootstrap)
    const name = Buffer.from('h')
    const headers = [
      { name, value: Buffer.from('1') },
      { name, value: null },
      { name: Buffer.from([0xff]), value: Buffer.alloc(0) },
    ]
    expect(await publisher.publish(record(topic, { headers }))).toEqual({
      outcome: 'published',
      partition: 0,
      offset: 0n,
    })
    expect(
      await publisher.publish(record(topic, { key: Buffer.alloc(0), value: Buffer.alloc(0) })),
    ).toMatchObject({ offset: 1n })
    expect(await publisher.publish(record(topic, { key: null, value: null }))).toMatchObject({ offset: 2n })
    const [full, empty, none] = await kafka.readTopic(topic)
    expect([text(full?.key ?? null), text(full?.value ?? null)]).toEqual(['k', 'v'])
    expect(full?.headers.map(({ name, value }) => [Buffer.from(name).toString('hex'), text(value)])).toEqual([
      ['68', '1'],
      ['68', null],
      ['ff', ''],
    ])
    expect([empty?.key?.length, empty?.value?.length]).toEqual([0, 0])
    expect([none?.key, none?.value]).toEqual([null, null])
    expect(Number(full?.timestampMs)).toBeGreaterThan(1_700_000_000_000)
  })

  it('puts keys where Java puts them', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ partitions: 3 })
    const publisher = publisherAt(kafka.bootstrap)
    // By Java's murmur2: −973932308, −790332482, −985981536, 479470107; without the sign bit, modulo 3.
    const places = { '21': 0, foobar: 0, 'a-little-bit-long-string': 2, abc: 0 }
    for (const [key, partition] of Object.entries(places)) {
      expect(await publisher.publish(record(topic, { key: Buffer.from(key) }))).toMatchObject({ partition })
    }
  })

  it('keeps the order in which it was asked', async () => {
    const kafka = await kafkaBroker()
    const [one, two] = [await kafka.newTopic(), await kafka.newTopic()]
    const publisher = publisherAt(kafka.bootstrap)
    const numbers = Array.from({ length: 20 }, (_, number) => number)
    const outcomes = await Promise.all(
      numbers.map((number) =>
        publisher.publish(record(number % 2 ? one : two, { value: Buffer.from(`${number}`) })),
      ),
    )
    expect(outcomes.every(({ outcome }) => outcome === 'published')).toBe(true)
    for (const [topic, rest] of [
      [one, 1],
      [two, 0],
    ] as const) {
      const values = (await kafka.readTopic(topic)).map(({ value }) => Number(text(value)))
      expect(values).toEqual(numbers.filter((number) => number % 2 === rest))
    }
  })

  it('writes many at once, each partition in their order, and says where each of them is', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ partitions: 3 })
    const publisher = publisherAt(kafka.bootstrap)
    const records = Array.from({ length: 60 }, (_, number) =>
      record(topic, { key: Buffer.from(`k${number % 7}`), value: Buffer.from(`${number}`) }),
    )
    const outcomes = [
      ...(await publisher.publishAll(topic, records.slice(0, 40))),
      ...(await publisher.publishAll(topic, records.slice(40))),
    ]
    const found = new Map(
      (await kafka.readTopic(topic)).map(({ partition, offset, value }) => [
        `${partition}:${offset}`,
        text(value),
      ]),
    )
    const places = outcomes.map((one) =>
      one.outcome === 'published' ? `${one.partition}:${one.offset}` : one.outcome,
    )
    expect(found.size).toBe(60)
    expect(places.map((place) => found.get(place))).toEqual(records.map(({ value }) => text(value)))
    expect(await publisher.publishAll(topic, [])).toEqual([])
  })

  it('finds the one that is too large among many, and writes the others once', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ config: { 'max.message.bytes': '1000' } })
    const publisher = publisherAt(kafka.bootstrap)
    const sizes = [10, 2_000, 20, 30]
    const outcomes = await publisher.publishAll(
      topic,
      sizes.map((size) => record(topic, { value: Buffer.alloc(size) })),
    )
    expect(outcomes).toMatchObject([
      { offset: 0n },
      { outcome: 'failed', why: 'too_large', code: 'MESSAGE_TOO_LARGE' },
      { offset: 1n },
      { offset: 2n },
    ])
    expect((await kafka.readTopic(topic)).map(({ value }) => value?.length)).toEqual([10, 20, 30])
  })

  it.each(['gzip', 'snappy', 'lz4', 'zstd'] as const)('compresses with %s', async (compression) => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const value = Buffer.alloc(50_000, 'x')
    await publisherAt(kafka.bootstrap, { compression }).publish(record(topic, { value }))
    const [read] = await kafka.readTopic(topic)
    expect(Buffer.from(read?.value ?? '').equals(value)).toBe(true)
  })

  it('says so when there is no such topic, and makes none', async () => {
    const kafka = await kafkaBroker()
    const topic = newName()
    const publisher = publisherAt(kafka.bootstrap)
    expect(await publisher.publish(record(topic))).toMatchObject({ outcome: 'failed', why: 'topic_missing' })
    expect(await publisher.publish(record(topic))).toMatchObject({ outcome: 'failed', why: 'topic_missing' })
    await kafka.newTopic({ name: topic })
    expect(await publisher.publish(record(topic))).toMatchObject({ outcome: 'published', offset: 0n })
  })

  it('says so when a record is too large, and goes on with others', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ config: { 'max.message.bytes': '1000' } })
    const publisher = publisherAt(kafka.bootstrap)
    expect(await publisher.publish(record(topic))).toMatchObject({ offset: 0n })
    const large = record(topic, { value: Buffer.alloc(2_000) })
    expect(await publisher.publish(large)).toMatchObject({ outcome: 'failed', why: 'too_large' })
    expect(await publisher.publish(record(topic))).toMatchObject({ offset: 1n })
  })

  it('is sure that nothing was sent when no broker can be reached', async () => {
    expect(await publisherAt('127.0.0.1:1').publish(record('any'))).toMatchObject({
      outcome: 'failed',
      why: 'unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('gives up what waits when it is closed', async () => {
    const publisher = publisherAt('127.0.0.1:1')
    const outcome = publisher.publish(record('any'))
    await publisher.close()
    expect(await outcome).toMatchObject({ outcome: 'failed', why: 'unavailable' })
  })
})
