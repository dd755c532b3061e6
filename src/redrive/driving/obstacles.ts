/** What keeps a redrive from going on, and what concerns one letter only. */
import { BartlebyError, type ErrorCode } from '../../core/errors.ts'
import type { Refused } from '../../letters/source.ts'
import { StoreUnavailable } from '../../store/database.ts'
import type { Exception } from '../redrive.ts'

/** The place that letters go to is gone or cannot be reached: the others would fare no better. */
const OBSTACLES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'letter_queue_gone',
  'letter_outbox_unknown',
  'letter_outbox_away',
  'letter_kafka_away',
  'kafka_not_enabled',
  'letter_azure_away',
  'azure_not_configured',
])

/** Likely over in a moment. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'letter_service_busy',
  'letter_entity_busy',
  'service_stopping',
])

/** Whether the redrive has to pause for it. */
export const isObstacle = (error: unknown): error is BartlebyError =>
  error instanceof BartlebyError && OBSTACLES.has(error.code)

/** Whether the same may work soon: the store, or who else works on the same. */
export const isPassing = (error: unknown): boolean =>
  error instanceof StoreUnavailable || (error instanceof BartlebyError && PASSING.has(error.code))

/** Whether it concerns the letter at hand, and not all of them. */
export const isAboutLetter = (error: BartlebyError): boolean => !isObstacle(error) && !isPassing(error)

/** The words of an error, without what the facade of queues puts before them. */
export const wordsOf = (error: BartlebyError): string =>
  error.message.slice(error.message.indexOf(';') + 1).trim()

/** Left as they are, because they are not what they were, or not next: nothing was tried. */
const SKIPS: ReadonlyMap<ErrorCode, Exception['reason']> = new Map<ErrorCode, Exception['reason']>([
  ['letter_status_wrong', 'changed'],
  ['letter_leased', 'leased'],
  ['letter_in_flight', 'leased'],
  ['letter_not_next', 'order_blocked'],
])

/** What the refusal of one letter is noted as. */
export function exceptionOf({ letter, refusal }: Refused): Exception {
  const skip = SKIPS.get(refusal.code)
  return {
    letter: letter.id,
    outcome: skip === undefined ? 'failed' : 'skipped',
    reason: skip ?? 'send_refused',
    detail: wordsOf(refusal),
  }
}
