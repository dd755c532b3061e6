/**
 * Reading from a real broker. The store is a double in memory with the same promises: the real one is tested on its own, and both
 * together in test/kafka.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { describeKafka, kafkaBroker } from '../../../../test/world/kafka/broker-of-run.ts'
import { MemoryStore, text } from '../../../../test/world/kafka/memory-store.ts'
import { settingsAt } from '../../../../test/world/kafka/settings.ts'
import { newName, type Topics } from '../../../../test/world/kafka/topics.ts'
import { PATIENCE_MS } from '../../../../test/world/limits.ts'
import { silentLog } from '../../../core/log.ts'
import { SystemClock } from '../../../core/system-clock.ts'
import type { RawRecord } from '../event.ts'
import type { KafkaSettings } from '../settings/settings.ts'
import type { Stored } from './partition-counts.ts'
import { Reader } from './reader.ts'

const running = new Set<Reader>()
afterEach(async () => {
  await Promise.all([...running].map((reader) => reader.stop()))
  running.clear()
})

function read(settings: KafkaSettings, store = new MemoryStore()) {
  const reader = new Reader({ settings, store, clock: new SystemClock(), log: silentLog })
  running.add(reader)
  reader.start()
  return { reader, store }
}

/** Lets go of records only when the next ones are prepared, as long as there are more. */
class PatientStore extends MemoryStore {
  readonly #all: number
  prepared = 0
  stored = 0
  storing = 0
  mostAtOnce = 0

  constructor(all: number) {
    super()
    this.#all = all
  }

  override prepare(records: readonly RawRecord[]): () => Promise<Stored> {
    this.prepared += 1
    return super.prepare(records)
  }

  override async store(records: readonly RawRecord[]): Promise<Stored> {
    this.storing += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.storing)
    const done = await super.store(records)
    while (this.size < this.#all && this.prepared <= this.stored + 1) await nextTurn()
    this.stored += 1
    this.storing -= 1
    return done
  }
}

const reads = (kafka: Topics, ...dlqTopics: readonly string[]) => settingsAt(kafka.bootstrap, { dlqTopics })
const numbered = (count: number, prefix = '') =>
  Array.from({ length: count }, (_, number) => ({ value: `${prefix}${number}` }))

