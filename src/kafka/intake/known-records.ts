/**
 * What the store knows already about records that come in: which of them it has, which names are taken, and which records are the
 * next death of something that was sent. The partitions of the records are locked, so none of them can be stored meanwhile.
 */
import { type Integer, sql, type Transaction } from '../../db/database.ts'
import { type DlqId, dlqId, type EventId } from '../event.ts'
import { sendsOf } from './known-sends.ts'
import { derivedId, type Incoming, placeOf, sourceIdOf } from './store-incoming.ts'
import { rowsOn, stretchesOf, stretchQuery } from './store-stretches.ts'

/** The records that are known on stretches of partitions, by primary key: not more than there are places on them. */
const readOn = stretchQuery(
  'kafka.recordsOn',
  `SELECT record_offset, fingerprint FROM bartleby.kafka_records
   WHERE topic = given.topic AND partition = given.partition AND record_offset >= given.first AND record_offset <= given.last
   ORDER BY topic, partition, record_offset`,
)

/** Which of these names are taken, on their unique index. */
const readTaken = sql(
  'kafka.takenIds',
  'SELECT dlq_id FROM bartleby.kafka_records WHERE dlq_id = ANY($1::uuid[])',
)

export interface Known {
  /** The source ids of records that are in the store. */
  readonly records: ReadonlySet<string>
  /** Places that have a record, whichever. */
  readonly places: ReadonlySet<string>
  readonly takenIds: ReadonlySet<DlqId>
  /** What was sent, by the source id of the record that died of it. */
  readonly sends: ReadonlyMap<string, EventId>
}

/** Looks all of them up. On PostgreSQL the statements travel together. */
export async function lookUp(tx: Transaction, all: readonly Incoming[]): Promise<Known> {
  const [at, takenIds, sends] = await Promise.all([
    recordsAt(tx, all),
    takenAmong(
      tx,
      all.map((each) => each.ownId ?? derivedId(each)),
    ),
    sendsOf(tx, all),
  ])
  return { ...at, takenIds, sends }
}

async function recordsAt(
  tx: Transaction,
  all: readonly Incoming[],
): Promise<Pick<Known, 'records' | 'places'>> {
  const stretches = stretchesOf(all.map(({ record }) => record))
  const rows = await rowsOn<{ record_offset: Integer; fingerprint: Uint8Array }>(tx, readOn, stretches)
  const records = new Set<string>()
  const places = new Set<string>()
  for (const { on, record_offset, fingerprint } of rows) {
    const place = placeOf(on.topic, on.partition, BigInt(record_offset))
    places.add(place)
    records.add(sourceIdOf(place, fingerprint))
  }
  return { records, places }
}

/** Which of these names records have already. */
export async function takenAmong(tx: Transaction, ids: readonly DlqId[]): Promise<Set<DlqId>> {
  if (ids.length === 0) return new Set()
  const rows = await tx.rows<{ dlq_id: string }>(readTaken, ids)
  return new Set(rows.map((row) => dlqId(row.dlq_id)))
}
