/** Walks over what belongs to Kafka in steps of bounded size, along primary keys. */
import { type Integer, sql } from '../db/database.ts'
import type { Audit } from './invariant.ts'
import type { KeyRange } from './walk.ts'

const STEP = 5_000
/** Below every key. */
const BEFORE_ALL = -(2n ** 63n)

/** Events by the numbers of their letters. */
const eventStep = sql(
  'verify.kafkaEventStep',
  `SELECT max(letter_id) AS through, count(*) AS found
   FROM (SELECT letter_id FROM bartleby.kafka_events WHERE letter_id > $1 ORDER BY letter_id LIMIT $2) AS step`,
  { bigints: true },
)

/** What was sent, by letters; a step ends with all sends of its last letter. */
const sendStep = sql(
  'verify.kafkaSendStep',
  `SELECT max(letter_id) AS through, count(*) AS found
   FROM (SELECT letter_id FROM bartleby.kafka_sends WHERE letter_id > $1 ORDER BY letter_id LIMIT $2) AS step`,
  { bigints: true },
)

/** Records of a partition by their offsets; a step ends with all records of its last offset. */
const recordStep = sql(
  'verify.kafkaRecordStep',
  `SELECT max(record_offset) AS through, count(*) AS found
   FROM (SELECT record_offset FROM bartleby.kafka_records WHERE topic = $3 AND partition = $4 AND record_offset > $1
     ORDER BY topic, partition, record_offset LIMIT $2) AS step`,
  { bigints: true },
)

/** The next partition that has records. */
const nextPartition = sql(
  'verify.kafkaNextPartition',
  `SELECT topic, partition FROM bartleby.kafka_records WHERE (topic, partition) > ($1, $2)
   ORDER BY topic, partition LIMIT 1`,
)

export interface Partition {
  readonly topic: string
  readonly partition: number
}

export const eventRanges = (audit: Audit) => ranges(audit, eventStep)
export const sendRanges = (audit: Audit) => ranges(audit, sendStep)
/** Ranges of offsets of one partition. */
export const recordRanges = (audit: Audit, { topic, partition }: Partition) =>
  ranges(audit, recordStep, topic, partition)

/** All partitions that have records in the register. */
export async function* partitionsWithRecords({ session }: Audit): AsyncGenerator<Partition> {
  for (let last: Partition = { topic: '', partition: -1 }; ; ) {
    const [row] = await session.rows<{ topic: string; partition: Integer }>(
      nextPartition,
      last.topic,
      last.partition,
    )
    if (row === undefined) return
    last = { topic: row.topic, partition: Number(row.partition) }
    yield last
  }
}

async function* ranges(
  audit: Audit,
  step: typeof eventStep,
  ...of: readonly (string | number)[]
): AsyncGenerator<KeyRange> {
  for (let after = BEFORE_ALL; ; ) {
    const [end] = await audit.session.rows<{ through: Integer | null; found: Integer }>(
      step,
      after,
      STEP,
      ...of,
    )
    if (end?.through == null) return
    const through = BigInt(end.through)
    yield { after, through }
    await audit.looked(Number(end.found))
    after = through
  }
}
