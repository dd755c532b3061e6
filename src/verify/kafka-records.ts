/**
 * K2: every record that was received became a letter, reopened one or was a duplicate, and is counted as what it was; the register
 * has each of them that was no duplicate, under the name that its event has.
 */
import { type Integer, sql } from '../db/database.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { eventRanges, type Partition, partitionsWithRecords, recordRanges } from './kafka-walk.ts'

/** All partitions there are: a few hundred at most. */
const readBooks = sql(
  'verify.kafkaBooks',
  'SELECT topic, partition, received, duplicates, created, reopened FROM bartleby.kafka_partitions ORDER BY topic, partition',
  { bigints: true },
)

/** Records of a partition within a range of offsets, by primary key. */
const countRecords = sql(
  'verify.kafkaCountRecords',
  `SELECT count(*) AS records FROM bartleby.kafka_records
   WHERE topic = $1 AND partition = $2 AND record_offset > $3 AND record_offset <= $4`,
)

/** Events of a range whose record is not in the register, or is that of another letter; by its unique name. */
const readUnregistered = sql(
  'verify.kafkaUnregistered',
  `SELECT letter_id, dlq_id FROM bartleby.kafka_events AS event
   WHERE letter_id > $1 AND letter_id <= $2 AND NOT coalesce((
     SELECT record.letter_id = event.letter_id AND record.topic = event.topic AND record.partition = event.partition
       AND record.record_offset = event.record_offset
     FROM bartleby.kafka_records AS record WHERE record.dlq_id = event.dlq_id), false)`,
  { bigints: true },
)

interface Book {
  readonly topic: string
  readonly partition: Integer
  readonly received: Integer
  readonly duplicates: Integer
  readonly created: Integer
  readonly reopened: Integer
}

export const kafkaRecords: Invariant = {
  id: 'K2',
  promise: 'every record of Kafka is a letter, reopened one or is a duplicate, and is counted as that',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    const books = await audit.session.rows<Book>(readBooks)
    const found = new Map<string, number>()
    for await (const partition of partitionsWithRecords(audit)) {
      found.set(keyOf(partition), await countAll(audit, partition))
    }
    for (const book of books) {
      const partition = { topic: book.topic, partition: Number(book.partition) }
      yield* miscounted(partition, book, found.get(keyOf(partition)) ?? 0)
      found.delete(keyOf(partition))
    }
    for (const [partition, records] of found) {
      yield {
        what: `${records} records are from partition ${partition}, which has no books`,
        row: { partition, records: String(records) },
      }
    }
    yield* unregistered(audit)
  },
}

const keyOf = ({ topic, partition }: Partition): string => `${topic}:${partition}`

async function countAll(audit: Audit, partition: Partition): Promise<number> {
  let all = 0
  for await (const { after, through } of recordRanges(audit, partition)) {
    const range = [partition.topic, partition.partition, after, through] as const
    const [row] = await audit.session.rows<{ records: Integer }>(countRecords, ...range)
    all += Number(row?.records ?? 0)
  }
  return all
}

function* miscounted(partition: Partition, book: Book, records: number): Iterable<Finding> {
  const key = keyOf(partition)
  const [received, duplicates, created, reopened] = [
    book.received,
    book.duplicates,
    book.created,
    book.reopened,
  ].map(Number) as [number, number, number, number]
  const row = {
    partition: key,
    received: String(received),
    duplicates: String(duplicates),
    created: String(created),
    reopened: String(reopened),
    records: String(records),
  }
  if (received !== duplicates + created + reopened)
    yield {
      what: `partition ${key} received ${received} records, and ${duplicates + created + reopened} are accounted for`,
      row,
    }
  if (records !== created + reopened)
    yield {
      what: `the register has ${records} records of partition ${key}, and its books ${created + reopened}`,
      row,
    }
}

async function* unregistered(audit: Audit): AsyncGenerator<Finding> {
  for await (const { after, through } of eventRanges(audit)) {
    const rows = await audit.session.rows<{ letter_id: Integer; dlq_id: string }>(
      readUnregistered,
      after,
      through,
    )
    for (const { letter_id, dlq_id } of rows) {
      yield {
        what: `the record of letter ${letter_id} is not in the register as ${dlq_id}`,
        row: { letter: String(letter_id), event: dlq_id },
      }
    }
  }
}
