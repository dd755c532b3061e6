/** Reading from and publishing to a broker that fails: killed, frozen, cut off, with broken files. The store is a double in memory. */
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { silentLog } from '../../src/core/log.ts'
import { SystemClock } from '../../src/core/system-clock.ts'
import { type Publisher, TopicProducer } from '../../src/outgoing/kafka/producer.ts'
import { Reader } from '../../src/sources/kafka/intake/reader.ts'
import { type KafkaBroker, startBroker } from '../world/kafka/broker.ts'
import { describeOwnBroker } from '../world/kafka/broker-of-run.ts'
import { MemoryStore, text } from '../world/kafka/memory-store.ts'
import { settingsAt } from '../world/kafka/settings.ts'
import { newName, type Topics, topicsAt } from '../world/kafka/topics.ts'
import { PATIENCE_MS, sizeOf } from '../world/limits.ts'
import { type Door, doorTo } from '../world/proxy.ts'

describeOwnBroker('a broker that fails', () => {
  let broker: KafkaBroker
  let gate: Door
  let kafka: Topics
  beforeAll(async () => {
    broker = await startBroker({
      advertise: async (port) => {
        gate = await doorTo(`kafka://127.0.0.1:${port}`)
        return gate.port
      },
    })
    kafka = topicsAt(broker.bootstrap)
  })
  afterAll(async () => {
    await broker?.dispose()
    await gate?.close()
  })

  afterEach(() => gate.open())

  const reading = async (
    topic: string,
    body: (reader: Reader, store: MemoryStore) => Promise<void>,
    more: { readonly groupId?: string } = {},
  ) => {
    const store = new MemoryStore()
    const settings = settingsAt(broker.bootstrap, { dlqTopics: [topic], ...more })
    const reader = new Reader({ settings, store, clock: new SystemClock(), log: silentLog })
    reader.start()
    try {
      await body(reader, store)
    } finally {
      await reader.stop()
    }
  }

  it('is waited for when it is away at the start, and read on after it was killed', async () => {
    const topic = await kafka.newTopic()
    await kafka.produce(topic, [{ value: '0' }])
    // A killed broker looks no different from behind the gate, and starting one takes seconds.
    gate.shut()
    await reading(topic, async (reader, store) => {
      await expect.poll(() => reader.status().state).toBe('degraded')
      gate.open()
      await expect.poll(() => store.values(topic)).toEqual(['0'])
      await expect.poll(() => reader.status().state).toBe('reading')
      await broker.kill()
      await expect.poll(() => reader.status().state).toBe('degraded')
      await broker.start()
      await kafka.produce(topic, [{ value: '1' }])
      await expect.poll(() => store.values(topic)).toEqual(['0', '1'])
      await expect.poll(() => reader.status()).toMatchObject({ state: 'reading', troubles: [] })
    })
  })

  it('is read up to a batch that is broken: nothing is skipped, and other partitions go on', async () => {
    const topic = await kafka.newTopic({ partitions: 2 })
    for (const value of ['0', '1', '2']) await kafka.produce(topic, [{ value, partition: 0 }])
    const file = join(broker.logFolder, `${topic}-0`, '00000000000000000000.log')
    const undo = await breakBatch(file, 1)
    await reading(topic, async (reader, store) => {
      await expect.poll(() => reader.status().partitions[0]?.trouble).toContain('its batch at offset 1')
      await kafka.produce(topic, [{ value: 'other', partition: 1 }])
      await expect.poll(() => store.values(topic)).toEqual(['0', 'other'])
      await expect
        .poll(() => reader.status())
        .toMatchObject({
          state: 'degraded',
          partitions: [{ committed: 1n }, { committed: 1n, trouble: null }],
        })
      await undo()
      await expect.poll(() => store.values(topic)).toEqual(['0', 'other', '1', '2'])
      expect(reader.status()).toMatchObject({ state: 'reading', troubles: [] })
    })
  })

  it('is read on behind a broken batch when its group is told to', async () => {
    const topic = await kafka.newTopic()
    for (const value of ['0', '1', '2']) await kafka.produce(topic, [{ value }])
    await breakBatch(join(broker.logFolder, `${topic}-0`, '00000000000000000000.log'), 1)
    const groupId = newName('group')
    await reading(
      topic,
      async (reader) => {
        await expect
          .poll(() => reader.status().partitions[0]?.trouble)
          .toContain('The next one begins at offset 2; docs/kafka.md says how to pass it.')
        await expect.poll(() => kafka.committedOffset(groupId, topic)).toBe(1n)
      },
      { groupId },
    )
    await kafka.commitOffset(groupId, topic, 2n)
    await reading(
      topic,
      async (reader, store) => {
        await expect.poll(() => store.values(topic)).toEqual(['2'])
        expect(reader.status()).toMatchObject({ state: 'reading', troubles: [] })
      },
      { groupId },
    )
  })

  it('is left within seconds, although it does not answer', async () => {
    const topic = await kafka.newTopic()
    await kafka.produce(topic, [{ value: '0' }])
    await reading(topic, async (reader, store) => {
      await expect.poll(() => store.size).toBe(1)
      await broker.freeze()
      try {
        const startedAt = performance.now()
        await reader.stop()
        expect(performance.now() - startedAt).toBeLessThan(sizeOf(PATIENCE_MS, 6_000))
      } finally {
        await broker.thaw()
      }
    })
  })

  const publishing = async (body: (publisher: Publisher) => Promise<void>) => {
    const settings = { ...settingsAt(broker.bootstrap), publishTimeoutMs: 2_000 }
    const publisher = new TopicProducer(settings, silentLog)
    try {
      await body(publisher)
    } finally {
      await publisher.close()
    }
  }

  it('writes a record once when its answer is lost, and says where', async () => {
    const topic = await kafka.newTopic()
    await publishing(async (publisher) => {
      await publisher.publish(record(topic, '0'))
      // The broker gets the request; what it answers goes nowhere.
      gate.deafen()
      const outcome = publisher.publish(record(topic, '1'))
      await expect.poll(() => kafka.endOffset(topic)).toBe(2n)
      gate.shut()
      gate.open()
      expect(await outcome).toEqual({ outcome: 'published', partition: 0, offset: 1n })
      expect(await publisher.publish(record(topic, '2'))).toMatchObject({ offset: 2n })
    })
  })

  it('leaves it uncertain what became of a record that it does not answer; a later one is written after it', async () => {
    const topic = await kafka.newTopic()
    await publishing(async (publisher) => {
      await publisher.publish(record(topic, '0'))
      await broker.freeze()
      expect(await publisher.publish(record(topic, '1'))).toMatchObject({ outcome: 'uncertain' })
      await broker.thaw()
      expect(await publisher.publish(record(topic, '2'))).toMatchObject({ outcome: 'published' })
      const values = (await kafka.readTopic(topic)).map(({ value }) => text(value)).join()
      expect(['0,1,2', '0,2']).toContain(values)
    })
  })

  it('certainly got nothing while nobody could reach it', async () => {
    const topic = await kafka.newTopic()
    gate.shut()
    try {
      await publishing(async (publisher) => {
        expect(await publisher.publish(record(topic, '0'))).toMatchObject({
          outcome: 'failed',
          why: 'unavailable',
        })
      })
    } finally {
      gate.open()
    }
    expect(await kafka.endOffset(topic)).toBe(0n)
  })
})

const record = (topic: string, value: string) => ({
  topic,
  key: Buffer.from('k'),
  value: Buffer.from(value),
  headers: [],
})

/** Flips a bit in the last byte of a batch; gives how to flip it back. */
async function breakBatch(path: string, number: number): Promise<() => Promise<void>> {
  const flip = async () => {
    const file = await open(path, 'r+')
    try {
      const head = Buffer.alloc(12)
      let at = 0
      for (let batch = 0; batch <= number; batch++) {
        await file.read(head, 0, head.length, at)
        at += head.length + head.readInt32BE(8)
      }
      const byte = Buffer.alloc(1)
      await file.read(byte, 0, 1, at - 1)
      byte.writeUInt8(byte.readUInt8() ^ 1)
      await file.write(byte, 0, 1, at - 1)
    } finally {
      await file.close()
    }
  }
  await flip()
  return flip
}
