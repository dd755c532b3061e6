/** What tests do with a broker: make topics, write exact bytes, read them back, move offsets. Nothing of the product is used. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Admin,
  type CompressionAlgorithmValue,
  Consumer,
  compatibilityPartitioner,
  ListOffsetTimestamps,
  type MessageToProduce,
  Producer,
} from '@platformatic/kafka'
import type { RawHeader } from '../../../src/outgoing/kafka/record.ts'
import type { RawRecord } from '../../../src/sources/kafka/event.ts'

/** Bytes as tests like to write them: a text stands for its UTF-8. */
export type Bytes = string | Uint8Array

/** A record to write. Left out: null for key and value, none for headers, now for the time. */
export interface TestRecord {
  readonly key?: Bytes | null
  readonly value?: Bytes | null
  /** In this order; names may repeat. */
  readonly headers?: readonly (readonly [name: Bytes, value: Bytes | null])[]
  readonly timestampMs?: bigint
  /** Left out: by the key as Java does it, and 0 without key. */
  readonly partition?: number
}

export interface ProduceOptions {
  readonly compression?: CompressionAlgorithmValue
  /** Writes the records in a transaction and ends it so, or leaves it open. */
  readonly transaction?: 'commit' | 'abort'
}

export interface Place {
  readonly partition: number
  readonly offset: bigint
}

export interface TopicOptions {
  /** Left out: a name that no other topic has. */
  readonly name?: string
  readonly partitions?: number
  readonly config?: Readonly<Record<string, string>>
}

/** The same calls on whichever broker. */
export interface Topics {
  readonly bootstrap: string
  /** Makes a topic that can be used at once; gives its name. */
  newTopic(options?: TopicOptions): Promise<string>
  /** Deletes a topic; it is gone, with the offsets that groups committed, when this returns. */
  deleteTopic(topic: string): Promise<void>
  /** Gives the topic this many partitions in all. */
  addPartitions(topic: string, total: number): Promise<void>
  /** Writes records with exactly these bytes; gives where each one is. */
  produce(topic: string, records: readonly TestRecord[], options?: ProduceOptions): Promise<readonly Place[]>
  /** All records that a consumer with `read_committed` sees, by partition and offset. */
  readTopic(topic: string): Promise<readonly RawRecord[]>
  /** Throws away what lies before the offset. */
  deleteRecords(topic: string, partition: number, before: bigint): Promise<void>
  /** The offset behind the last record. */
  endOffset(topic: string, partition?: number): Promise<bigint>
  /** Sets the offset that a group without members reads next. */
  commitOffset(group: string, topic: string, offset: bigint, partition?: number): Promise<void>
  /** What a group committed; null when it has nothing there. */
  committedOffset(group: string, topic: string, partition?: number): Promise<bigint | null>
  /** How many members a group has. */
  members(group: string): Promise<number>
}

/** A name that nothing else has. */
export const newName = (kind = 'topic'): string => `${kind}-${randomBytes(6).toString('hex')}`

