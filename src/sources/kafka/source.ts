/**
 * The way back of Kafka's letters: the return path claims, sends and settles one after the other, wherever each stands in its queue. Also
 * what happens to the event of a letter that is discarded, expires, is restored or removed.
 */
import { BartlebyError, failure } from '../../core/errors.ts'
import type { Edit, LetterId } from '../../letters/letter.ts'
import { readLetterById } from '../../letters/lists/detail.ts'
import type { Departing, LetterSource, Refused, Rendered, Sent } from '../../letters/source.ts'
import { insistOnStatus } from '../../letters/transitions.ts'
import type { OfficeWork } from '../../letters/work.ts'
import type { OutgoingRecord } from '../../outgoing/kafka/record.ts'
import { type Database, type Statement, sql } from '../../store/database.ts'
import { rowShape, text } from '../../store/row.ts'
import { KAFKA, SEND, STATE, SYSTEM, stateOf, UNKNOWN } from './event.ts'
import type { Ended, Ready } from './return/attempt.ts'
import type { ReturnPath } from './return/return-path.ts'
import type { Obstacle, OneLetter, Terms } from './return/terms.ts'
import { lastHeader, shownBytes } from './wire/bytes.ts'

export interface LetterReturn {
  readonly db: Database
  readonly path: Pick<ReturnPath, 'send' | 'rehearse'>
}

interface KafkaSourceOptions {
  /** Null: Kafka is not enabled on this server. */
  readonly returnWay: () => LetterReturn | null
  readonly discarded?: (service: string, topic: string) => void
}

export function kafkaLetterSource({ returnWay, discarded }: KafkaSourceOptions): LetterSource {
  return {
    name: KAFKA,
    render: (_read, letters, edits) =>
      oneByOne(letters, returnWay(), async (letter, { db, path }): Promise<Rendered> => {
        const edit = edits.get(letter.id) ?? null
        const ended = await path.rehearse(targetOf(letter), termsOf(edit, SYSTEM.actor, null))
        const { record } = await recordOf(db, letter, ended)
        return { letter, queue: record.topic, edit, content: contentOf(record) }
      }),
    sendOutside: (letters, edits, { notes, actor, redrive, settled }) =>
      oneByOne(letters, returnWay(), async (letter, { db, path }): Promise<Sent> => {
        const terms = termsOf(edits.get(letter.id) ?? null, actor, notes)
        const ended = await path.send(targetOf(letter), { ...terms, redrive, settled })
        const { eventId, record } = await recordOf(db, letter, ended)
        return { letter, messageId: eventId, queue: record.topic }
      }),
    // What is on a topic cannot be taken back.
    takeBack: async (_work, letters) => letters.map((letter) => ({ letter, deliveries: 0 })),
    async moved(work, letters, act) {
      const { tx } = work
      const ids = letters.map(({ id }) => id)
      if (act === 'remove') await Promise.all(FORGETTING.map((statement) => tx.run(statement, ids)))
      else if (act === 'discard' || act === 'expire') await giveUp(work, ids, discarded)
      else await tx.run(restoreEvents, ids)
    },
  }
}

/** Discards events that nobody holds. */
async function giveUp(
  work: OfficeWork,
  ids: readonly LetterId[],
  discarded: KafkaSourceOptions['discarded'],
): Promise<void> {
  const { tx } = work
  const events = await EVENT.all(tx, lockEvents, ids)
  const busy = events.find(({ state }) => state === STATE.claimed || state === STATE.publishing)
  if (busy !== undefined) throw failure('letter_service_busy', { service: busy.service })
  await tx.run(discardEvents, ids)
  work.afterCommit(() => {
    for (const { service, originalTopic } of events) discarded?.(service, originalTopic)
  })
}

/** One event of a service is in flight at a time. A refusal of one does not concern the next. */
async function oneByOne<Done>(
  letters: readonly Departing[],
  way: LetterReturn | null,
  act: (letter: Departing, way: LetterReturn) => Promise<Done>,
): Promise<(Done | Refused)[]> {
  const answers: (Done | Refused)[] = []
  for (const letter of letters) {
    try {
      if (way === null) throw failure('kafka_not_enabled')
      answers.push(await act(letter, way))
    } catch (error) {
      if (!(error instanceof BartlebyError)) throw error
      answers.push({ letter, refusal: error })
    }
  }
  return answers
}

const targetOf = ({ id, originalQueue }: Departing): OneLetter => ({
  by: 'letter',
  letterId: id,
  service: originalQueue?.split('/')[0] ?? UNKNOWN,
})

