/**
 * K1: every letter of Kafka has its event and every event its letter, in the same state and in the queue of the same service. What is
 * being published is marked on both, so that nothing else is done to it.
 */
import { type Integer, sql } from '../db/database.ts'
import { KAFKA, STATE, stateName } from '../kafka/event.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { eventRanges } from './kafka-walk.ts'
import { letterRanges } from './walk.ts'

/** What the office calls an event that is in this state. */
const AGREES = `CASE
  WHEN event.state IN (${STATE.pending}, ${STATE.claimed}, ${STATE.publishing}, ${STATE.uncertain}) THEN letter.status = ${STATUS.Pending}
  WHEN event.state = ${STATE.published} THEN letter.status = ${STATUS.Resolved} AND letter.resolution = 'retry'
  WHEN event.state = ${STATE.discarded} THEN letter.status = ${STATUS.Expired}
    OR (letter.status = ${STATUS.Resolved} AND letter.resolution = 'discard')
  ELSE false END`
const HELD = `CASE WHEN event.state IN (${STATE.claimed}, ${STATE.publishing}) THEN 1 ELSE 0 END`

/** Letters of a range whose events are missing or say something else; both by primary key. */
const readOdd = sql(
  'verify.kafkaOddLetters',
  `SELECT letter.id, letter.status, letter.resolution, letter.leased, event.state
   FROM bartleby.letters AS letter
   LEFT JOIN bartleby.kafka_events AS event ON event.letter_id = letter.id AND event.letter_id > $1 AND event.letter_id <= $2
   WHERE letter.id > $1 AND letter.id <= $2 AND letter.engine = '${KAFKA}'
     AND (event.letter_id IS NULL OR NOT coalesce(${AGREES}, false) OR letter.leased <> ${HELD})`,
  { bigints: true },
)

/** The queues that events of a range are in, and the drawers that their letters lie in. Few groups: added up by the store. */
const readQueues = sql(
  'verify.kafkaQueues',
  `SELECT letter.drawer, event.service, event.original_topic, min(letter.id) AS example
   FROM bartleby.letters AS letter
   JOIN bartleby.kafka_events AS event ON event.letter_id = letter.id AND event.letter_id > $1 AND event.letter_id <= $2
   WHERE letter.id > $1 AND letter.id <= $2 AND letter.engine = '${KAFKA}'
   GROUP BY letter.drawer, event.service, event.original_topic`,
  { bigints: true },
)

/** Events of a range that no letter has. */
const readOrphans = sql(
  'verify.kafkaOrphans',
  `SELECT letter_id, dlq_id FROM bartleby.kafka_events AS event
   WHERE letter_id > $1 AND letter_id <= $2
     AND NOT EXISTS (SELECT 1 FROM bartleby.letters AS letter WHERE letter.id = event.letter_id
       AND letter.id > $1 AND letter.id <= $2 AND letter.engine = '${KAFKA}')`,
  { bigints: true },
)

interface OddRow {
  readonly id: Integer
  readonly status: Integer
  readonly resolution: string | null
  readonly leased: Integer
  readonly state: Integer | null
}

interface QueueRow {
  readonly drawer: Integer
  readonly service: string
  readonly original_topic: string
  readonly example: Integer
}

export const kafkaEvents: Invariant = {
  id: 'K1',
  promise: 'a letter of Kafka and its event say the same',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    for await (const { after, through } of letterRanges(audit)) {
      for (const row of await audit.session.rows<OddRow>(readOdd, after, through)) yield oddFinding(row)
      for (const row of await audit.session.rows<QueueRow>(readQueues, after, through))
        yield* misfiled(audit, row)
    }
    for await (const { after, through } of eventRanges(audit)) {
      const rows = await audit.session.rows<{ letter_id: Integer; dlq_id: string }>(
        readOrphans,
        after,
        through,
      )
      for (const { letter_id, dlq_id } of rows) {
        yield {
          what: `event ${dlq_id} belongs to letter ${letter_id}, which is not there`,
          row: { letter: String(letter_id), event: dlq_id },
        }
      }
    }
  },
}

function oddFinding({ id, status, resolution, leased, state }: OddRow): Finding {
  const row = {
    letter: String(id),
    status: STATUSES[Number(status)] ?? String(status),
    resolution: resolution ?? '-',
    leased: String(leased),
  }
  if (state === null) return { what: `letter ${id} of Kafka has no event`, row }
  const name = nameOf(Number(state))
  return { what: `letter ${id} is ${row.status}, and its event is ${name}`, row: { ...row, state: name } }
}

function* misfiled({ drawers }: Audit, row: QueueRow): Iterable<Finding> {
  const queue = drawers.get(Number(row.drawer))?.queue
  const own = `${row.service}/${row.original_topic}`
  if (queue === own) return
  yield {
    what: `letter ${row.example} lies in a drawer of '${queue}', and its event is in the queue of '${own}'`,
    row: { letter: String(row.example), drawer: String(row.drawer), queue: queue ?? '-', event: own },
  }
}

/** The name of a state, or the number that is none. */
function nameOf(state: number): string {
  return Object.values<number>(STATE).includes(state) ? stateName(state) : String(state)
}
