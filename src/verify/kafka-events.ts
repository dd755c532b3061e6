/**
 * K1: every letter of Kafka has its event and every event its letter, in the same state and in the queue of the same service. What is
 * being published is marked on both, so that nothing else is done to it.
 */

import { STATUS, STATUSES } from '../letters/letter.ts'
import { KAFKA, STATE, stateName } from '../sources/kafka/event.ts'
import type { Finding, FoundRow, Invariant } from './invariant.ts'
import { read, type Side, together } from './walk.ts'

/** Letters of Kafka, by their numbers. */
export const KAFKA_LETTERS: Side = {
  statement: read(
    'kafkaLetters',
    `SELECT id AS key, status, resolution, leased, drawer, sent_as FROM bartleby.letters WHERE engine = '${KAFKA}' ORDER BY id`,
  ),
}
/** Events, by the numbers of their letters. */
const EVENTS: Side = {
  statement: read(
    'kafkaEvents',
    `SELECT letter_id AS key, dlq_id AS event, state, service || '/' || original_topic AS queue FROM bartleby.kafka_events ORDER BY letter_id`,
  ),
}

export const kafkaEvents: Invariant = {
  id: 'K1',
  promise: 'a letter of Kafka and its event say the same',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    /** Drawers and queues of events that do not fit, each told once. */
    const misfiled = new Set<string>()
    for await (const { key, letters, events } of together(audit, {
      letters: KAFKA_LETTERS,
      events: EVENTS,
    })) {
      const [letter] = letters
      const [event] = events
      if (letter === undefined) {
        yield {
          what: `event ${event?.event} belongs to letter ${key}, which is not there`,
          row: { letter: key, event: event?.event },
        }
        continue
      }
      if (event === undefined || !agree(letter, event)) yield apart(letter, event)
      if (event === undefined) continue
      const { drawer } = letter
      const queue = audit.drawers.get(Number(drawer))?.queue
      if (queue === event.queue || misfiled.has(`${drawer} ${event.queue}`)) continue
      misfiled.add(`${drawer} ${event.queue}`)
      yield {
        what: `letter ${key} lies in a drawer of '${queue}', and its event is in the queue of '${event.queue}'`,
        row: { letter: key, drawer, queue: queue ?? null, event: event.queue },
      }
    }
  },
}

const HELD: readonly number[] = [STATE.claimed, STATE.publishing]
const OPEN: readonly number[] = [STATE.pending, ...HELD, STATE.uncertain]

/** Whether a letter is what the office calls an event in this state, and marked while that is on its way. */
function agree({ status: number, resolution, leased }: FoundRow, { state: at }: FoundRow): boolean {
  const [status, state] = [Number(number), Number(at)]
  if (Number(leased) !== (HELD.includes(state) ? 1 : 0)) return false
  if (OPEN.includes(state)) return status === STATUS.Pending
  const end = status === STATUS.Resolved ? resolution : null
  if (state === STATE.published) return end === 'retry'
  return state === STATE.discarded && (status === STATUS.Expired || end === 'discard')
}

function apart(
  { key: letter, status: number, resolution, leased }: FoundRow,
  event: FoundRow | undefined,
): Finding {
  const status = STATUSES[Number(number)] ?? number
  const row = { letter, status, resolution, leased }
  if (event === undefined) return { what: `letter ${letter} of Kafka has no event`, row }
  const state = nameOf(Number(event.state))
  return { what: `letter ${letter} is ${status}, and its event is ${state}`, row: { ...row, state } }
}

/** The name of a state, or the number that is none. */
const nameOf = (state: number): string =>
  Object.values<number>(STATE).includes(state) ? stateName(state) : String(state)
