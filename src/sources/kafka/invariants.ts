/** What Kafka promises and `verify` proves: letters and events, counted records, publishes. */
import type { Audit, Finding, FoundRow, Invariant, Side } from '../../letters/audit/invariant.ts'
import { batchesOf, read, Sums, together } from '../../letters/audit/walk.ts'
import { STATUS, STATUSES } from '../../letters/letter.ts'
import type { Integer } from '../../store/database.ts'
import { KAFKA, SEND, STATE, stateName } from './event.ts'

const side = (name: string, text: string): Side => ({ statement: read(name, text) })

const LETTERS = side(
  'kafkaLetters',
  `SELECT id AS key, status, resolution, leased, drawer, sent_as FROM bartleby.letters WHERE engine = '${KAFKA}' ORDER BY id`,
)
const EVENTS = side(
  'kafkaEvents',
  `SELECT letter_id AS key, dlq_id AS event, state, service || '/' || original_topic AS queue FROM bartleby.kafka_events ORDER BY letter_id`,
)

/** K1: letter and event are a pair, in matching states and the same queue. A publish under way marks both. */
const events: Invariant = {
  id: 'K1',
  promise: 'a letter of Kafka and its event say the same',
  rows: ({ sizes: { letters } }) => 2 * letters,
  async *check(audit) {
    /** Each told once. */
    const misfiled = new Set<string>()
    for await (const { key, letters, events } of together(audit, {
      letters: LETTERS,
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

const nameOf = (state: number): string =>
  Object.values<number>(STATE).includes(state) ? stateName(state) : String(state)

/** A few hundred at most. */
const readPartitions = read(
  'kafkaBooks',
  'SELECT topic, partition, received, duplicates, created, reopened FROM bartleby.kafka_partitions ORDER BY topic, partition',
)

const readRecords = read('kafkaRecords', 'SELECT topic, partition FROM bartleby.kafka_records')

/** Events, and whether the register has their record under the same name. */
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

interface CountedPartition extends Partition {
  readonly received: Integer
  readonly duplicates: Integer
  readonly created: Integer
  readonly reopened: Integer
}

/**
 * K2: every record became a letter, reopened one or was a duplicate, and is counted so; the register has all but duplicates, under the name
 * of their event.
 */
const records: Invariant = {
  id: 'K2',
  promise: 'every record of Kafka is a letter, reopened one or is a duplicate, and is counted as that',
  rows: ({ sizes: { letters } }) => 2 * letters,
  async *check(audit) {
    const found = await countAll(audit)
    for (const counted of await audit.session.rows<CountedPartition>(readPartitions)) {
      yield* miscounted(counted, found.get(partitionName(counted)) ?? 0)
      found.delete(partitionName(counted))
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

const partitionName = ({ topic, partition }: Partition): string => `${topic}:${partition}`

async function countAll(audit: Audit): Promise<Sums<string>> {
  const found = new Sums<string>()
  for await (const records of batchesOf<Partition>(audit, readRecords))
    for (const record of records) found.add(partitionName(record), 1)
  return found
}

function* miscounted(counted: CountedPartition, records: number): Iterable<Finding> {
  const partition = partitionName(counted)
  const { received, duplicates, created, reopened } = counted
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

/** Events with the publish that they name. */
const PUBLISHES = side(
  'kafkaPublishes',
  `SELECT event.letter_id AS key, event.state, event.attempts, event.service, event.event_id AS event,
       send.letter_id AS "sentLetter", send.outcome
     FROM bartleby.kafka_events AS event LEFT JOIN bartleby.kafka_sends AS send ON send.event_id = event.event_id
     ORDER BY event.letter_id`,
)
const CHAIN = side('kafkaChain', 'SELECT letter_id AS key FROM bartleby.kafka_chain ORDER BY letter_id')
const SENDS = side(
  'kafkaSends',
  'SELECT letter_id AS key, event_id AS event, outcome, reopened FROM bartleby.kafka_sends ORDER BY letter_id',
)

/**
 * K3: a service has one event on its way at most. Event and publish agree; a free event has none. The chain has one record for each earlier
 * death.
 */
const sends: Invariant = {
  id: 'K3',
  promise: 'a service has at most one event on its way, and events agree with what was sent of them',
  rows: ({ sizes: { letters } }) => 2 * letters,
  async *check(audit) {
    // Not by the unique index: that is what is doubted.
    const inFlight = new Sums<string>()
    const sides = { letters: LETTERS, events: PUBLISHES, chain: CHAIN, sends: SENDS }
    for await (const { key: letter, letters, events, chain, sends } of together(audit, sides)) {
      for (const event of events) {
        if (HELD.includes(Number(event.state))) inFlight.add(String(event.service), 1)
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

/** A discarded event may have any outcome. */
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

export const kafkaInvariants: readonly Invariant[] = [events, records, sends]
