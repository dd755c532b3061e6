/**
 * K3: at most one event of a service is on its way. What an event is, its publish is too: published, uncertain or being published;
 * an event that is free has none. As often as an event died again, so many records are in its chain.
 */
import { type Integer, sql } from '../db/database.ts'
import { STATE } from '../kafka/event.ts'
import { SEND } from '../kafka/send.ts'
import type { Audit, Finding, Invariant } from './invariant.ts'
import { eventRanges, sendRanges } from './kafka-walk.ts'

/** Services with several events on their way. Not by the index that keeps them from it: that one is what is doubted. */
const readCrowded = sql(
  'verify.kafkaInFlight',
  `SELECT service, count(*) AS events FROM bartleby.kafka_events
   WHERE letter_id > $1 AND letter_id <= $2 AND state IN (${STATE.claimed}, ${STATE.publishing}) GROUP BY service`,
)

/** Events of a range that disagree with their publish, which is found by its id. */
const readDisagreeing = sql(
  'verify.kafkaDisagreeing',
  `SELECT letter_id, state, event_id FROM bartleby.kafka_events AS event
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
  { bigints: true },
)

/** Letters of a range that were resolved by a publish, and are not by that of their event. */
const readSentOtherwise = sql(
  'verify.kafkaSentOtherwise',
  {
    postgres: sentOtherwise('event.event_id::text'),
    sqlite: sentOtherwise('event.event_id'),
  },
  { bigints: true },
)

function sentOtherwise(eventId: string): string {
  return `SELECT event.letter_id, event.event_id, letter.sent_as FROM bartleby.kafka_events AS event
    JOIN bartleby.letters AS letter ON letter.id = event.letter_id AND letter.id > $1 AND letter.id <= $2
    WHERE event.letter_id > $1 AND event.letter_id <= $2 AND event.state = ${STATE.published}
      AND (letter.sent_as IS NULL OR letter.sent_as <> ${eventId})`
}

/** Events of a range whose chain is not as long as they have died again. */
const readBrokenChains = sql(
  'verify.kafkaChains',
  `SELECT event.letter_id, event.attempts, count(link.number) AS links FROM bartleby.kafka_events AS event
   LEFT JOIN bartleby.kafka_chain AS link ON link.letter_id = event.letter_id AND link.letter_id > $1 AND link.letter_id <= $2
   WHERE event.letter_id > $1 AND event.letter_id <= $2
   GROUP BY event.letter_id, event.attempts HAVING count(link.number) <> event.attempts - 1`,
  { bigints: true },
)

/** What was sent of letters that are gone, or came back without having been published. */
const readStraySends = sql(
  'verify.kafkaStraySends',
  `SELECT event_id, letter_id, outcome, reopened FROM bartleby.kafka_sends AS send
   WHERE letter_id > $1 AND letter_id <= $2 AND ((reopened = 1 AND outcome <> ${SEND.published})
     OR NOT EXISTS (SELECT 1 FROM bartleby.kafka_events AS event WHERE event.letter_id = send.letter_id
       AND event.letter_id > $1 AND event.letter_id <= $2))`,
  { bigints: true },
)

export const kafkaSends: Invariant = {
  id: 'K3',
  promise: 'a service has at most one event on its way, and events agree with what was sent of them',
  rows: ({ letters }) => letters,
  async *check(audit) {
    const inFlight = new Map<string, number>()
    for await (const { after, through } of eventRanges(audit)) {
      const crowded = await audit.session.rows<{ service: string; events: Integer }>(
        readCrowded,
        after,
        through,
      )
      for (const { service, events } of crowded) {
        inFlight.set(service, (inFlight.get(service) ?? 0) + Number(events))
      }
      yield* disagreements(audit, after, through)
    }
    for (const [service, events] of inFlight) {
      if (events < 2) continue
      yield {
        what: `service '${service}' has ${events} events on their way`,
        row: { service, events: String(events) },
      }
    }
    yield* straySends(audit)
  },
}

async function* disagreements({ session }: Audit, after: bigint, through: bigint): AsyncGenerator<Finding> {
  const disagreeing = await session.rows<{ letter_id: Integer; state: Integer; event_id: string | null }>(
    readDisagreeing,
    after,
    through,
  )
  for (const { letter_id, state, event_id } of disagreeing) {
    yield {
      what: `the event of letter ${letter_id} is in state ${state}, and its publish ${event_id ?? '(none)'} is not`,
      row: { letter: String(letter_id), state: String(state), event: event_id ?? '-' },
    }
  }
  const otherwise = await session.rows<{
    letter_id: Integer
    event_id: string | null
    sent_as: string | null
  }>(readSentOtherwise, after, through)
  for (const { letter_id, event_id, sent_as } of otherwise) {
    yield {
      what: `letter ${letter_id} was sent as ${sent_as}, and its event as ${event_id}`,
      row: { letter: String(letter_id), sentAs: sent_as ?? '-', event: event_id ?? '-' },
    }
  }
  const chains = await session.rows<{ letter_id: Integer; attempts: Integer; links: Integer }>(
    readBrokenChains,
    after,
    through,
  )
  for (const { letter_id, attempts, links } of chains) {
    yield {
      what: `letter ${letter_id} died ${attempts} times, and its chain has ${links} earlier records`,
      row: { letter: String(letter_id), attempts: String(attempts), links: String(links) },
    }
  }
}

async function* straySends(audit: Audit): AsyncGenerator<Finding> {
  for await (const { after, through } of sendRanges(audit)) {
    const rows = await audit.session.rows<{
      event_id: string
      letter_id: Integer
      outcome: Integer
      reopened: Integer
    }>(readStraySends, after, through)
    for (const { event_id, letter_id, outcome, reopened } of rows) {
      yield {
        what: `publish ${event_id} of letter ${letter_id} has outcome ${outcome}, and came back ${reopened} times or has no event`,
        row: {
          event: event_id,
          letter: String(letter_id),
          outcome: String(outcome),
          reopened: String(reopened),
        },
      }
    }
  }
}