const termsOf = (edit: Edit | null, actor: string, notes: string | null): Terms => ({
  caller: { actor, requestId: null },
  override: null,
  edit: edit?.payload ?? null,
  mintCorrelationId: false,
  resend: false,
  mayDiscard: false,
  notes,
})

/** Throws when the letter stays. */
async function recordOf(db: Database, letter: Departing, ended: Ended): Promise<Ready> {
  if (!('why' in ended)) {
    if (ended.outcome === 'published') return ended
    throw new Error(`letter ${letter.id} was discarded although it was to be sent`)
  }
  throw ended.why === 'empty' ? await resolvedMeanwhile(db, letter) : failureOf(ended)
}

/** The letter was pending when it was read. */
async function resolvedMeanwhile(db: Database, { id, engine, sourceId }: Departing): Promise<BartlebyError> {
  const letter = await db.session('letters.read', (session) => readLetterById(session, id))
  if (letter === null) return failure('letter_unknown', { engine, rowKey: sourceId })
  insistOnStatus(letter, 'retry')
  // It is open again by now.
  return failure('letter_service_busy', { service: targetOf(letter).service })
}

function failureOf(obstacle: Obstacle): BartlebyError {
  switch (obstacle.why) {
    case 'busy':
      return failure('letter_service_busy', { service: obstacle.service })
    case 'earlier_same_key':
      return failure('letter_not_next', { before: obstacle.before })
    case 'guarded':
      return obstacle.reasons.includes('service_unknown')
        ? failure('letter_service_unknown', { dlqId: obstacle.event.dlqId })
        : failure('letter_guarded', { reasons: obstacle.reasons.join(', ') })
    case 'override_guarded':
      return failure('letter_guarded', { reasons: obstacle.reasons.join(', ') })
    case 'processor_failed':
    case 'processor_timeout':
      return failure('letter_processor_failed', { message: obstacle.message })
    case 'processor_discards':
      return failure('letter_processor_discards')
    case 'uncertain':
    case 'doubt':
      return failure('letter_uncertain', { eventId: obstacle.eventId })
    case 'kafka_away':
      return failure('letter_kafka_away', { reason: obstacle.message })
    case 'empty':
    case 'not_next':
      throw new Error(`a call on a letter does not meet '${obstacle.why}'`)
  }
}

function contentOf({ key, value, headers }: OutgoingRecord): NonNullable<Rendered['content']> {
  const textOf = (name: string): string | null => shownBytes(lastHeader(headers, name) ?? null)
  const [kind, correlationId] = [textOf('type'), textOf('correlation_id')]
  return {
    ...(kind === null ? {} : { kind }),
    reference: shownBytes(key) ?? '',
    payload: value ?? new Uint8Array(0),
    ...(correlationId === null ? {} : { correlationId }),
  }
}

const EVENT = rowShape({ service: text, originalTopic: text, state: stateOf })

/** By primary key, locked in its order; their letters are locked. */
const THESE = 'letter_id = ANY($1::bigint[])'
const lockEvents = sql(
  'kafka.lockEventsToLift',
  `SELECT ${EVENT.columns} FROM bartleby.kafka_events WHERE ${THESE} ORDER BY letter_id FOR UPDATE`,
)

/** The id of an uncertain publish stays: the event may have been published. */
const discardEvents = sql(
  'kafka.discardEvents',
  `UPDATE bartleby.kafka_events SET state = ${STATE.discarded}, claim = NULL, claimed_by = NULL, lease_until = NULL
   WHERE ${THESE}`,
)

/** By primary key. An uncertain event stays uncertain: pending, it would be published a second time without a word. */
const OPEN_END = `(SELECT outcome FROM bartleby.kafka_sends AS send WHERE send.event_id = kafka_events.event_id) = ${SEND.uncertain}`
const restoreEvents = sql(
  'kafka.layEvents',
  `UPDATE bartleby.kafka_events SET claim = NULL, claimed_by = NULL, lease_until = NULL,
     state = CASE WHEN ${OPEN_END} THEN ${STATE.uncertain} ELSE ${STATE.pending} END,
     event_id = CASE WHEN ${OPEN_END} THEN event_id END
   WHERE ${THESE}`,
)

/** By primary keys and kafka_sends_of_letter. The register of records stays: it keeps copies out. */
const FORGETTING: readonly Statement[] = (['kafka_events', 'kafka_chain', 'kafka_sends'] as const).map(
  (table) => sql(`kafka.forget.${table}`, `DELETE FROM bartleby.${table} WHERE ${THESE}`),
)
