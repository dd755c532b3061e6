/** The partitions that this member reads: where each stands, and what keeps it from going on. */
import type { BrokerLink } from '../../../outgoing/kafka/brokers.ts'
import type { TopicsFound } from '../../../outgoing/kafka/connection.ts'
import { troubleOf } from '../../../outgoing/kafka/library.ts'
import { partitionKey } from '../event.ts'
import type { Board, PartitionReader } from './intake-status.ts'
import type { BatchUnreadable } from './reader-fetch.ts'
import type { Commits, Group, TopicPartitions } from './reader-group.ts'

interface ReadersParts {
  readonly link: BrokerLink
  readonly board: Board
  readonly group: Group
  readonly commits: Commits
  /** Topics recreated since the last session: their committed offsets are the old topic's. */
  readonly anew: ReadonlySet<string>
}

const EARLIEST = -2n
/** Not known yet. */
const NOWHERE = -1n

export class PartitionReaders {
  readonly #parts: ReadersParts
  #readers: ReadonlyMap<string, PartitionReader> = new Map()

  constructor(parts: ReadersParts) {
    this.#parts = parts
  }

  all(): readonly PartitionReader[] {
    return [...this.#readers.values()]
  }

  of(topic: string, partition: number): PartitionReader | undefined {
    return this.#readers.get(partitionKey({ topic, partition }))
  }

  /** Readers that stay go on where they are; new ones begin at the committed offset. */
  async arrange(assignment: readonly TopicPartitions[], { found }: TopicsFound): Promise<void> {
    const readers = new Map<string, PartitionReader>()
    for (const { topic, partitions } of assignment) {
      const at = found.get(topic)
      if (at === undefined) continue
      for (const partition of partitions) {
        const reader = this.of(topic, partition) ?? newReader(topic, partition, at.id)
        reader.leader = at.leaders[partition] ?? -1
        reader.fetchAt = reader.doneAt
        readers.set(partitionKey(reader), reader)
      }
    }
    for (const [key, reader] of this.#readers) if (!readers.has(key)) this.#parts.commits.forget(reader)
    this.#readers = readers
    this.#parts.board.readers(readers)
    await this.#find(this.all().filter(({ doneAt, isResting }) => doneAt === NOWHERE && !isResting))
  }

  place(reader: PartitionReader, offset: bigint): void {
    reader.doneAt = offset
    reader.fetchAt = offset
  }

  async earliest({ topic, partition, leader }: PartitionReader): Promise<bigint> {
    const { link } = this.#parts
    const connection = await link.to(leader)
    const partitions = [{ partitionIndex: partition, currentLeaderEpoch: -1, timestamp: EARLIEST }]
    const answer = await link.library.listOffsetsV5.api.async(connection, -1, 0, [
      { name: topic, partitions },
    ])
    const offset = answer.topics[0]?.partitions[0]?.offset ?? NOWHERE
    if (offset < 0n) throw new Error(`the broker names no first offset of partition ${partition} of ${topic}`)
    return offset
  }

  /** The broker forbids it, or we cannot repair it. The others go on; this one is tried again later. */
  rest(reader: PartitionReader, code: string): void {
    reader.isResting = true
    const right =
      code === 'TOPIC_AUTHORIZATION_FAILED' ? `; grant Read and Describe on topic ${reader.topic}` : ''
    this.#parts.board.partitionTrouble(reader, `${nameOf(reader)} cannot be read: ${code}${right}.`)
  }

  /** Its next batch is broken. Nothing is skipped; the batch is asked for again later. */
  restAt(reader: PartitionReader, { offset, next, message }: BatchUnreadable): void {
    reader.isResting = true
    reader.fetchAt = reader.doneAt
    this.#parts.board.partitionTrouble(
      reader,
      `${nameOf(reader)} stands still: its batch at offset ${offset} cannot be read: ${message}.${
        next === null ? '' : ` The next one begins at offset ${next}; docs/kafka.md says how to pass it.`
      }`,
    )
  }

  /** Whether any reader was resting. */
  wake(): boolean {
    const resting = this.all().filter(({ isResting }) => isResting)
    for (const reader of resting) reader.isResting = false
    return resting.length > 0
  }

  async #find(fresh: readonly PartitionReader[]): Promise<void> {
    if (fresh.length === 0) return
    const { group, anew } = this.#parts
    for (const { topic, partition, offset, code } of await group.committed(byTopic(fresh))) {
      const reader = this.of(topic, partition)
      if (reader === undefined) continue
      if (code !== '') {
        this.rest(reader, code)
      } else if (offset >= 0n && !anew.has(topic)) {
        this.place(reader, offset)
        reader.committed = offset
      }
    }
    for (const reader of fresh) {
      if (reader.doneAt === NOWHERE && !reader.isResting && reader.leader >= 0) await this.#begin(reader)
    }
  }

  /** Without a committed offset reading begins with the first record. */
  async #begin(reader: PartitionReader): Promise<void> {
    try {
      this.place(reader, await this.earliest(reader))
      // After a restart the old topic's offset would be taken for the new one's.
      if (this.#parts.anew.has(reader.topic)) this.#parts.commits.note({ ...reader, offset: reader.doneAt })
    } catch (error) {
      this.rest(reader, troubleOf(error).code)
    }
  }
}

export const nameOf = ({ topic, partition }: PartitionReader): string => `Partition ${partition} of ${topic}`

const newReader = (topic: string, partition: number, topicId: string): PartitionReader => ({
  topic,
  partition,
  topicId,
  leader: -1,
  fetchAt: NOWHERE,
  doneAt: NOWHERE,
  committed: null,
  end: null,
  trouble: null,
  isResting: false,
})

const byTopic = (readers: readonly PartitionReader[]): readonly TopicPartitions[] =>
  [...Map.groupBy(readers, ({ topic }) => topic)].map(([topic, of]) => ({
    topic,
    partitions: of.map(({ partition }) => partition),
  }))
