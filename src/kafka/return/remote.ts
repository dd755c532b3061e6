/** The return path as the office uses it: one letter, wherever it stands in its queue, sent back by its number. */
import { type BartlebyError, failure } from '../../core/errors.ts'
import type { Database } from '../../db/database.ts'
import { readLetterById } from '../../letters/detail.ts'
import type { Edit, Letter, Outgoing } from '../../letters/letter.ts'
import { insistOnStatus } from '../../letters/transition.ts'
import { type OutgoingRecord, SYSTEM, UNKNOWN } from '../event.ts'
import type { LetterReturn } from '../source.ts'
import { lastHeader, shownBytes } from '../wire/headers.ts'
import type { Ended } from './attempt.ts'
import type { Errand, LetterGoal } from './errand.ts'
import type { Obstacle } from './obstacle.ts'
import type { ReturnPath } from './return-path.ts'

export interface RemoteParts {
  readonly db: Database
  readonly path: Pick<ReturnPath, 'processLetter' | 'rehearseLetter'>
}

/** How the office sends letters of Kafka back. */
export const remoteOf = ({ db, path }: RemoteParts): LetterReturn => ({
  async render(letter, edit) {
    const ended = await path.rehearseLetter(goalOf(letter), errandOf(edit, SYSTEM.actor, null))
    const { record } = await arrived(db, letter, ended)
    return outgoing(letter, record)
  },
  async send(letter, { edit, notes, actor, redrive, settled }) {
    const errand = { ...errandOf(edit, actor, notes), redrive, settled }
    const ended = await path.processLetter(goalOf(letter), errand)
    const { eventId, record } = await arrived(db, letter, ended)
    return { messageId: eventId, queue: record.topic }
  },
})

/** Letters are filed under their service and topic. */
const goalOf = ({ id, originalQueue }: Letter): LetterGoal => ({
  by: 'letter',
  letterId: id,
  service: originalQueue?.split('/')[0] ?? UNKNOWN,
})

const errandOf = (edit: Edit | null, actor: string, notes: string | null): Errand => ({
  caller: { actor, requestId: null },
  override: null,
  edit: edit?.payload ?? null,
  mintCorrelationId: false,
  resend: false,
  mayDiscard: false,
  notes,
})

async function arrived(
  db: Database,
  letter: Letter,
  ended: Ended,
): Promise<Extract<Ended, { outcome: 'published' }>> {
  switch (ended.outcome) {
    case 'published':
      return ended
    case 'discarded':
      throw new Error(`letter ${letter.id} was discarded although it was to be sent`)
    case 'stopped':
      if (ended.obstacle.why === 'empty') throw await resolvedMeanwhile(db, letter)
      throw failureOf(ended.obstacle, letter)
  }
}

/** The letter was pending when it was read. */
async function resolvedMeanwhile(db: Database, { id, engine, rowKey }: Letter): Promise<BartlebyError> {
  const letter = await db.session('letters.read', (session) => readLetterById(session, id))
  if (letter === null) return failure('letter_unknown', { engine, rowKey })
  insistOnStatus(letter, 'retry', ['Pending'])
  // It is open again by now.
  return failure('letter_service_busy', { service: goalOf(letter).service })
}

/** What the office says about an obstacle. */
function failureOf(obstacle: Obstacle, letter: Letter): BartlebyError {
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
      throw new Error(`letter ${letter.id} cannot be '${obstacle.why}'`)
  }
}

/** What would be sent, in the words of the office. */
function outgoing(letter: Letter, { topic, key, value, headers }: OutgoingRecord): Outgoing {
  const textOf = (name: string): string | null => shownBytes(lastHeader(headers, name) ?? null)
  return {
    letterId: letter.id,
    queue: topic,
    encoding: letter.encoding,
    kind: textOf('type') ?? letter.kind,
    reference: shownBytes(key) ?? '',
    payload: value ?? new Uint8Array(0),
    correlationId: textOf('correlation_id') ?? letter.correlationId,
    idempotencyKey: `${letter.id}-${letter.version}`,
  }
}