/** The calls on the broker at `bootstrap`, which needs no credentials. */
export function topicsAt(bootstrap: string): Topics {
  const options = { clientId: 'bartleby-tests', bootstrapBrokers: [bootstrap], retries: 5, retryDelay: 200 }
  const withAdmin = <T>(use: (admin: Admin) => Promise<T>) => using(new Admin(options), use)

  const partitionsOf = (admin: Admin, topic: string) =>
    admin.metadata({ topics: [topic], forceUpdate: true }).then(
      ({ topics }) => topics.get(topic)?.partitions ?? [],
      () => [],
    )

  /** A broker learns of changes a moment after it has agreed to them. */
  const until = async (isDone: () => Promise<boolean>): Promise<void> => {
    for (let tries = 0; !(await isDone()); tries++) {
      if (tries === 200) throw new Error('the broker did not do in ten seconds what it had agreed to')
      await sleep(50)
    }
  }

  const hasPartitions = (admin: Admin, topic: string, count: number) =>
    until(async () => {
      const partitions = await partitionsOf(admin, topic)
      return partitions.length === count && partitions.every(({ leader }) => leader >= 0)
    })

  return {
    bootstrap,

    newTopic: ({ name = newName(), partitions = 1, config = {} } = {}) =>
      withAdmin(async (admin) => {
        const configs = Object.entries(config).map(([name, value]) => ({ name, value }))
        // A broker that was frozen has no place for replicas until its controller counts it in again.
        for (let tries = 0; ; tries++) {
          try {
            await admin.createTopics({ topics: [name], partitions, replicas: 1, configs })
            break
          } catch (error) {
            if (tries === 50) throw error
            await sleep(100)
          }
        }
        await hasPartitions(admin, name, partitions)
        return name
      }),

    deleteTopic: (topic) =>
      withAdmin(async (admin) => {
        await admin.deleteTopics({ topics: [topic] })
        await until(async () => !(await admin.listTopics()).includes(topic))
      }),

    addPartitions: (topic, total) =>
      withAdmin(async (admin) => {
        await admin.createPartitions({ topics: [{ name: topic, count: total, assignments: null }] })
        await hasPartitions(admin, topic, total)
      }),

    produce: (topic, records, { compression = 'none', transaction } = {}) =>
      using(
        new Producer({
          ...options,
          acks: -1,
          // A request that is sent again must not write twice what was written.
          idempotent: true,
          ...(transaction === undefined ? {} : { transactionalId: newName('tx') }),
        }),
        async (producer) => {
          const begun = transaction === undefined ? null : await producer.beginTransaction()
          const places: Place[] = []
          for (const messages of sameTimes(await place(producer, topic, records))) {
            const sent = await (begun ?? producer).send({ messages, compression })
            places.push(...placesOf(messages, sent))
          }
          await (transaction === 'commit' ? begun?.commit() : begun?.abort())
          return places
        },
      ),

    readTopic: (topic) =>
      using(new Consumer({ ...options, groupId: newName('group'), autocommit: false }), async (consumer) => {
        consumer.topics.track(topic)
        const listed = { topics: [topic] }
        const ends = (await consumer.listOffsets({ ...listed, timestamp: ListOffsetTimestamps.LATEST })).get(
          topic,
        )
        const begins = await consumer.listOffsets({ ...listed, timestamp: ListOffsetTimestamps.EARLIEST })
        const records: RawRecord[] = []
        for (const [partition, end] of (ends ?? []).entries()) {
          const begin = begins.get(topic)?.[partition] ?? 0n
          for await (const record of readPartition(consumer, topic, partition, begin, end)) {
            records.push(record)
          }
        }
        return records
      }),

    deleteRecords: (topic, partition, before) =>
      withAdmin(async (admin) => {
        await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition, offset: before }] }] })
      }),

    endOffset: (topic, partition = 0) =>
      withAdmin(async (admin) => {
        const partitions = [{ partitionIndex: partition, timestamp: ListOffsetTimestamps.LATEST }]
        const listed = await admin.listOffsets({ topics: [{ name: topic, partitions }] })
        return listed[0]?.partitions[0]?.offset ?? 0n
      }),

    commitOffset: (group, topic, offset, partition = 0) =>
      withAdmin(async (admin) => {
        const partitionOffsets = [{ partition, offset }]
        await admin.alterConsumerGroupOffsets({ groupId: group, topics: [{ name: topic, partitionOffsets }] })
      }),

    committedOffset: (group, topic, partition = 0) =>
      withAdmin(async (admin) => {
        const topics = [{ name: topic, partitionIndexes: [partition] }]
        const [found] = await admin.listConsumerGroupOffsets({ groups: [{ groupId: group, topics }] })
        const offset = found?.topics[0]?.partitions[0]?.committedOffset ?? -1n
        return offset < 0n ? null : offset
      }),

    members: (group) =>
      withAdmin(async (admin) => {
        const groups = await admin.describeGroups({ groups: [group] })
        return groups.get(group)?.members.size ?? 0
      }),
  }
}

