import { expect, it } from 'vitest'
import { describeKafka, kafkaBroker } from '../world/kafka/broker-of-run.ts'
import { newName } from '../world/kafka/topics.ts'

const utf8 = (bytes: Uint8Array | null) => (bytes === null ? null : Buffer.from(bytes).toString())

describeKafka('the broker of the test run', () => {
  it('is one for all', async () => {
    expect((await kafkaBroker()).bootstrap).toBe((await kafkaBroker()).bootstrap)
  })

  it('gives back the bytes that were written, null and empty apart, headers in order and repeated', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ partitions: 2 })
    const odd = new Uint8Array([0xff, 0x00, 0xfe])
    const places = await kafka.produce(topic, [
      { key: 'k', value: odd, headers: [['h', '1'], ['h', null], [odd, '']], timestampMs: 5n, partition: 1 }, // biome-ignore format: one record
      { key: '', value: '', partition: 1 },
      { key: null, value: null, timestampMs: -1n, partition: 0 },
    ])
    expect(places).toEqual([
      { partition: 1, offset: 0n },
      { partition: 1, offset: 1n },
      { partition: 0, offset: 0n },
    ])
    const [bare, first, empty] = await kafka.readTopic(topic)
    expect(bare).toMatchObject({ topic, partition: 0, key: null, value: null, headers: [], timestampMs: -1n })
    expect(empty).toMatchObject({ partition: 1, offset: 1n, headers: [] })
    expect([empty?.key?.length, empty?.value?.length]).toEqual([0, 0])
    expect(first).toMatchObject({ partition: 1, offset: 0n, timestampMs: 5n })
    expect(Buffer.from(first?.value ?? [])).toEqual(Buffer.from(odd))
    expect(first?.headers.map(({ name, value }) => [Buffer.from(name).toString('hex'), utf8(value)])).toEqual(
      [
        ['68', '1'],
        ['68', null],
        ['ff00fe', ''],
      ],
    )
  })

  it.each(['gzip', 'snappy', 'lz4', 'zstd'] as const)('writes %s', async (compression) => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    await kafka.produce(topic, [{ value: 'a'.repeat(5_000) }, { value: 'b' }], { compression })
    expect((await kafka.readTopic(topic)).map(({ value }) => value?.length)).toEqual([5_000, 1])
  })

  it('aborts transactions, deletes records, adds partitions and moves offsets', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const group = newName('group')
    await kafka.produce(topic, [{ value: '0' }, { value: '1' }])
    await kafka.produce(topic, [{ value: 'never' }], { transaction: 'abort' })
    await kafka.produce(topic, [{ value: 'yes' }], { transaction: 'commit' })
    const values = async () => (await kafka.readTopic(topic)).map(({ value }) => utf8(value))
    // A transaction that was committed is seen a moment later.
    await expect.poll(values).toEqual(['0', '1', 'yes'])
    await kafka.deleteRecords(topic, 0, 1n)
    expect(await values()).toEqual(['1', 'yes'])
    await kafka.addPartitions(topic, 3)
    expect(await kafka.committedOffset(group, topic)).toBeNull()
    await kafka.commitOffset(group, topic, 77n, 2)
    expect(await kafka.committedOffset(group, topic, 2)).toBe(77n)
    expect(await kafka.endOffset(topic)).toBe(6n)
    await kafka.deleteTopic(topic)
    await kafka.newTopic({ name: topic })
    expect(await kafka.readTopic(topic)).toEqual([])
  })
})
