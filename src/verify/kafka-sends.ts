/**
 * K3: at most one event of a service is on its way. What an event is, its publish is too: published, uncertain or being published;
 * an event that is free has none. As often as an event died again, so many records are in its chain.
 */
import { SEND, STATE } from '../sources/kafka/event.ts'
import type { Finding, FoundRow, Invariant } from './invariant.ts'
import { KAFKA_LETTERS } from './kafka-events.ts'
import { Sums } from './sums.ts'
import { read, type Side, together } from './walk.ts'

/** Events by the numbers of their letters, each with the publish that it names. */
const EVENTS: Side = {
  statement: read(
    'kafkaPublishes',
    `SELECT event.letter_id AS key, event.state, event.attempts, event.service, event.event_id AS event,
       send.letter_id AS "sentLetter", send.outcome
     FROM bartleby.kafka_events AS event LEFT JOIN bartleby.kafka_sends AS send ON send.event_id = event.event_id
     ORDER BY event.letter_id`,
  ),
}
/** Records that an event had before, and what was sent of it: both by letters. */
const CHAIN: Side = {
  statement: read('kafkaChain', 'SELECT letter_id AS key FROM bartleby.kafka_chain ORDER BY letter_id'),
}
const SENDS: Side = {
  statement: read(
    'kafkaSends',
    'SELECT letter_id AS key, event_id AS event, outcome, reopened FROM bartleby.kafka_sends ORDER BY letter_id',
  ),
}

export const kafkaSends: Invariant = {
  id: 'K3',
  promise: 'a service has at most one event on its way, and events agree with what was sent of them',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    // Not by the index that keeps them from it: that one is what is doubted.
    const inFlight = new Sums<string>()
    const sides = { letters: KAFKA_LETTERS, events: EVENTS, chain: CHAIN, sends: SENDS }
    for await (const { key: letter, letters, events, chain, sends } of together(audit, sides)) {
      for (const event of events) {
        if (IN_FLIGHT.includes(Number(event.state))) inFlight.add(String(event.service), 1)
        for (const finding of faultsOf(event, letters[0], chain.length)) yield finding
      }
      for (const { event, outcome, reopened } of sends)
        if (events.length === 0 || (Number(reopened) === 1 && Number(outcome) !== SEND.published))
          yield {
            what: `publish ${event} of letter ${letter} has outcome ${outcome}, and came back ${reopened} times or has no event`,
            row: { event, letter, outcome, reopened },
          }
    }
    for (const [service, events] of inFlight)
      if (events > 1)
        yield { what: `service '${service}' has ${events} events on their way`, row: { service, events } }
  },
}

const IN_FLIGHT: readonly number[] = [STATE.claimed, STATE.publishing]

/** What the publish of an event in this state must have come to; of a discarded one any will do. */
const OUTCOMES: ReadonlyMap<number, number> = new Map([
  [STATE.claimed, SEND.uncertain],
  [STATE.publishing, SEND.publishing],
  [STATE.uncertain, SEND.uncertain],
  [STATE.published, SEND.published],
])

function agrees({ key, state: at, event, sentLetter, outcome }: FoundRow): boolean {
  const state = Number(at)
  if (state === STATE.pending) return event === null
  if (event === null) return state === STATE.claimed || state === STATE.discarded
  const wanted = OUTCOMES.get(state)
  return (
    sentLetter !== null &&
    Number(sentLetter) === Number(key) &&
    (wanted ?? Number(outcome)) === Number(outcome)
  )
}

/** What is wrong with an event, whose letter may be gone and has so many earlier records. */
function* faultsOf(row: FoundRow, letter: FoundRow | undefined, links: number): Iterable<Finding> {
  const { key, state, event, attempts } = row
  if (!agrees(row))
    yield {
      what: `the event of letter ${key} is in state ${state}, and its publish ${event ?? '(none)'} is not`,
      row: { letter: key, state, event },
    }
  if (Number(state) === STATE.published && letter !== undefined && letter.sent_as !== event)
    yield {
      what: `letter ${key} was sent as ${letter.sent_as}, and its event as ${event}`,
      row: { letter: key, sentAs: letter.sent_as, event },
    }
  if (links !== Number(attempts) - 1)
    yield {
      what: `letter ${key} died ${attempts} times, and its chain has ${links} earlier records`,
      row: { letter: key, attempts, links },
    }
}