async function using<Client extends { close(): unknown }, T>(
  client: Client,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

type Outgoing = MessageToProduce<Buffer, Buffer, Buffer, Buffer> & {
  readonly partition: number
  readonly timestamp: bigint
}

/** Every record with the number of its partition, so that offsets can be told from the answer. */
async function place(producer: Producer, topic: string, records: readonly TestRecord[]): Promise<Outgoing[]> {
  const now = BigInt(Date.now())
  const metadata = await producer.metadata({ topics: [topic] })
  const count = metadata.topics.get(topic)?.partitionsCount ?? 1
  return records.map(({ key = null, value = null, headers = [], timestampMs, partition }) => {
    const bytes = key === null ? undefined : toBuffer(key)
    const message = {
      topic,
      headers: new Map(
        // As the wire has it; the types of the client know of no null.
        headers.map(
          ([name, text]) => [toBuffer(name), text === null ? null : toBuffer(text)] as [Buffer, Buffer],
        ),
      ),
      ...(bytes === undefined ? {} : { key: bytes }),
      ...(value === null ? {} : { value: toBuffer(value) }),
      timestamp: timestampMs ?? now,
    }
    const chosen = partition ?? (bytes === undefined ? 0 : compatibilityPartitioner(message, bytes) % count)
    return { ...message, partition: chosen }
  })
}

/** Batches of one time each: the client writes differences of times beyond 32 bits wrong. */
function sameTimes(messages: readonly Outgoing[]): Outgoing[][] {
  const runs: Outgoing[][] = []
  for (const message of messages) {
    const run = runs.at(-1)
    if (run?.[0]?.timestamp === message.timestamp) run.push(message)
    else runs.push([message])
  }
  return runs
}

/** The answer names the offset of the first record of each partition; the others follow it. */
function placesOf(
  messages: readonly { readonly partition: number }[],
  { offsets = [] }: { readonly offsets?: readonly Place[] },
): readonly Place[] {
  const next = new Map(offsets.map(({ partition, offset }) => [partition, offset]))
  return messages.map(({ partition }) => {
    const offset = next.get(partition) ?? -1n
    next.set(partition, offset + 1n)
    return { partition, offset }
  })
}

async function* readPartition(
  consumer: Consumer,
  topic: string,
  partition: number,
  begin: bigint,
  end: bigint,
): AsyncGenerator<RawRecord> {
  for (let next = begin; next < end; ) {
    const found = (await consumer.metadata({ topics: [topic] })).topics.get(topic)
    const partitions = [
      {
        partition,
        currentLeaderEpoch: -1,
        fetchOffset: next,
        lastFetchedEpoch: -1,
        partitionMaxBytes: 100_000_000,
      },
    ]
    const answer = await consumer.fetch({
      node: found?.partitions[partition]?.leader ?? 0,
      topics: [{ topicId: found?.id ?? '', partitions }],
      maxWaitTime: 500,
      maxBytes: 100_000_000,
    })
    for (const batch of answer.responses[0]?.partitions[0]?.records ?? []) {
      const isControl = (batch.attributes & 0b10_0000) !== 0
      for (const record of batch.records) {
        const offset = batch.firstOffset + BigInt(record.offsetDelta)
        if (isControl || offset < next) continue
        yield {
          topic,
          partition,
          offset,
          timestampMs: batch.firstTimestamp + record.timestampDelta,
          key: record.key,
          value: record.value,
          headers: record.headers.map(
            ([name, value]): RawHeader => ({ name: name ?? Buffer.alloc(0), value }),
          ),
        }
      }
      next = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n
    }
  }
}

const toBuffer = (bytes: Bytes): Buffer =>
  typeof bytes === 'string'
    ? Buffer.from(bytes)
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
