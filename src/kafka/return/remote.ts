/** The return path as the office uses it: one letter, wherever it stands in its queue, sent back by its number. */
import { BartlebyError, failure } from '../../core/errors.ts'
import type { Database } from '../../db/database.ts'
import { readLetterById } from '../../letters/detail.ts'
import type { Edit } from '../../letters/letter.ts'
import type { Departing, Refused, Rendered, Sent } from '../../letters/source.ts'
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

/** How the office sends letters of Kafka back: one after the other, as one event of a service is in flight at a time. */
export const remoteOf = ({ db, path }: RemoteParts): LetterReturn => ({
  render: (_read, letters, edits) =>
    eachOf(letters, async (letter): Promise<Rendered> => {
      const edit = edits.get(letter.id) ?? null
      const ended = await path.rehearseLetter(goalOf(letter), errandOf(edit, SYSTEM.actor, null))
      const { record } = await arrived(db, letter, ended)
      return { letter, queue: record.topic, edit, content: contentOf(record) }
    }),
  sendOutside: (letters, edits, { notes, actor, redrive, settled }) =>
    eachOf(letters, async (letter): Promise<Sent> => {
      const errand = errandOf(edits.get(letter.id) ?? null, actor, notes)
      const ended = await path.processLetter(goalOf(letter), { ...errand, redrive, settled })
      const { eventId, record } = await arrived(db, letter, ended)
      return { letter, messageId: eventId, queue: record.topic }
    }),
})

/** What is refused of one letter does not concern the next. */
async function eachOf<Done>(
  letters: readonly Departing[],
  act: (letter: Departing) => Promise<Done>,
): Promise<(Done | Refused)[]> {
  const answers: (Done | Refused)[] = []
  for (const letter of letters) {
    try {
      answers.push(await act(letter))
    } catch (error) {
      if (!(error instanceof BartlebyError)) throw error
      answers.push({ letter, refusal: error })
    }
  }
  return answers
}

/** Letters are filed under their service and topic. */
const goalOf = ({ id, originalQueue }: Departing): LetterGoal => ({
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
  letter: Departing,
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
async function resolvedMeanwhile(db: Database, { id, engine, sourceId }: Departing): Promise<BartlebyError> {
  const letter = await db.session('letters.read', (session) => readLetterById(session, id))
  if (letter === null) return failure('letter_unknown', { engine, rowKey: sourceId })
  insistOnStatus(letter, 'retry', ['Pending'])
  // It is open again by now.
  return failure('letter_service_busy', { service: goalOf(letter).service })
}

/** What the office says about an obstacle. */
function failureOf(obstacle: Obstacle, letter: Departing): BartlebyError {
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
