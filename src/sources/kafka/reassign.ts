/**
 * Events that belong to another service than their records say. An operator gives one to its service; when the settings come to know a
 * service, its events leave the queue of nobody. Their facts are read anew.
 */
import { randomUUID } from 'node:crypto'
import { failure, refuse } from '../../core/errors.ts'
import { change } from '../../letters/change.ts'
import { STATUS } from '../../letters/letter.ts'
import { lockLetter } from '../../letters/lists/detail.ts'
import type { Registers } from '../../letters/registers.ts'
import { inOffice, type OfficeRuns, type OfficeWork } from '../../letters/work.ts'
import { isTopicName } from '../../outgoing/kafka/record.ts'
import { sql } from '../../store/database.ts'
import {
  type Caller,
  type EventFacts,
  KAFKA,
  type RawRecord,
  REASSIGNMENT,
  STATE,
  SYSTEM,
  stateName,
  UNKNOWN,
  type Warning,
} from './event.ts'
import { type Assigned, readEvent } from './intake/read-event.ts'
import type { RecordStoreOptions } from './intake/store.ts'
import { queueOf, sameKeyOfRecord, withWarnings } from './intake/store-incoming.ts'
import { outputOf } from './return/claim.ts'
import { lockEvent } from './return/service-queue.ts'
import { isUuid, type KafkaSettings, listedService, serviceNamed } from './settings/settings.ts'
import {
  eventNamed,
  factsBytes,
  QUEUE_ORDER,
  type QueueOrder,
  SMALL_EVENT_COLUMNS,
  type StoredEvent,
  toEvent,
} from './stored-event.ts'

export type Reassigner = Pick<RecordStoreOptions, 'db' | 'clock' | 'registers' | 'settings'>

export interface Assignment {
  /** A name or an alias. */
  readonly service: string
  /** Its original topic; without, the one that its record says. */
  readonly topic?: string | null
}

/** Gives a pending event to a service. Refuses while it is held, and when it is resolved. */
export async function reassign(
  reassigner: Reassigner,
  id: string,
  assignment: Assignment,
  caller: Caller,
): Promise<StoredEvent> {
  const assigned = assignedTo(reassigner.settings, assignment)
  const { db, clock, registers, settings } = reassigner
  return inOffice(db, clock, 'kafka.reassign', async (work) => {
    const found = isUuid(id) ? await eventNamed(work.tx, id.toLowerCase()) : null
    const event = found === null ? null : await lockEvent(work.tx, found.letterId)
    // An older name of the letter is spent.
    if (event?.dlqId !== id.toLowerCase()) throw failure('letter_unknown', { engine: KAFKA, rowKey: id })
    insistOnPending(event)
    return moveEvent(work, registers, event, factsAnew(settings, event, assigned), caller)
  })
}

function assignedTo(settings: KafkaSettings, { service: name, topic }: Assignment): Assigned {
  const service = listedService(settings, name) ?? serviceNamed(settings, name)
  if (service === null) throw refuse('service', `'${name}' is not a service of the configuration`)
  if (topic != null && !isTopicName(topic)) throw refuse('topic', `'${topic}' is no name of a topic`)
  return { service, originalTopic: topic ?? null }
}

function insistOnPending({ state, service, eventId }: StoredEvent): void {
  switch (state) {
    case STATE.pending:
      return
    case STATE.claimed:
    case STATE.publishing:
      throw failure('letter_service_busy', { service })
    case STATE.uncertain:
      throw failure('letter_uncertain', { eventId: eventId ?? '' })
    case STATE.published:
    case STATE.discarded:
      throw failure('letter_status_wrong', { act: 'reassigned', status: stateName(state), needed: 'pending' })
  }
}

const NEXT = `event.service <= '${UNKNOWN}' AND event.state < ${STATE.published} AND
  (event.service, ${QUEUE_ORDER}) > ('${UNKNOWN}', $1, $2, $3, $4, $5)`

/** The next events of nobody, on kafka_queue; letters by primary key. Their values are not read: they do not decide whose an event is. */
const readUnknown = sql(
  'kafka.unknownEvents',
  `SELECT ${SMALL_EVENT_COLUMNS} FROM bartleby.kafka_events AS event JOIN bartleby.letters AS letter ON letter.id = event.letter_id
   WHERE ${NEXT} ORDER BY event.service, ${QUEUE_ORDER} LIMIT $6`,
  { bigints: true },
)

/** Numbers beyond 2^53 are in digits. */
type Place = readonly [orderTs: string, topic: string, partition: number, offset: string, intake: string]

const START: Place = [String(-(2n ** 63n)), '', -1, '-1', '0']