describeKafka('intake', () => {
  it('stores records with all their bytes, and commits what it stored', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    await kafka.produce(topic, [
      {
        key: new Uint8Array([0xff, 0]),
        value: 'v',
        headers: [
          ['a', '1'],
          ['a', '2'],
          ['null', null],
          ['', ''],
        ],
        timestampMs: 1_700_000_000_000n,
      },
      { key: '', value: '', timestampMs: -1n },
      { key: null, value: null },
    ])
    const settings = reads(kafka, topic)
    const { reader, store } = read(settings)
    await expect.poll(() => store.size).toBe(3)
    const [first, empty, none] = store.records
    expect(first).toMatchObject({ topic, partition: 0, offset: 0n, timestampMs: 1_700_000_000_000n })
    expect(Buffer.from(first?.key ?? '').toString('hex')).toBe('ff00')
    expect(first?.headers.map(({ name, value }) => [text(name), text(value)])).toEqual([
      ['a', '1'],
      ['a', '2'],
      ['null', null],
      ['', ''],
    ])
    expect([empty?.key?.length, empty?.value?.length, empty?.timestampMs]).toEqual([0, 0, -1n])
    expect([none?.key, none?.value, none?.headers]).toEqual([null, null, []])
    await expect
      .poll(() => reader.status())
      .toMatchObject({ state: 'reading', troubles: [], partitions: [{ topic, committed: 3n, end: 3n }] })
    expect(await kafka.committedOffset(settings.groupId, topic)).toBe(3n)
    await reader.stop()
    expect(await kafka.members(settings.groupId)).toBe(0)
    expect(reader.status().state).toBe('stopped')
  })

  it('goes on where it stopped', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const settings = reads(kafka, topic)
    await kafka.produce(topic, numbered(3))
    const { reader, store } = read(settings)
    await expect.poll(() => store.size).toBe(3)
    await reader.stop()
    await kafka.produce(topic, [{ value: 'later' }])
    read(settings, store)
    await expect.poll(() => store.size).toBe(4)
    expect(store.received).toBe(4)
  })

  it('prepares records while those before them are being stored, and stores them one after the other', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const records = numbered(3_500)
    await kafka.produce(topic, records)
    const settings = reads(kafka, topic)
    const store = new PatientStore(records.length)
    read(settings, store)
    await expect.poll(() => store.size, { timeout: PATIENCE_MS }).toBe(records.length)
    expect(store.values(topic)).toEqual(records.map(({ value }) => value))
    expect([store.mostAtOnce, store.stored > 2]).toEqual([1, true])
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(BigInt(records.length))
  })

  it('reads all partitions, each in its order, and those that are added', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ partitions: 3 })
    const onThree = Array.from({ length: 3_000 }, (_, number) => ({
      value: `${number}`,
      partition: number % 3,
    }))
    await kafka.produce(topic, onThree)
    const { reader, store } = read(reads(kafka, topic))
    await expect.poll(() => store.size).toBe(3_000)
    for (const partition of [0, 1, 2]) {
      const offsets = store.records
        .filter((record) => record.partition === partition)
        .map(({ offset }) => offset)
      expect(offsets).toEqual(Array.from({ length: 1_000 }, (_, offset) => BigInt(offset)))
    }
    await kafka.addPartitions(topic, 5)
    await kafka.produce(topic, [{ value: 'new', partition: 4 }])
    await expect.poll(() => store.size).toBe(3_001)
    await expect
      .poll(() => reader.status().partitions.map(({ end, committed }) => [end, committed]))
      .toEqual([
        [1_000n, 1_000n],
        [1_000n, 1_000n],
        [1_000n, 1_000n],
        [0n, null],
        [1n, 1n],
      ])
    expect(store.received).toBe(3_001)
  })

  it('reads the others while a topic is missing, and that one when it comes', async () => {
    const kafka = await kafkaBroker()
    const there = await kafka.newTopic()
    const missing = newName()
    await kafka.produce(there, [{ value: 'a' }])
    const { reader, store } = read(reads(kafka, there, missing))
    await expect.poll(() => store.values(there)).toEqual(['a'])
    await expect
      .poll(() => reader.status())
      .toMatchObject({
        state: 'degraded',
        missingTopics: [missing],
        troubles: [`Topic ${missing} does not exist.`],
      })
    await kafka.newTopic({ name: missing })
    await kafka.produce(missing, [{ value: 'b' }])
    await expect.poll(() => store.values(missing)).toEqual(['b'])
    expect(reader.status()).toMatchObject({ state: 'reading', missingTopics: [], troubles: [] })
    expect(store.received).toBe(2)
  })

  it('begins at the start of a topic that was deleted and made anew', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const settings = reads(kafka, topic)
    await kafka.produce(topic, numbered(3, 'old'))
    const { reader, store } = read(settings)
    await expect.poll(() => store.size).toBe(3)
    await kafka.deleteTopic(topic)
    await kafka.newTopic({ name: topic })
    // More than before: the place where the old one was read up to is in the middle of the new one.
    await kafka.produce(topic, numbered(5, 'new'))
    await expect.poll(() => store.size).toBe(8)
    expect(store.values(topic).slice(3)).toEqual(['new0', 'new1', 'new2', 'new3', 'new4'])
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(5n)
    expect(reader.status().state).toBe('reading')
    expect(store.gaps).toEqual([])
  })

  it('takes gaps of compaction for what they are, and tombstones for records', async () => {
    const kafka = await kafkaBroker()
    const config = {
      'cleanup.policy': 'compact',
      'segment.ms': '50',
      'min.cleanable.dirty.ratio': '0.01',
      'min.compaction.lag.ms': '0',
    }
    const topic = await kafka.newTopic({ config })
    await kafka.produce(topic, [
      { key: 'a', value: '1' },
      { key: 'a', value: '2' },
      { key: 'b', value: '3' },
    ])
    await kafka.produce(topic, [{ key: 'a', value: null }])
    await expect
      .poll(
        async () => {
          // Only what is no longer written to is compacted.
          await kafka.produce(topic, [{ key: 'roll', value: 'roll' }])
          return (await kafka.readTopic(topic)).map(({ offset }) => offset).slice(0, 2)
        },
        { interval: 300 },
      )
      // A round that comes before the tombstone leaves the second record.
      .toEqual([2n, 3n])
    const settings = reads(kafka, topic)
    const { reader, store } = read(settings)
    await expect.poll(() => store.values(topic).slice(0, 2)).toEqual(['3', null])
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(await kafka.endOffset(topic))
    // Compaction goes on meanwhile: what was read may be more than what is there now, never less.
    const readOffsets = store.records.map(({ offset }) => offset)
    const offsetsLeft = (await kafka.readTopic(topic)).map(({ offset }) => offset)
    expect(readOffsets).toEqual(expect.arrayContaining(offsetsLeft))
    expect(store.gaps).toEqual([])
    expect(reader.status().state).toBe('reading')
  })

  it.each(['gzip', 'snappy', 'lz4', 'zstd'] as const)('reads batches in %s', async (compression) => {
    const kafka = await kafkaBroker()
    // Once as this library writes it, once as a broker does.
    const ours = await kafka.newTopic()
    const brokers = await kafka.newTopic({ config: { 'compression.type': compression } })
    const records = [{ value: 'a'.repeat(70_000) }, { key: 'k', value: 'b', headers: [['h', 'c'] as const] }]
    await kafka.produce(ours, records, { compression })
    await kafka.produce(brokers, records)
    const { store } = read(reads(kafka, ours, brokers))
    await expect.poll(() => store.size).toBe(4)
    for (const topic of [ours, brokers]) expect(store.values(topic)).toEqual(['a'.repeat(70_000), 'b'])
  })

  it('never sees what a transaction aborted, wherever its end lies', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const large = 'x'.repeat(40_000)
    await kafka.produce(topic, [{ value: 'before' }])
    await kafka.produce(topic, numbered(5, large), { transaction: 'abort' })
    await kafka.produce(topic, [{ value: 'after' }], { transaction: 'commit' })
    await kafka.produce(topic, numbered(2, large), { transaction: 'abort' })
    const settings = { ...reads(kafka, topic), fetchMaxBytes: 30_000 }
    const { reader, store } = read(settings)
    await expect.poll(() => store.values(topic)).toEqual(['before', 'after'])
    // The marks of the transactions count, although nothing came of them.
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(await kafka.endOffset(topic))
    const [partition] = reader.status().partitions
    expect(partition?.committed).toBe(partition?.end)
    expect(store.size).toBe(2)
  })

  it('takes the time of the broker where a topic says so', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ config: { 'message.timestamp.type': 'LogAppendTime' } })
    await kafka.produce(topic, [{ value: 'a', timestampMs: 1_000n }])
    const { store } = read(reads(kafka, topic))
    await expect.poll(() => store.size).toBe(1)
    expect(store.records[0]?.timestampMs).toBeGreaterThan(1_600_000_000_000n)
  })

  it('asks for a third of what it may have in memory: three answers are there at once', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    for (let i = 0; i < 30; i++) await kafka.produce(topic, [{ value: Buffer.alloc(1_000, 'x') }])
    const chunks: number[] = []
    class SizingStore extends MemoryStore {
      override prepare(records: readonly RawRecord[]): () => Promise<Stored> {
        chunks.push(records.reduce((bytes, { value }) => bytes + (value?.length ?? 0), 0))
        return super.prepare(records)
      }
    }
    const { store } = read({ ...reads(kafka, topic), fetchMaxBytes: 12_000 }, new SizingStore())
    await expect.poll(() => store.size).toBe(30)
    expect(Math.max(...chunks) * 3).toBeLessThanOrEqual(12_000)
    expect(Math.max(...chunks)).toBeGreaterThan(1_000)
  })

  it('takes records that are larger than what it asks for', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ config: { 'max.message.bytes': '12000000' } })
    await kafka.produce(topic, [{ value: 'small' }, { value: Buffer.alloc(10_485_760, 'x') }])
    await kafka.produce(topic, [{ value: 'last' }])
    const { store } = read({ ...reads(kafka, topic), fetchMaxBytes: 100_000 })
    await expect.poll(() => store.records.map(({ value }) => value?.length)).toEqual([5, 10_485_760, 4])
  })

  it('goes on with the first there is when records were deleted, and puts the gap on record', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const settings = reads(kafka, topic)
    await kafka.produce(topic, numbered(10))
    await kafka.commitOffset(settings.groupId, topic, 2n)
    await kafka.deleteRecords(topic, 0, 6n)
    const { store } = read(settings)
    await expect.poll(() => store.values(topic)).toEqual(['6', '7', '8', '9'])
    expect(store.gaps).toEqual([{ topic, partition: 0, expected: 2n, found: 6n }])
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(10n)
  })

  it('goes on with the first there is when the committed offset lies behind the end; nothing doubles', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const settings = reads(kafka, topic)
    await kafka.produce(topic, numbered(4))
    const { reader, store } = read(settings)
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(4n)
    await reader.stop()
    await kafka.commitOffset(settings.groupId, topic, 50n)
    read(settings, store)
    await expect.poll(() => store.gaps).toEqual([{ topic, partition: 0, expected: 50n, found: 0n }])
    await kafka.produce(topic, [{ value: 'next' }])
    await expect.poll(() => store.size).toBe(5)
    expect(store.values(topic)).toEqual(['0', '1', '2', '3', 'next'])
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(5n)
    expect(store.gaps).toHaveLength(1)
  })

  it('commits nothing while the store is away, and loses nothing', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const settings = reads(kafka, topic)
    await kafka.produce(topic, numbered(3))
    const store = new MemoryStore()
    store.isAway = true
    const { reader } = read(settings, store)
    await expect.poll(() => store.tries).toBeGreaterThan(1)
    expect(reader.status()).toMatchObject({ state: 'degraded', troubles: ['The store cannot be reached.'] })
    expect(await kafka.committedOffset(settings.groupId, topic)).toBeNull()
    store.isAway = false
    await expect.poll(() => store.values(topic)).toEqual(['0', '1', '2'])
    await expect.poll(() => kafka.committedOffset(settings.groupId, topic)).toBe(3n)
    expect(reader.status()).toMatchObject({ state: 'reading', troubles: [] })
  })

  it('shares the partitions with another reader of its group; each record is stored once', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic({ partitions: 4 })
    const settings = reads(kafka, topic)
    const spread = (prefix: string) =>
      Array.from({ length: 400 }, (_, number) => ({ value: `${prefix}${number}`, partition: number % 4 }))
    const store = new MemoryStore()
    await kafka.produce(topic, spread('a'))
    const { reader: one } = read(settings, store)
    await expect.poll(() => store.size).toBe(400)
    const { reader: two } = read(settings, store)
    await kafka.produce(topic, spread('b'))
    const shares = () => [one, two].map((reader) => reader.status().partitions.length)
    await expect.poll(shares).toEqual([2, 2])
    await kafka.produce(topic, spread('c'))
    await expect.poll(() => store.size).toBe(1_200)
    await one.stop()
    await kafka.produce(topic, spread('d'))
    await expect.poll(() => store.size).toBe(1_600)
    await expect.poll(shares).toEqual([2, 4])
    for (let partition = 0; partition < 4; partition++) {
      await expect.poll(() => kafka.committedOffset(settings.groupId, topic, partition)).toBe(400n)
    }
  })

  it('says what keeps it from reading when no broker answers', async () => {
    const { reader } = read(settingsAt('127.0.0.1:1', { dlqTopics: ['any'] }))
    await expect.poll(() => reader.status().state).toBe('degraded')
    expect(reader.status().troubles[0]).toContain('ECONNREFUSED')
  })
})
