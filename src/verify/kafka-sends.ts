/**
 * K3: at most one event of a service is on its way. What an event is, its publish is too: published, uncertain or being published;
 * an event that is free has none. As often as an event died again, so many records are in its chain.
 */
import type { Integer } from '../db/database.ts'
import { STATE } from '../kafka/event.ts'
import { SEND } from '../kafka/send.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { Sums } from './sums.ts'
import { EVENTS, fault, faultsAlong, read, rowsAlong, SENDS } from './walk.ts'

/** Services with several events on their way. Not by the index that keeps them from it: that one is what is doubted. */
const readInFlight = read(
  'kafkaInFlight',
  `SELECT service, count(*) AS events FROM bartleby.kafka_events
   WHERE letter_id > $1 AND letter_id <= $2 AND state IN (${STATE.claimed}, ${STATE.publishing}) GROUP BY service`,
)

/** Events of a range that disagree with their publish, which is found by its id. */
const disagreeing = fault(
  'kafkaDisagreeing',
  `SELECT letter_id AS letter, state, event_id AS event FROM bartleby.kafka_events AS event
   WHERE letter_id > $1 AND letter_id <= $2 AND NOT coalesce(CASE
     WHEN event.state = ${STATE.pending} THEN event.event_id IS NULL
     WHEN event.event_id IS NULL THEN event.state IN (${STATE.claimed}, ${STATE.discarded})
     ELSE (SELECT send.letter_id = event.letter_id AND CASE event.state
         WHEN ${STATE.claimed} THEN send.outcome = ${SEND.uncertain}
         WHEN ${STATE.publishing} THEN send.outcome = ${SEND.publishing}
         WHEN ${STATE.uncertain} THEN send.outcome = ${SEND.uncertain}
         WHEN ${STATE.published} THEN send.outcome = ${SEND.published}
         ELSE true END
       FROM bartleby.kafka_sends AS send WHERE send.event_id = event.event_id) END, false)`,
  ({ letter, state, event }) =>
    `the event of letter ${letter} is in state ${state}, and its publish ${event ?? '(none)'} is not`,
)

/** Letters of a range that were resolved by a publish, and are not by that of their event. */
const sentOtherwise = fault(
  'kafkaSentOtherwise',
  `SELECT event.letter_id AS letter, letter.sent_as AS "sentAs", event.event_id AS event FROM bartleby.kafka_events AS event
   JOIN bartleby.letters AS letter ON letter.id = event.letter_id AND letter.id > $1 AND letter.id <= $2
   WHERE event.letter_id > $1 AND event.letter_id <= $2 AND event.state = ${STATE.published}
     AND (letter.sent_as IS NULL OR letter.sent_as <> CAST(event.event_id AS text))`,
  ({ letter, sentAs, event }) => `letter ${letter} was sent as ${sentAs}, and its event as ${event}`,
)

/** Events of a range whose chain is not as long as they have died again. */
const brokenChains = fault(
  'kafkaChains',
  `SELECT event.letter_id AS letter, event.attempts, count(link.number) AS links FROM bartleby.kafka_events AS event
   LEFT JOIN bartleby.kafka_chain AS link ON link.letter_id = event.letter_id AND link.letter_id > $1 AND link.letter_id <= $2
   WHERE event.letter_id > $1 AND event.letter_id <= $2
   GROUP BY event.letter_id, event.attempts HAVING count(link.number) <> event.attempts - 1`,
  ({ letter, attempts, links }) =>
    `letter ${letter} died ${attempts} times, and its chain has ${links} earlier records`,
)

/** What was sent of letters that are gone, or came back without having been published. */
const straySends = fault(
  'kafkaStraySends',
  `SELECT event_id AS event, letter_id AS letter, outcome, reopened FROM bartleby.kafka_sends AS send
   WHERE letter_id > $1 AND letter_id <= $2 AND ((reopened = 1 AND outcome <> ${SEND.published})
     OR NOT EXISTS (SELECT 1 FROM bartleby.kafka_events AS event WHERE event.letter_id = send.letter_id
       AND event.letter_id > $1 AND event.letter_id <= $2))`,
  ({ event, letter, outcome, reopened }) =>
    `publish ${event} of letter ${letter} has outcome ${outcome}, and came back ${reopened} times or has no event`,
)

export const kafkaSends: Invariant = {
  id: 'K3',
  promise: 'a service has at most one event on its way, and events agree with what was sent of them',
  rows: ({ letters }) => 2 * letters,
  async *check(audit) {
    yield* faultsAlong(audit, EVENTS, [disagreeing, sentOtherwise, brokenChains])
    yield* crowded(audit)
    yield* faultsAlong(audit, SENDS, [straySends])
  },
}

async function* crowded(audit: Audit): AsyncGenerator<Finding> {
  const inFlight = new Sums<string>()
  for await (const row of rowsAlong<{ service: string; events: Integer }>(audit, EVENTS, readInFlight))
    inFlight.add(row.service, row.events)
  for (const [service, events] of inFlight)
    if (events > 1)
      yield { what: `service '${service}' has ${events} events on their way`, row: { service, events } }
}