const placeOf = ({ orderTs, topic, partition, offset, intake }: QueueOrder): Place => [
  String(orderTs),
  topic,
  partition,
  String(offset),
  String(intake),
]

/** One round when a server starts. Events that are held stay where they are. */
export function defineReassignment(
  runs: OfficeRuns,
  parts: Pick<Reassigner, 'registers' | 'settings'>,
): void {
  runs.define<null, Place | null>({
    kind: REASSIGNMENT,
    batch: 50,
    sourcesOf: () => [KAFKA],
    rounds: { about: 'dead events of services that are known by now', firstUs: 0n },
    async step(work, { place }, most) {
      const [orderTs, topic, partition, offset, intake] = place ?? START
      const behind = [BigInt(orderTs), topic, partition, BigInt(offset), BigInt(intake)] as const
      const events = (await work.tx.rows<object>(readUnknown, ...behind, most)).map(toEvent)
      const done = await moveKnown(work, parts, events)
      const last = events.at(-1)?.order
      if (last === undefined || events.length < most) return { done, next: 'finished' }
      return { place: placeOf(last), done, next: 'more' }
    },
  })
}

async function moveKnown(
  work: OfficeWork,
  { registers, settings }: Pick<Reassigner, 'registers' | 'settings'>,
  events: readonly StoredEvent[],
): Promise<number> {
  const known = events.filter(
    (event) => event.state === STATE.pending && factsAnew(settings, event, null).service !== UNKNOWN,
  )
  let moved = 0
  // Letters are locked in the order of their numbers, here as everywhere.
  for (const { letterId } of known.toSorted((a, b) => (a.letterId < b.letterId ? -1 : 1))) {
    const event = await lockEvent(work.tx, letterId)
    if (event === null || event.state !== STATE.pending || event.service !== UNKNOWN) continue
    await moveEvent(work, registers, event, factsAnew(settings, event, null), SYSTEM)
    moved++
  }
  return moved
}

/** By primary key; the letter is locked. */
const writeService = sql(
  'kafka.writeService',
  'UPDATE bartleby.kafka_events SET service = $2, original_topic = $3, facts = $4, same_key = $5 WHERE letter_id = $1',
)

/** Moves an event, whose letter is locked, to the queue that `facts` name. */
async function moveEvent(
  work: OfficeWork,
  registers: Registers,
  event: StoredEvent,
  facts: EventFacts,
  caller: Caller,
): Promise<StoredEvent> {
  const { service, originalTopic } = facts
  if (queueOf(facts) === queueOf(event)) return event
  const letter = await lockLetter(work.tx, event.letterId)
  if (letter === null) throw new Error(`letter ${event.letterId} is gone although it was locked`)
  const hash = sameKeyOfRecord({ record: recordOf(event), facts })
  await work.tx.run(writeService, event.letterId, service, originalTopic, factsBytes(facts), hash)
  const { id, source, engine, lastFailureAt } = letter
  const drawer = await registers.drawers.numberOf(work, {
    source,
    engine,
    queue: queueOf(facts),
    // Known: the letter lies under it.
    signature: { fingerprint: letter.signature, errorClass: letter.errorClass, title: letter.errorMessage },
    failedAt: lastFailureAt,
  })
  const before = { ...letter, status: STATUS[letter.status] }
  const details = outputOf(caller, { dlq_id: event.dlqId, from: queueOf(event), to: queueOf(facts) })
  await change(work, 'refile', [{ id, engine, before, drawer, lastFailureAt, details }], {
    actor: caller.actor,
    notes: null,
  })
  return { ...event, service, originalTopic, facts }
}

/** About other records: the record alone does not know them. */
const OF_THE_STORE: readonly Warning[] = ['position_reused', 'duplicate_event_id', 'duplicate_retry']

/** Minted ids stay. */
function factsAnew(settings: KafkaSettings, event: StoredEvent, assigned: Assigned | null): EventFacts {
  const { mintedCorrelationId, warnings, duplicateOf } = event.facts
  const facts = readEvent(recordOf(event), settings, () => mintedCorrelationId ?? randomUUID(), assigned)
  const kept = withWarnings(
    facts,
    OF_THE_STORE.filter((warning) => warnings.includes(warning)),
  )
  return duplicateOf === undefined ? kept : { ...kept, duplicateOf }
}

const recordOf = ({
  order,
  timestampMs,
  key,
  value,
  headers,
  facts: { packed },
}: StoredEvent): RawRecord => ({
  topic: order.topic,
  partition: order.partition,
  offset: order.offset,
  timestampMs,
  key,
  value,
  headers,
  ...(packed === undefined ? {} : { packed }),
})
