/**
 * K1: every letter of Kafka has its event and every event its letter, in the same state and in the queue of the same service. What is
 * being published is marked on both, so that nothing else is done to it.
 */
import { KAFKA, STATE, stateName } from '../kafka/event.ts'
import { STATUS, STATUSES } from '../letters/letter.ts'
import type { Invariant } from './invariant.ts'
import { EVENTS, fault, faultsAlong, LETTERS } from './walk.ts'

/** What the office calls an event that is in this state. */
const AGREES = `CASE
  WHEN event.state IN (${STATE.pending}, ${STATE.claimed}, ${STATE.publishing}, ${STATE.uncertain}) THEN letter.status = ${STATUS.Pending}
  WHEN event.state = ${STATE.published} THEN letter.status = ${STATUS.Resolved} AND letter.resolution = 'retry'
  WHEN event.state = ${STATE.discarded} THEN letter.status = ${STATUS.Expired}
    OR (letter.status = ${STATUS.Resolved} AND letter.resolution = 'discard')
  ELSE false END`
const HELD = `CASE WHEN event.state IN (${STATE.claimed}, ${STATE.publishing}) THEN 1 ELSE 0 END`

/** Letters of a range whose events are missing or say something else; both by primary key. */
const oddLetters = fault(
  'kafkaOddLetters',
  `SELECT letter.id AS letter, letter.status, letter.resolution, letter.leased, event.state
   FROM bartleby.letters AS letter
   LEFT JOIN bartleby.kafka_events AS event ON event.letter_id = letter.id AND event.letter_id > $1 AND event.letter_id <= $2
   WHERE letter.id > $1 AND letter.id <= $2 AND letter.engine = '${KAFKA}'
     AND (event.letter_id IS NULL OR NOT coalesce(${AGREES}, false) OR letter.leased <> ${HELD})`,
  ({ letter, status: number, resolution, leased, state }) => {
    const status = STATUSES[Number(number)] ?? number
    const row = { letter, status, resolution, leased }
    if (state === null) return { what: `letter ${letter} of Kafka has no event`, row }
    const name = nameOf(Number(state))
    return { what: `letter ${letter} is ${status}, and its event is ${name}`, row: { ...row, state: name } }
  },
)

/** The queues that events of a range are in, and the drawers that their letters lie in. Few groups: added up by the store. */
const misfiled = fault(
  'kafkaQueues',
  `SELECT letter.drawer, event.service, event.original_topic, min(letter.id) AS letter
   FROM bartleby.letters AS letter
   JOIN bartleby.kafka_events AS event ON event.letter_id = letter.id AND event.letter_id > $1 AND event.letter_id <= $2
   WHERE letter.id > $1 AND letter.id <= $2 AND letter.engine = '${KAFKA}'
   GROUP BY letter.drawer, event.service, event.original_topic`,
  ({ letter, drawer, service, original_topic }, { drawers }) => {
    const queue = drawers.get(Number(drawer))?.queue
    const event = `${service}/${original_topic}`
    if (queue === event) return []
    return {
      what: `letter ${letter} lies in a drawer of '${queue}', and its event is in the queue of '${event}'`,
      row: { letter, drawer, queue: queue ?? null, event },
    }
  },
)

/** Events of a range that no letter has. */
const orphans = fault(
  'kafkaOrphans',
  `SELECT letter_id AS letter, dlq_id AS event FROM bartleby.kafka_events AS event
   WHERE letter_id > $1 AND letter_id <= $2
     AND NOT EXISTS (SELECT 1 FROM bartleby.letters AS letter WHERE letter.id = event.letter_id
       AND letter.id > $1 AND letter.id <= $2 AND letter.engine = '${KAFKA}')`,
  ({ letter, event }) => `event ${event} belongs to letter ${letter}, which is not there`,
)

/** The name of a state, or the number that is none. */
const nameOf = (state: number): string =>
  Object.values<number>(STATE).includes(state) ? stateName(state) : String(state)

export const kafkaEvents: Invariant = {
  id: 'K1',
  promise: 'a letter of Kafka and its event say the same',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    yield* faultsAlong(audit, LETTERS, [oddLetters, misfiled])
    yield* faultsAlong(audit, EVENTS, [orphans])
  },
}
