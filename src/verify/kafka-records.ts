/**
 * K2: every record that was received became a letter, reopened one or was a duplicate, and is counted as what it was; the register
 * has each of them that was no duplicate, under the name that its event has.
 */
import type { Integer } from '../db/database.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { Sums } from './sums.ts'
import { EVENTS, fault, faultsAlong, pages, RECORDS, read, rowsAlong } from './walk.ts'

/** All partitions there are: a few hundred at most. */
const readBooks = read(
  'kafkaBooks',
  'SELECT topic, partition, received, duplicates, created, reopened FROM bartleby.kafka_partitions ORDER BY topic, partition',
)

/** The next partition that has records. */
const nextPartition = read(
  'kafkaNextPartition',
  `SELECT topic, partition FROM bartleby.kafka_records WHERE (topic, partition) > ($1, $2)
   ORDER BY topic, partition LIMIT 1`,
)

/** Records of a partition within a range of offsets, by primary key. */
const countRecords = read(
  'kafkaCountRecords',
  `SELECT count(*) AS records FROM bartleby.kafka_records
   WHERE topic = $3 AND partition = $4 AND record_offset > $1 AND record_offset <= $2`,
)

/** Events of a range whose record is not in the register, or is that of another letter; by its unique name. */
const unregistered = fault(
  'kafkaUnregistered',
  `SELECT letter_id AS letter, dlq_id AS event FROM bartleby.kafka_events AS event
   WHERE letter_id > $1 AND letter_id <= $2 AND NOT coalesce((
     SELECT record.letter_id = event.letter_id AND record.topic = event.topic AND record.partition = event.partition
       AND record.record_offset = event.record_offset
     FROM bartleby.kafka_records AS record WHERE record.dlq_id = event.dlq_id), false)`,
  ({ letter, event }) => `the record of letter ${letter} is not in the register as ${event}`,
)

interface Partition {
  readonly topic: string
  readonly partition: Integer
}

interface Book extends Partition {
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
    const found = await countAll(audit)
    for (const book of await audit.session.rows<Book>(readBooks)) {
      yield* miscounted(book, found.get(nameOf(book)) ?? 0)
      found.delete(nameOf(book))
    }
    for (const [partition, records] of found) {
      yield {
        what: `${records} records are from partition ${partition}, which has no books`,
        row: { partition, records },
      }
    }
    yield* faultsAlong(audit, EVENTS, [unregistered])
  },
}

const nameOf = ({ topic, partition }: Partition): string => `${topic}:${partition}`

/** The records of every partition that has any. */
async function countAll(audit: Audit): Promise<Sums<string>> {
  const found = new Sums<string>()
  const keyOf = ({ topic, partition }: Partition) => [topic, partition]
  for await (const [next] of pages<Partition>(audit.session, nextPartition, ['', -1], keyOf)) {
    if (next === undefined) continue
    const counts = rowsAlong<{ records: Integer }>(audit, RECORDS, countRecords, ...keyOf(next))
    for await (const { records } of counts) found.add(nameOf(next), records)
  }
  return found
}

function* miscounted(book: Book, records: number): Iterable<Finding> {
  const partition = nameOf(book)
  const { received, duplicates, created, reopened } = book
  const row = { partition, received, duplicates, created, reopened, records }
  const kept = Number(created) + Number(reopened)
  const accounted = Number(duplicates) + kept
  if (Number(received) !== accounted)
    yield {
      what: `partition ${partition} received ${received} records, and ${accounted} are accounted for`,
      row,
    }
  if (records !== kept)
    yield {
      what: `the register has ${records} records of partition ${partition}, and its books ${kept}`,
      row,
    }
}
