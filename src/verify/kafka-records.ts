/**
 * K2: every record that was received became a letter, reopened one or was a duplicate, and is counted as what it was; the register
 * has each of them that was no duplicate, under the name that its event has.
 */
import type { Integer } from '../store/database.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { Sums } from './sums.ts'
import { batchesOf, read } from './walk.ts'

/** All partitions there are: a few hundred at most. */
const readBooks = read(
  'kafkaBooks',
  'SELECT topic, partition, received, duplicates, created, reopened FROM bartleby.kafka_partitions ORDER BY topic, partition',
)

/** All records. */
const readRecords = read('kafkaRecords', 'SELECT topic, partition FROM bartleby.kafka_records')

/** All events, and whether the record of their name is in the register and theirs. */
const readRegistered = read(
  'kafkaRegistered',
  `SELECT event.letter_id AS letter, event.dlq_id AS event, CASE WHEN record.letter_id = event.letter_id AND record.topic = event.topic
       AND record.partition = event.partition AND record.record_offset = event.record_offset THEN 1 ELSE 0 END AS registered
   FROM bartleby.kafka_events AS event LEFT JOIN bartleby.kafka_records AS record ON record.dlq_id = event.dlq_id`,
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
    for await (const events of batchesOf(audit, readRegistered))
      for (const { letter, event, registered } of events)
        if (Number(registered) === 0)
          yield {
            what: `the record of letter ${letter} is not in the register as ${event}`,
            row: { letter, event },
          }
  },
}

const nameOf = ({ topic, partition }: Partition): string => `${topic}:${partition}`

/** The records of every partition that has any. */
async function countAll(audit: Audit): Promise<Sums<string>> {
  const found = new Sums<string>()
  for await (const records of batchesOf<Partition>(audit, readRecords))
    for (const record of records) found.add(nameOf(record), 1)
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
