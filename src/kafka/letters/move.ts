/** Moves events from one queue to another: what was understood of the record is worked out anew for the service that has it then. */
import { randomUUID } from 'node:crypto'
import { sql, type Transaction } from '../../db/database.ts'
import { change } from '../../letters/change.ts'
import type { Registers } from '../../letters/death-note.ts'
import { lockLetter } from '../../letters/detail.ts'
import { type LetterId, STATUS } from '../../letters/letter.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { Caller, EventFacts, RawRecord, StoredEvent, Warning } from '../event.ts'
import { type Assigned, readEvent } from '../intake/read-event.ts'
import { queueOf, withWarnings } from '../intake/store-incoming.ts'
import { sameKey } from '../intake/store-packed.ts'
import { eventOfLetter } from '../return/seek.ts'
import { told } from '../return/trail.ts'
import type { KafkaSettings } from '../settings.ts'
import { factsBytes } from '../stored-event.ts'

/** The event of a letter, which is locked: nobody changes either before the transaction ends. */
export async function lockEvent(tx: Transaction, id: LetterId): Promise<StoredEvent | null> {
  if ((await lockLetter(tx, id)) === null) return null
  return eventOfLetter(tx, id)
}

/** One event by primary key. Its letter is locked. */
const writeService = sql(
  'kafka.writeService',
  'UPDATE bartleby.kafka_events SET service = $2, original_topic = $3, facts = $4, same_key = $5 WHERE letter_id = $1',
)

/** Moves an event, whose letter is locked, to the queue that `facts` say; gives the event as it is then. */
export async function moveEvent(
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
  const hash = sameKey({ record: recordOf(event), facts })
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
  const details = told(caller, { dlq_id: event.dlqId, from: queueOf(event), to: queueOf(facts) })
  await change(work, 'refile', [{ id, engine, before, drawer, lastFailureAt, details }], {
    actor: caller.actor,
    notes: null,
  })
  return { ...event, service, originalTopic, facts }
}

/** Warnings that tell of other records. The record alone does not know them. */
const OF_THE_STORE: readonly Warning[] = ['position_reused', 'duplicate_event_id', 'duplicate_retry']

/** What the record says for whoever has it now. What was minted for it stays. */
export function factsAnew(
  settings: KafkaSettings,
  event: StoredEvent,
  assigned: Assigned | null,
): EventFacts {
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
