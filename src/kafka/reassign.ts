/**
 * Events that belong to another service than their records say: an operator gives one to the service that it is of, and when the
 * settings come to know a service, its events leave the queue of nobody's. What was understood of the record is worked out anew, for
 * the service that has it now.
 */
import type { Clock } from '../core/clock.ts'
import { failure } from '../core/errors.ts'
import { type Database, sql } from '../db/database.ts'
import type { Registers } from '../letters/death-note.ts'
import { inOffice, type OfficeWork } from '../letters/work.ts'
import {
  type Caller,
  KAFKA,
  type QueueOrder,
  STATE,
  type StoredEvent,
  SYSTEM,
  stateName,
  UNKNOWN,
} from './event.ts'
import type { Assigned } from './intake/read-event.ts'
import { factsAnew, lockEvent, moveEvent } from './letters/move.ts'
import { isTopicName, isUuid } from './names.ts'
import { eventNamed } from './queue-reader.ts'
import { type KafkaSettings, listedService, serviceNamed } from './settings.ts'
import { type EventRow, QUEUE_ORDER, SMALL_EVENT_COLUMNS, toEvent } from './stored-event.ts'

export interface Reassigner {
  readonly db: Database
  readonly clock: Clock
  readonly registers: Registers
  readonly settings: KafkaSettings
}

/** Where an event shall go. */
export interface Assignment {
  /** The name of a service, or an alias. */
  readonly service: string
  /** Its original topic; null or left out, the one that its record says. */
  readonly topic?: string | null
}

/** Gives a pending event to a service; gives the event as it is then. Refuses with a code while it is held, and when it is resolved. */
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
    // A name that another record of the letter has taken the place of is spent.
    if (event?.dlqId !== id.toLowerCase()) throw failure('letter_unknown', { engine: KAFKA, rowKey: id })
    insistOnPending(event)
    return moveEvent(work, registers, event, factsAnew(settings, event, assigned), caller)
  })
}

function assignedTo(settings: KafkaSettings, { service: name, topic }: Assignment): Assigned {
  const service = listedService(settings, name) ?? serviceNamed(settings, name)
  if (service === null) {
    throw failure('parameter_invalid', {
      parameter: 'service',
      reason: `'${name}' is not a service of the configuration`,
    })
  }
  if (topic != null && !isTopicName(topic)) {
    throw failure('parameter_invalid', { parameter: 'topic', reason: `'${topic}' is no name of a topic` })
  }
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

/** Events that are looked at at once. */
const BATCH = 50

const NEXT = `event.service = '${UNKNOWN}' AND event.state < ${STATE.published} AND
  (event.order_ts, event.topic, event.partition, event.record_offset, event.intake) > ($1, $2, $3, $4, $5)`

/**
 * The next events of nobody's behind a place in the order, on kafka_queue; each with its letter by primary key. Whose an event is does
 * not depend on its value: a server that starts does not read all of them.
 */
const readUnknown = sql(
  'kafka.unknownEvents',
  {
    postgres: `SELECT ${SMALL_EVENT_COLUMNS} FROM (
        SELECT * FROM bartleby.kafka_events AS event WHERE ${NEXT} ORDER BY ${QUEUE_ORDER} LIMIT $6
      ) AS event
      CROSS JOIN LATERAL (SELECT * FROM bartleby.letters WHERE id = event.letter_id LIMIT 1) AS letter
      ORDER BY ${QUEUE_ORDER}`,
    sqlite: `SELECT ${SMALL_EVENT_COLUMNS} FROM kafka_events AS event CROSS JOIN letters AS letter ON letter.id = event.letter_id
      WHERE ${NEXT} ORDER BY ${QUEUE_ORDER} LIMIT $6`,
  },
  { bigints: true },
)

const START: QueueOrder = { orderTs: -(2n ** 63n), topic: '', partition: -1, offset: -1n, intake: 0n }

const readBatch = (
  db: Database,
  { orderTs, topic, partition, offset, intake }: QueueOrder,
): Promise<StoredEvent[]> =>
  db.session('kafka.unknownEvents', async (session) => {
    const after = [orderTs, topic, partition, offset, intake] as const
    return (await session.rows<EventRow>(readUnknown, ...after, BATCH)).map(toEvent)
  })

/**
 * Gives the events of nobody's to the services that the settings know by now; gives how many. Run when a server starts. Those that
 * are held are left where they are.
 */
export async function reassignKnown(reassigner: Reassigner, signal?: AbortSignal): Promise<number> {
  const { db, clock, settings } = reassigner
  let moved = 0
  for (let after: QueueOrder | null = START; after !== null && signal?.aborted !== true; ) {
    const events = await readBatch(db, after)
    const known = events.filter(
      (event) => event.state === STATE.pending && factsAnew(settings, event, null).service !== UNKNOWN,
    )
    if (known.length > 0) {
      moved += await inOffice(db, clock, 'kafka.reassignKnown', (work) => moveAll(work, reassigner, known))
    }
    after = events.length < BATCH ? null : (events.at(-1)?.order ?? null)
  }
  return moved
}

async function moveAll(
  work: OfficeWork,
  { registers, settings }: Reassigner,
  events: readonly StoredEvent[],
): Promise<number> {
  let moved = 0
  // Letters are locked in the order of their numbers, here as everywhere.
  for (const { letterId: id } of events.toSorted((a, b) => (a.letterId < b.letterId ? -1 : 1))) {
    const event = await lockEvent(work.tx, id)
    if (event === null || event.state !== STATE.pending || event.service !== UNKNOWN) continue
    await moveEvent(work, registers, event, factsAnew(settings, event, null), SYSTEM)
    moved++
  }
  return moved
}
