/**
 * Asks a broker for records. Requests are the library's; the answer is taken apart here, so that each partition has its own outcome
 * and the batches stay bytes until they are wanted.
 */
import type { Connection } from '@platformatic/kafka'
import type { KafkaLibrary } from '../../../outgoing/kafka/library.ts'
import type { Aborted } from './reader-batches.ts'
import { Cursor } from './reader-bytes.ts'

/** Versions by which this asks: from 13 on, topics go by their ids, so that one that was made anew is told from the old one. */
export const FETCH_VERSIONS = [17, 16, 15, 14, 13, 12] as const
type FetchVersion = (typeof FETCH_VERSIONS)[number]
export const FETCH_KEY = 1

const READ_COMMITTED = 1
const MAX_WAIT_MS = 500
/** What one partition gives at once; a batch that is larger comes alone. A full one is as fast as with all of `fetch_max_bytes`, and takes less memory. */
const PARTITION_BYTES = 4_194_304
/** No session: every request says all that it wants. */
const NO_SESSION = { id: 0, epoch: -1 } as const

interface PartitionAsk {
  readonly topic: string
  readonly topicId: string
  readonly partition: number
  readonly offset: bigint
}

export interface PartitionAnswer {
  readonly topic: string
  readonly partition: number
  /** 0 when all is well. */
  readonly errorCode: number
  /** The offset behind the last record there is; negative when not known. */
  readonly end: bigint
  /** The first offset there is; negative when not known. */
  readonly begin: bigint
  readonly aborted: readonly Aborted[]
  readonly batches: Buffer
}

/** One question and its answer. An answer that says that the whole question was wrong is thrown, by its code. */
export async function fetchPartitions(
  library: KafkaLibrary,
  connection: Connection,
  version: FetchVersion,
  asks: readonly PartitionAsk[],
  maxBytes: number,
): Promise<readonly PartitionAnswer[]> {
  const byName = version < 13
  const idOf = ({ topic, topicId }: PartitionAsk): string => (byName ? topic : topicId)
  const names = new Map(asks.map((ask) => [idOf(ask), ask.topic]))
  const topics = [...Map.groupBy(asks, idOf)].map(([topicId, of]) => ({
    topicId,
    partitions: of.map(({ partition, offset }) => ({
      partition,
      currentLeaderEpoch: -1,
      fetchOffset: offset,
      lastFetchedEpoch: -1,
      partitionMaxBytes: Math.min(maxBytes, PARTITION_BYTES),
    })),
  }))
  const { promise, resolve, reject } = Promise.withResolvers<FetchAnswer>()
  connection.send<FetchAnswer>(
    FETCH_KEY,
    version,
    () =>
      library[`fetchV${version}`].createRequest(
        MAX_WAIT_MS,
        1,
        maxBytes,
        READ_COMMITTED,
        NO_SESSION.id,
        NO_SESSION.epoch,
        topics,
        [],
        '',
      ),
    (_correlation, _key, _version, reader) =>
      parse(new Cursor(reader.buffer.slice(reader.position)), byName, names),
    true,
    true,
    (error, answer) => (error || answer === undefined ? reject(error) : resolve(answer)),
  )
  const { errorCode, partitions } = await promise
  if (errorCode !== 0) throw new library.ProtocolError(errorCode)
  return partitions
}

interface FetchAnswer {
  readonly errorCode: number
  readonly partitions: readonly PartitionAnswer[]
}

function parse(cursor: Cursor, byName: boolean, names: ReadonlyMap<string, string>): FetchAnswer {
  cursor.int32()
  const errorCode = cursor.int16()
  cursor.int32()
  const topics = cursor.compactArray(() => {
    const id = byName ? cursor.compactString() : cursor.uuid()
    const partitions = cursor.compactArray(() => parsePartition(cursor, names.get(id) ?? ''))
    cursor.skipTags()
    return partitions
  })
  return { errorCode, partitions: topics.flat() }
}

function parsePartition(cursor: Cursor, topic: string): PartitionAnswer {
  const partition = cursor.int32()
  const errorCode = cursor.int16()
  const end = cursor.int64()
  // How far transactions are decided: the broker gives nothing beyond it.
  cursor.int64()
  const begin = cursor.int64()
  const aborted = cursor.compactArray(() => {
    const one = { producerId: cursor.int64(), firstOffset: cursor.int64() }
    cursor.skipTags()
    return one
  })
  // A replica that lies nearer; asking the leader is always right.
  cursor.int32()
  const length = cursor.unsignedVarint()
  const batches = cursor.take(Math.max(0, length - 1))
  cursor.skipTags()
  return { topic, partition, errorCode, end, begin, aborted, batches }
}
