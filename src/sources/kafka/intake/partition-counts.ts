/** How far each partition was read, and what came of its records. Whoever stores records of a partition locks its row. */
import { sql, type Transaction } from '../../../store/database.ts'
import { rowsGiven, runGiven } from '../../../store/idioms.ts'
import { big, integer, rowShape, text } from '../../../store/row.ts'
import { partitionKey, type RawRecord } from '../event.ts'

/** `received` is the sum of the others. */
export interface Stored {
  readonly received: number
  readonly duplicates: number
  readonly created: number
  readonly reopened: number
}

type Place = Pick<RawRecord, 'topic' | 'partition'>

/** Offsets that were lost before they were read. */
export interface Gap extends Place {
  /** The next offset to be read. */
  readonly expected: bigint
  /** Where reading goes on. */
  readonly found: bigint
}

const BEFORE_ALL = -(2n ** 63n)
const LAST = 2n ** 63n - 1n

interface Progress {
  orderTs: bigint
  nextOffset: bigint
}

/** The order time of a record: its own, but never before that of the record before it, so that a clock set back changes nothing. */
export function advance(progress: Progress, record: Pick<RawRecord, 'timestampMs' | 'offset'>): bigint {
  if (record.timestampMs > progress.orderTs) progress.orderTs = record.timestampMs
  progress.nextOffset = record.offset < LAST ? record.offset + 1n : LAST
  return progress.orderTs
}

interface CountedPartition extends Place, Progress, Record<keyof Stored | 'gaps', number> {}

const PARTITION = rowShape({ topic: text, partition: integer, orderTs: big, nextOffset: big })

/** In a fixed order; of two servers with the same partition, the second waits. */
const addPartitions = sql(
  'kafka.addPartitions',
  `INSERT INTO bartleby.kafka_partitions
     (topic, partition, order_ts, next_offset, received, duplicates, created, reopened, gaps)
   SELECT given.topic, given.partition, ${BEFORE_ALL}, 0, 0, 0, 0, 0, 0
   FROM unnest($1::text[], $2::int[]) AS given (topic, partition) WHERE true
   ON CONFLICT (topic, partition) DO NOTHING`,
)

/** By primary key, locked in the order given. */
const lockPartitions = sql(
  'kafka.lockPartitions',
  `SELECT found.* FROM unnest($1::text[], $2::int[]) AS given (topic, partition) CROSS JOIN LATERAL (
     SELECT ${PARTITION.columns} FROM bartleby.kafka_partitions
     WHERE topic = given.topic AND partition = given.partition FOR UPDATE) AS found`,
  { bigints: true },
)

/** By primary key, locked. */
const writePartition = sql(
  'kafka.writePartition',
  `UPDATE bartleby.kafka_partitions SET order_ts = $3, next_offset = $4, received = received + $5, duplicates = duplicates + $6,
     created = created + $7, reopened = reopened + $8, gaps = gaps + $9
   WHERE topic = $1 AND partition = $2`,
)

export type PartitionCounts = ReadonlyMap<string, CountedPartition>

/** Locks the partitions until the transaction ends. */
export async function lockPartitionCounts(
  tx: Transaction,
  places: readonly Place[],
): Promise<PartitionCounts> {
  const asked = [...new Map(places.map((place) => [partitionKey(place), place])).values()]
    .map(({ topic, partition }) => ({ topic, partition }))
    .sort((a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition))
  // Both travel together.
  const [, rows] = await Promise.all([
    runGiven(tx, addPartitions, asked),
    rowsGiven<object>(tx, lockPartitions, asked),
  ])
  const partitions = rows.map((row) => ({ ...PARTITION.read(row), ...NOTHING_STORED, gaps: 0 }))
  return new Map(partitions.map((counts) => [partitionKey(counts), counts]))
}

export function countsOf(partitions: PartitionCounts, place: Place): CountedPartition {
  const counts = partitions.get(partitionKey(place))
  if (counts === undefined) throw new Error(`partition ${place.partition} of '${place.topic}' has no counts`)
  return counts
}

/** Written with the commit. */
export function writePartitionCounts(tx: Transaction, partitions: PartitionCounts): void {
  for (const counts of partitions.values()) {
    const { topic, partition, orderTs, nextOffset, received, duplicates, created, reopened, gaps } = counts
    const added = [received, duplicates, created, reopened, gaps] as const
    tx.atCommit(writePartition, topic, partition, orderTs, nextOffset, ...added)
  }
}

export function storedByTopic(partitions: PartitionCounts): ReadonlyMap<string, Stored> {
  const topics = new Map<string, Stored>()
  for (const { topic, received, duplicates, created, reopened } of partitions.values()) {
    const before = topics.get(topic) ?? NOTHING_STORED
    topics.set(topic, sum(before, { received, duplicates, created, reopened }))
  }
  return topics
}

export const NOTHING_STORED: Stored = { received: 0, duplicates: 0, created: 0, reopened: 0 }

export const sum = (a: Stored, b: Stored): Stored => ({
  received: a.received + b.received,
  duplicates: a.duplicates + b.duplicates,
  created: a.created + b.created,
  reopened: a.reopened + b.reopened,
})
